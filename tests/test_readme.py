"""Every command and snippet of README.md runs: the real code, over a stub encoder and a scripted language model."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import dspy
import pytest
from maps_rag.cli.app import app
from maps_rag.optimize.data import DATA_SETS
from maps_rag.optimize.data.registry import find_data_set
from maps_rag.optimize.mini import passages_path
from maps_rag.programs import MAPS, METHODS
from maps_rag.programs.base import Limits
from typer.testing import CliRunner

from tests.optimize.data_rows import hotpot, musique, two_wiki
from tests.retrieval.stub_encoder import StubEncoder
from tests.scripted import Roles, StubRetriever, scripted_lm

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands(program):
    lines = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(program + " ")]


def hub_rows(data_set, split):
    """Two rows of a set, as if from the hub."""
    row = {"hotpotqa": hotpot, "2wikimultihopqa": two_wiki, "musique": musique}[data_set.name]
    return ((f"row {number}", row(f"{data_set.name}{number}")) for number in range(2))


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A folder with the files that README takes for granted; returns the models that were opened."""
    models = []

    def language_model(name="local", api_base=None, **options):
        models.append((name, api_base, options))
        return scripted_lm(Roles(rounds=1, directions=3), temperature=options.get("temperature"))

    monkeypatch.chdir(tmp_path)
    shutil.copy(passages_path(), tmp_path / "passages.jsonl")
    (own,) = blocks("json")
    (tmp_path / "my-questions.jsonl").write_text(own)
    monkeypatch.setattr("maps_rag.optimize.data.load.hub_rows", hub_rows)
    for module in ("build", "retriever"):
        monkeypatch.setattr(f"maps_rag.programs.retrieval.{module}.load_encoder", StubEncoder)
    monkeypatch.setattr("maps_rag.programs.language_model", language_model)
    monkeypatch.setattr("maps_rag.programs.fetch_weights", lambda name: None)
    return models


def test_every_command_runs_in_the_order_given(opened):
    runs = [CliRunner().invoke(app, arguments[1:]) for arguments in commands("maps-rag")]
    assert len(runs) >= 3
    assert [result.output for result in runs if result.exit_code != 0] == []
    assert opened[-1][:2] == ("openai/Qwen/Qwen3-32B", "http://localhost:8000/v1")


def test_an_evaluation_leaves_what_the_tables_of_files_and_fields_say(opened, tmp_path):
    for command in commands("maps-rag"):
        if command[1] in ("index", "eval", "report"):
            assert CliRunner().invoke(app, command[1:]).exit_code == 0, command
    files, fields = re.findall(
        r"^\| (?:file|fields of the journal) \|.*\n\| --- .*\n((?:\|.*\n)+)", README, re.MULTILINE
    )
    named = [name for row in files.splitlines() for name in re.findall(r"`([a-z_.]+)`", row.split("|")[1])]
    run, own = tmp_path / "my-run", tmp_path / "own"
    assert sorted(named) == sorted(path.name for path in run.iterdir() if not path.name.startswith("."))
    listed = {name for row in fields.splitlines() for name in re.findall(r"`([a-z_]+)`", row.split("|")[1])}
    lines = [json.loads(line) for line in (own / "journal.jsonl").read_text().splitlines()]
    assert {name for line in lines for name in line} | {"error"} == listed
    assert [
        len((tmp_path / name / "journal.jsonl").read_text().splitlines()) for name in ("my-run", "big-run", "sampled")
    ] == [20, 18, 12]
    assert "Score at equal cost" in (tmp_path / "my-report.html").read_text()
    assert "hotpotqa" in (tmp_path / "my-report.md").read_text()


def test_every_data_set_is_named():
    text = README.split("**Data sets** by name", 1)[1].split("`--n 1000", 1)[0]
    assert {find_data_set(name).name for name in re.findall(r"`([a-z0-9_]+)`", text)} == set(DATA_SETS)


def test_every_snippet_runs_after_the_commands(opened, capsys, monkeypatch):
    monkeypatch.setitem(METHODS, "mine", None)  # so that the example's own entry goes with the test
    assert CliRunner().invoke(app, commands("maps-rag")[0][1:]).exit_code == 0
    snippets = blocks("python")
    assert len(snippets) >= 3
    names = {}
    configured = dspy.settings.lm
    with dspy.context(lm=scripted_lm(Roles(rounds=1, directions=3))):
        for snippet in snippets:
            # The one line that may only run once a process, in the main thread.
            exec(re.sub(r"^dspy\.configure\(lm=(.*?)\)  .*$", r"lm = \1", snippet, flags=re.MULTILINE), names)
    assert names["prediction"].rounds == 1
    assert len(names["fresh"].answer.demos) == len(names["compiled"].answer.demos)
    assert dspy.settings.lm is configured
    assert METHODS["mine"].cls is names["SecondLook"]
    assert (names["result"].finished, names["result"].failed) == (20, 0)
    shown = capsys.readouterr().out
    assert "the answer" in shown
    assert re.search(r"^\| maps +\|", shown, re.MULTILINE)


def test_the_method_of_your_own_is_whole_and_under_40_lines(opened, tmp_path):
    (example,) = (block for block in blocks("python") if 'METHODS["mine"]' in block)
    assert len(example.splitlines()) < 40
    definition = example.split("mine = create")[0]
    assert CliRunner().invoke(app, commands("maps-rag")[0][1:]).exit_code == 0
    names = {"dspy": dspy, "__name__": "own"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(METHODS, "mine", None)
        exec(definition, names)
        program = METHODS["mine"].cls(StubRetriever())
        lm = scripted_lm(Roles(directions=2))
        with dspy.context(lm=lm):
            whole = program(question="who?")
            *rounds, _ = program.stream("who?")
            program.limits = Limits(max_calls=1)
            short = program(question="who?")
    searched = [[search["query"] for search in record["searches"]] for record in whole.trajectory["rounds"]]
    assert searched == [["who?"], ["query 0 0", "query 0 1"]]
    assert [len(whole.passages), whole.usage["calls"], len(rounds)] == [15, 2, 2]
    assert [short.answer, short.usage["calls"], short.rounds] == ["the answer", 1, 1]


def test_the_table_of_methods_names_every_one():
    section = README.split("## Methods", 1)[1].split("###", 1)[0]
    rows = re.findall(r"^\| (`[a-z0-9`, -]+`) \| [^|]+ \|$", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row)} == set(METHODS)


def test_the_make_targets_exist():
    for command in commands("make"):
        subprocess.run([*command, "--dry-run"], cwd=ROOT, check=True, capture_output=True)


def test_the_knobs_and_defaults_of_the_table_are_the_real_ones():
    real = MAPS(lambda query, k: []).settings()
    section = README.split("## Knobs", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \| ([^|]+) \|", section, re.MULTILINE)
    shown = {name: default.strip() for names, default in rows for name in re.findall(r"`([a-z_]+)`", names)}
    assert shown == {name: f'"{value}"' if isinstance(value, str) else str(value) for name, value in real.items()}
    assert set(Limits.__dataclass_fields__) <= set(shown)

"""The commands as a whole: help, versions, exit codes, and what they import."""

import importlib.metadata
import subprocess
import sys

import pytest
from maps_rag.cli.errors import explain


def test_version_is_the_installed_one(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"maps-rag {importlib.metadata.version('maps-rag')}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 0
    for command in ("demo", "index", "ask", "eval", "methods"):
        assert command in result.stdout


def test_help_imports_nothing_heavy():
    heavy = ("dspy", "torch", "faiss", "datasets", "numpy", "maps_rag.programs")
    code = (
        "import sys\nfrom maps_rag.cli.app import app\n"
        "try:\n    app(['ask', '--help'])\n"
        f"finally:\n    print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "--max-rounds" in done.stdout
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["answer"], "No such command 'answer'"),
        (["ask", "who?"], "Missing option '--index'"),
        (["ask", "who?", "--index", "x", "--depth", "3"], "No such option: --depth"),
        (["ask", "who?", "--index", "x", "--passages", "many"], "'--passages'"),
        (["ask", "who?", "--index", "x", "--refine", "guess"], "'--refine'"),
        (["index"], "Missing command"),
        (["index", "build", "c.jsonl"], "Missing option '--out'"),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line_that_names_the_help(fails, arguments, said):
    line = fails(*arguments)
    assert line.startswith("Error: ")
    assert said in line
    assert line.endswith("--help")


@pytest.fixture
def broken_command(monkeypatch):
    def break_with(error):
        def raise_it(*_, **__):
            raise error

        monkeypatch.setattr("maps_rag.programs.retrieval.Index", raise_it)
        return "index", "info", "somewhere"

    return break_with


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(fails, broken_command):
    line = fails(*broken_command(RuntimeError("wheels\nfell off")), code=1)
    assert "RuntimeError: wheels fell off" in line
    assert "--debug" in line


def test_debug_shows_the_traceback(run, broken_command):
    result = run("--debug", *broken_command(RuntimeError("wheels fell off")))
    assert result.exit_code == 1
    assert "Traceback" in result.stderr


def test_an_interrupted_command_exits_as_shells_expect(fails, broken_command):
    assert fails(*broken_command(KeyboardInterrupt()), code=130) == "Stopped."


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "some.file"), "Error: some.file: Permission denied"),
        (MemoryError(), "Error: there is not enough memory for this."),
    ],
)
def test_errors_of_the_machine_are_told_apart_from_faults(error, line):
    assert explain(error) == (line, 2)

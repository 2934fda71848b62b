"""Every command and snippet of README.md runs: the real code, over a stub encoder and a scripted language model."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import dspy
import pytest
from maps_rag.cli.app import app
from maps_rag.optimize.mini import passages_path
from maps_rag.programs import MAPS, METHODS
from maps_rag.programs.base import Limits
from typer.testing import CliRunner

from tests.retrieval.stub_encoder import StubEncoder
from tests.scripted import Roles, StubRetriever, scripted_lm

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands(program):
    lines = [line.split("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith(program + " ")]


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A folder with the files that README takes for granted; returns the models that were opened."""
    models = []

    def language_model(name="local", api_base=None, **options):
        models.append((name, api_base, options))
        return scripted_lm(Roles(rounds=1, directions=3))

    monkeypatch.chdir(tmp_path)
    shutil.copy(passages_path(), tmp_path / "passages.jsonl")
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
    assert "the answer" in capsys.readouterr().out


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

"""Saving and loading: a compiled program behaves identically in a new process, a state that does not fit is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dspy
import pytest
from maps_rag.programs import MAPS, UserError, VanillaRAG

from tests.scripted import Roles, StubRetriever, prompts, scripted_lm

ROOT = Path(__file__).parents[2]


def compiled(**knobs):
    """Return a program whose instructions and demos are not those it was born with."""
    program = MAPS(StubRetriever(), **{"directions": 2, "max_rounds": 2, **knobs})
    program.propose.signature = program.propose.signature.with_instructions("Plan as a compiled program plans.")
    program.answer.demos = [
        dspy.Example(question="q", knowledge=["k"], reasoning_state="s", reasoning="r", answer="DEMO", augmented=True)
    ]
    return program


def prompts_of(program):
    lm = scripted_lm(Roles(rounds=1))
    with dspy.context(lm=lm):
        program(question="What is asked?")
    return prompts(lm)


def state_of(program):
    return json.loads(json.dumps(program.dump_state()))


CHILD = """
import json, sys
import dspy
from maps_rag.programs import MAPS
from tests.programs.test_saving import prompts_of
from tests.scripted import StubRetriever

how, path = sys.argv[1:]
if how == "state":
    program = MAPS(StubRetriever(), directions=2, max_rounds=2)
    program.load(path)
else:
    program = dspy.load(path, allow_pickle=True)
print(json.dumps(prompts_of(program)))
"""


def prompts_in_a_new_process(how, path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, how, str(path)],
        cwd=path.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_saved_state_gives_the_same_prompts_in_a_new_process(tmp_path):
    program = compiled()
    program.save(tmp_path / "program.json")
    sent = prompts_of(program)
    assert "Plan as a compiled program plans." in sent[0]
    assert "DEMO" in sent[-1]
    assert prompts_in_a_new_process("state", tmp_path / "program.json") == sent


def test_a_whole_saved_program_gives_the_same_prompts_in_a_new_process(tmp_path):
    program = compiled()
    program.save(tmp_path / "program", save_program=True)
    assert prompts_in_a_new_process("program", tmp_path / "program") == prompts_of(program)


def test_a_saved_state_is_json_with_our_manifest(tmp_path):
    compiled().save(tmp_path / "program.json")
    state = json.loads((tmp_path / "program.json").read_text())
    manifest = state["maps_rag"]
    assert manifest["program"] == "MAPS"
    assert manifest["settings"]["directions"] == 2
    assert manifest["fields"]["answer"] == ["question", "knowledge", "reasoning_state", "reasoning", "answer"]
    assert set(manifest["versions"]) == {"maps-rag", "dspy"}


@pytest.mark.parametrize(
    ("switch", "words"),
    [
        ({"disentangle": False}, "saved with disentangle=True .here False."),
        ({"list_directions": False}, "saved with list_directions=True .here False."),
        ({"refine": "select"}, "saved with refine='distil' .here 'select'."),
    ],
)
def test_a_state_of_other_switches_is_refused_and_nothing_is_changed(switch, words, tmp_path):
    compiled().save(tmp_path / "program.json")
    other = MAPS(StubRetriever(), directions=2, **switch)
    before = state_of(other)
    with pytest.raises(UserError, match=words):
        other.load(tmp_path / "program.json")
    assert state_of(other) == before


def test_a_state_of_another_method_is_refused_and_nothing_is_changed(tmp_path):
    compiled().save(tmp_path / "program.json")
    other = VanillaRAG(StubRetriever())
    before = state_of(other)
    with pytest.raises(UserError, match="belongs to MAPS, not to VanillaRAG"):
        other.load(tmp_path / "program.json")
    assert state_of(other) == before


def test_a_state_without_a_manifest_is_refused(tmp_path):
    path = tmp_path / "program.json"
    compiled().save(path)
    state = json.loads(path.read_text())
    del state["maps_rag"]
    path.write_text(json.dumps(state))
    program = compiled()
    before = state_of(program)
    with pytest.raises(UserError, match="not saved by a maps_rag program"):
        program.load(path)
    assert state_of(program) == before


@pytest.mark.parametrize("state", [None, [], "text", {}])
def test_what_is_no_state_is_refused(state):
    with pytest.raises(UserError, match="not saved by a maps_rag program"):
        MAPS(StubRetriever()).load_state(state)


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("answer"),
        lambda state: state["answer"].pop("signature"),
        lambda state: state["answer"].update(demos=None),
        lambda state: state["answer"].update(demos=[1]),
        lambda state: state["answer"].update(demos="abc"),
        lambda state: state["answer"].update(forward="x"),
        lambda state: state["answer"].update(lm="x"),
        lambda state: state["answer"]["signature"].update(instructions=None),
        lambda state: state["answer"]["signature"]["fields"].pop(),
        lambda state: state["answer"]["signature"].update(fields="abc"),
        lambda state: state["maps_rag"].pop("fields"),
        lambda state: state.update(maps_rag="text"),
        lambda state: state.update(maps_rag={"program": "MAPS", "fields": None, "settings": None}),
    ],
)
def test_a_damaged_state_is_refused_and_nothing_is_changed(damage, tmp_path):
    path = tmp_path / "program.json"
    compiled().save(path)
    state = json.loads(path.read_text())
    damage(state)
    path.write_text(json.dumps(state))
    program = MAPS(StubRetriever(), directions=2)
    before = state_of(program)
    with pytest.raises(UserError):
        program.load(path)
    assert state_of(program) == before


@pytest.mark.parametrize("counts", [{"directions": 5}, {"passages": 1}, {"max_rounds": 1}, {"max_calls": 9}])
def test_a_state_of_other_counts_loads(counts, tmp_path):
    compiled().save(tmp_path / "program.json")
    other = MAPS(StubRetriever(), **counts)
    other.load(tmp_path / "program.json")
    assert other.propose.signature.instructions == "Plan as a compiled program plans."
    assert other.answer.demos[0]["answer"] == "DEMO"
    assert other.settings()[next(iter(counts))] == next(iter(counts.values()))


def test_a_program_with_chains_of_thought_loads_into_one_like_it_only(tmp_path):
    program = compiled()
    program.write = dspy.ChainOfThought(program.write.signature)
    program.save(tmp_path / "program.json")
    with pytest.raises(UserError, match="its roles have other fields"):
        MAPS(StubRetriever(), directions=2).load(tmp_path / "program.json")
    twin = MAPS(StubRetriever(), directions=2)
    twin.write = dspy.ChainOfThought(twin.write.signature)
    twin.load(tmp_path / "program.json")
    assert twin.answer.demos[0]["answer"] == "DEMO"


def test_a_state_inside_a_users_module_saves_and_loads(tmp_path):
    class Outer(dspy.Module):
        def __init__(self):
            super().__init__()
            self.search = MAPS(StubRetriever(), directions=2)

    outer = Outer()
    outer.search.answer.demos = compiled().answer.demos
    outer.save(tmp_path / "outer.json")
    twin = Outer()
    twin.load(tmp_path / "outer.json")
    assert twin.search.answer.demos[0]["answer"] == "DEMO"


def test_an_lm_of_a_role_is_saved_and_loaded(tmp_path):
    program = compiled()
    program.set_lm(dspy.LM("openai/some-model", api_key="secret", temperature=0.3))
    program.save(tmp_path / "program.json")
    assert "secret" not in (tmp_path / "program.json").read_text()
    twin = MAPS(StubRetriever(), directions=2)
    twin.load(tmp_path / "program.json")
    assert (twin.answer.lm.model, twin.answer.lm.kwargs["temperature"]) == ("openai/some-model", 0.3)

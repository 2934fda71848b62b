"""Choosing a method: the list, and asking with each of them."""

import json
from typing import ClassVar

import pytest
from maps_rag.cli import console
from maps_rag.cli.defaults import LOCAL_KNOBS
from maps_rag.programs import METHODS
from rich.console import Console

from tests.scripted import Roles, output_fields


def ask(index, *more):
    return "ask", "who was first?", "--index", index, *more


class Anything(Roles):
    """Fills the fields of every method's roles with something of their kind, and answers where it may."""

    VALUES: ClassVar = {
        "queries": ["a query"],
        "directions": ["a direction"],
        "known": [],
        "selected": [1],
        "sufficient": True,
        "complete": True,
        "retrieve": True,
        "relevant": True,
        "support": "full",
        "utility": 5,
        "next_tool_name": "finish",
        "next_tool_args": {},
        "thought": "So the answer is Ada.",
        "answer": "Ada",
        "query": "",
        "next_query": "",
    }

    def __call__(self, system, user):
        names = output_fields(system)
        special = {"relevant": [1]} if "merged" in names else {}
        return {name: (self.VALUES | special).get(name, f"some {name}") for name in names}


@pytest.fixture
def ircot():
    """One thought to search on, then one that answers."""
    thoughts = [{"thought": "Ada comes first."}, {"thought": "So the answer is Ada."}]

    def reply(system, user):
        return thoughts.pop(0) if "thought" in output_fields(system) else {"reasoning": "as found", "answer": "Ada"}

    return reply


def test_every_method_is_one_line_with_its_cost_where_there_is_no_terminal(run):
    result = run("methods")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line}
    for name, method in METHODS.items():
        for shown in (method.paper, method.calls, method.retrievals, "trained" if method.trained else "prompted"):
            assert f"  {shown}" in lines[name]
    assert "paper: passages=5, select=3, max_rounds=10; original: passages=8, select=3, max_rounds=4" in lines["s3"]
    assert "paper, original: directions=1, passages=5" in lines["maps-no-parallelism"]
    assert not set("\x1b│") & set(result.stdout)


@pytest.mark.parametrize("width", [80, 140])
def test_on_a_terminal_the_methods_are_a_table_of_which_nothing_is_cut_off(run, monkeypatch, width):
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal has 80 columns whatever it is told
    terminal = Console(force_terminal=True, width=width, record=True, markup=False)
    monkeypatch.setattr(console, "output", lambda: terminal)
    assert run("methods").exit_code == 0
    shown = terminal.export_text()
    for name in METHODS:
        assert f"│ {name} " in shown
    assert "…" not in shown
    assert "list_directions=False" in shown
    assert all(line[-1] in "┃│┓┩┤┘" for line in shown.splitlines() if line.startswith(("│", "┃")))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("lm", ["local", "some/model"])
def test_every_method_answers_a_question(run, index, model, name, lm):
    model(Anything())
    result = run(*ask(index, "--method", name, "--lm", lm, "--json"))
    assert result.exit_code == 0, result.output
    content = json.loads(result.stdout)
    assert content["method"] == name
    assert content["answer"]
    assert content["failures"] == {}
    assert content["trajectory"]["program"] == METHODS[name].cls.__name__


def test_maps_is_the_method_where_none_is_given(run, index, model):
    model()
    assert json.loads(run(*ask(index, "--json")).stdout)["method"] == "maps"


def config_of(run, index, *more):
    return json.loads(run(*ask(index, "--json", *more)).stdout)["trajectory"]["config"]


def test_local_models_get_their_own_values_of_the_knobs_that_a_method_has(run, index, model):
    model(Anything())
    config = config_of(run, index, "--method", "s3")
    shared = {"passages", "max_rounds"}
    assert {name: config[name] for name in shared} == {name: LOCAL_KNOBS[name] for name in shared}
    assert not {"min_rounds", "refine"} & set(config)
    assert config["select"] == 3


def test_other_models_get_the_preset_paper(run, index, model):
    model(Anything())
    assert (
        METHODS["s3"].presets["paper"].items() <= config_of(run, index, "--method", "s3", "--lm", "some/model").items()
    )


@pytest.mark.parametrize("preset", ["paper", "original"])
def test_a_preset_that_is_given_holds_for_local_models_too_and_knobs_override_it(run, index, model, preset):
    model(Anything())
    config = config_of(run, index, "--method", "s3", "--preset", preset, "--max-rounds", 2)
    assert config["max_rounds"] == 2
    assert config["passages"] == METHODS["s3"].presets[preset]["passages"]


def test_an_unknown_method_lists_the_names(fails, index, model):
    opened = model()
    line = fails(*ask(index, "--method", "mapz"))
    assert line == f"Error: There is no method 'mapz'. There are: {', '.join(METHODS)}."
    assert opened == []


def test_an_unknown_preset_is_refused(fails, index):
    assert "'--preset'" in fails(*ask(index, "--preset", "best"))


def test_a_knob_that_the_method_does_not_have_is_refused_with_those_it_has(fails, index, model):
    opened = model()
    line = fails(*ask(index, "--method", "ircot", "--directions", 2))
    assert line == f"Error: ircot has no knob directions. It has: {', '.join(METHODS['ircot'].knobs())}."
    assert opened == []


def test_a_switch_that_defines_the_method_is_refused(fails, index):
    assert "defined by directions=1" in fails(*ask(index, "--method", "maps-no-parallelism", "--directions", 2))


def in_order(shown, *texts):
    places = [shown.index(text) for text in texts]
    return places == sorted(places)


def test_rounds_of_a_method_without_a_plan_show_searches_and_thoughts(run, index, model, ircot):
    model(ircot)
    shown = run(*ask(index, "--method", "ircot")).stdout
    assert in_order(
        shown,
        *("Round 1", "who was first?", "Title ", "Ada comes first.", "Round 2", "sub-query   Ada comes first."),
        *("So the answer is Ada.", "answer      Ada", "2: nothing was missing any more"),
    )
    assert "Round 3" not in shown
    assert "learned" not in shown
    assert "directions" not in shown


def test_a_thought_that_ends_in_an_answer_opens_no_round(run, index, model):
    turns = [
        {"reasoning": "First look.", "queries": ["one", "two"], "answer": ""},
        {"reasoning": "That settles it.", "queries": [], "answer": "Ada"},
    ]
    model(lambda system, user: turns.pop(0))
    shown = run(*ask(index, "--method", "parallel-search")).stdout
    assert in_order(shown, "Round 1", "First look.", "sub-query   one", "sub-query   two", "answer      Ada")
    assert "That settles it." not in shown
    assert "Round 2" not in shown


def test_what_a_method_selects_is_shown_as_learned(run, index, model):
    model(Anything())
    shown = run(*ask(index, "--method", "s3")).stdout
    assert "learned     Title " in shown


def test_a_method_without_rounds_shows_its_answer(run, index, model):
    model(Anything())
    shown = run(*ask(index, "--method", "direct")).stdout
    assert "Round" not in shown
    assert "answer      Ada" in shown
    assert "0: the model answered" in shown

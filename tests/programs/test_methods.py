"""The registry of methods: what holds for every one of them, and what is refused."""

from __future__ import annotations

import itertools

import pytest
from maps_rag.programs import MAPS, UserError
from maps_rag.programs.base import SearchProgram
from maps_rag.programs.methods import METHODS, create

from tests.scripted import StubRetriever

CASES = [(name, preset) for name, method in METHODS.items() for preset in method.presets]


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_a_preset_sets_what_it_says(name, preset):
    program = create(name, StubRetriever(), preset)
    assert type(program) is METHODS[name].cls
    wanted = {**METHODS[name].presets[preset], **METHODS[name].fixed}
    assert wanted.items() <= program.settings().items()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_both_presets_and_paper_means_k_5_and_10_rounds(name):
    assert set(METHODS[name].presets) == {"paper", "original"}
    assert METHODS[name].presets["paper"].get("passages", 5) == 5
    assert METHODS[name].presets["paper"].get("max_rounds", 10) == 10


@pytest.mark.parametrize("name", METHODS)
def test_no_two_predictors_of_a_program_have_equal_signatures(name):
    predictors = create(name, StubRetriever()).named_predictors()
    for (_, one), (_, other) in itertools.combinations(predictors, 2):
        assert not one.signature.equals(other.signature)
        assert one.signature.instructions != other.signature.instructions


@pytest.mark.parametrize("name", METHODS)
def test_every_role_ships_three_different_demos_with_a_value_for_each_field_and_no_other(name):
    program = create(name, StubRetriever())
    roles = {role.removesuffix(".predict"): p.signature for role, p in program.named_predictors()}
    assert roles.keys() == program.shipped_demos.keys()
    for role, demos in program.shipped_demos.items():
        assert len(demos) == len({repr(demo) for demo in demos}) == 3
        for demo in demos:
            assert demo.keys() == roles[role].fields.keys()


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_where_it_comes_from_and_what_it_costs(name):
    method = METHODS[name]
    assert issubclass(method.cls, SearchProgram)
    assert method.paper
    assert method.calls
    assert method.retrievals
    assert len(method.cls.__doc__.splitlines()) > 2


def test_knobs_override_the_preset():
    assert create("s3", StubRetriever(), "original", passages=2).config.passages == 2
    assert create("maps", StubRetriever(), max_calls=7).limits.max_calls == 7


@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("maps-no-directions", {"list_directions": False}),
        ("maps-no-parallelism", {"directions": 1}),
        ("maps-no-disentanglement", {"disentangle": False}),
    ],
)
@pytest.mark.parametrize("preset", ["paper", "original"])
def test_an_ablation_differs_from_maps_by_its_switch_alone(name, switch, preset):
    ablation, whole = (create(each, StubRetriever(), preset) for each in (name, "maps"))
    assert isinstance(ablation, MAPS)
    assert ablation.settings() == whole.settings() | switch


def test_an_unknown_name_lists_the_names():
    with pytest.raises(UserError, match=r"There is no method 'mapz'\. There are: maps, maps-no-directions, .*s3"):
        create("mapz")


def test_an_unknown_preset_lists_the_presets():
    with pytest.raises(UserError, match=r"s3 has no preset 'best'\. It has: paper, original\."):
        create("s3", preset="best")


@pytest.mark.parametrize("name", METHODS)
def test_a_knob_that_a_method_does_not_have_says_which_it_has(name):
    with pytest.raises(UserError, match=f"^{name} has no knob beams. It has: .*max_calls") as error:
        create(name, StubRetriever(), beams=2)
    for knob in METHODS[name].presets["paper"].keys() - METHODS[name].fixed:
        assert knob in str(error.value)


def test_a_switch_that_defines_a_method_cannot_be_given():
    with pytest.raises(UserError, match="maps-no-parallelism is defined by directions=1"):
        create("maps-no-parallelism", StubRetriever(), directions=3)
    assert "directions" not in METHODS["maps-no-parallelism"].knobs()

"""What an evaluation is said to take before it is run."""

from __future__ import annotations

import dspy
import pytest
from maps_rag.metrics.cost import Prices, money
from maps_rag.optimize.runner.forecasts import forecast, span, total
from maps_rag.optimize.runner.plan import plan_evaluation
from maps_rag.programs import METHODS, SearchProgram, UserError, create

from tests.optimize.runs import Replies, methods, questions, run
from tests.scripted import Roles, StubRetriever, prompts, scripted_lm


def plan(count=10, runs=1, **given):
    temperature = 0.5 if runs > 1 else None
    lm = scripted_lm(Replies(), temperature=temperature)
    return plan_evaluation(given.get("methods") or methods(), questions(count), lm=lm, runs=runs)


@pytest.mark.parametrize(
    ("formula", "settings", "expected"),
    [
        ("1", {}, (1, 1)),
        ("3R + 2 (3R + 1 at the cap)", {"max_rounds": 4}, (2, 13)),
        ("3R + 2 (3R + 1 at the cap)", {"max_rounds": 4, "min_rounds": 2}, (8, 13)),
        ("N * R", {"directions": 3, "max_rounds": 4}, (0, 12)),
        ("N", {"rewrites": 4}, (4, 4)),
        ("R + 1 (R + 2 where an answer is forced)", {"max_rounds": 10}, (1, 12)),
        ("K + 1 (2 without retrieval)", {"passages": 5}, (2, 6)),
        ("1 (0 without retrieval)", {}, (0, 1)),
    ],
)
def test_a_formula_gives_the_least_and_the_most(formula, settings, expected):
    assert span(formula, settings) == expected


def test_a_limit_of_calls_bounds_a_formula():
    assert span("2R + 1", {"max_rounds": 10}, limit=8) == (1, 8)


@pytest.mark.parametrize("formula", ["about ten", "2X + 1", "N", ""])
def test_what_is_no_formula_for_a_program_is_refused(formula):
    with pytest.raises(UserError):
        span(formula, {"max_rounds": 10})


@pytest.mark.parametrize("name", list(METHODS))
def test_every_formula_of_the_registry_is_understood(name):
    settings = create(name, StubRetriever()).settings()
    for formula in (METHODS[name].calls, METHODS[name].retrievals):
        low, high = span(formula, settings)
        assert 0 <= low <= high


@pytest.mark.parametrize("rounds", [1, 2, 9])
def test_the_calls_of_a_run_lie_within_the_forecast(rounds, tmp_path):
    programs = methods("maps", directions=2, max_rounds=3)
    (said,) = forecast(plan(2, methods=programs), tmp_path / "run")
    lm = scripted_lm(Roles(rounds=rounds))
    run(tmp_path / "run", 2, methods=programs, lm=lm)
    assert said.calls[0] <= len(prompts(lm)) <= said.calls[1]


def test_a_forecast_without_measurements_multiplies_the_formulas_by_the_questions(tmp_path):
    vanilla, direct = forecast(plan(10, runs=3), tmp_path / "run")
    assert (vanilla.method, vanilla.questions, vanilla.measured) == ("vanilla", 30, 0)
    assert (vanilla.calls, vanilla.retrievals) == ((30, 30), (30, 30))
    assert (direct.calls, direct.retrievals) == ((30, 30), (0, 0))
    assert vanilla.prompt_tokens[0] > 30 * 5 * 100 > direct.prompt_tokens[0] > 0
    assert not (tmp_path / "run").exists()


def test_a_forecast_goes_by_what_the_directory_has_measured(tmp_path):
    asked = methods("maps", directions=2), questions(10)
    lm = scripted_lm(Replies())
    result = run(tmp_path / "run", methods=asked[0], questions=asked[1], lm=lm, max_tokens=1)
    assert result.finished == 1
    (said,) = forecast(plan_evaluation(*asked, lm=lm), tmp_path / "run")
    assert (said.questions, said.measured) == (9, 1)
    assert said.calls == (45, 45)
    assert said.retrievals == (18, 18)
    assert said.prompt_tokens == (9 * lm.engine.input_tokens,) * 2
    assert said.completion_tokens == (9 * lm.engine.output_tokens,) * 2


def test_a_forecast_for_the_directory_of_another_run_is_refused(tmp_path):
    run(tmp_path / "run", 2)
    with pytest.raises(UserError, match="holds another run"):
        forecast(plan(3), tmp_path / "run")


def test_money_is_tokens_times_prices(tmp_path):
    (said,) = forecast(plan(methods=methods("direct")), tmp_path / "run")
    prices = Prices(2.0, 8.0)
    (prompt, _), (written, _) = said.prompt_tokens, said.completion_tokens
    assert said.cost(prices)[0] == pytest.approx(prompt * 2.0 / 1e6 + written * 8.0 / 1e6)
    assert said.cost(prices)[0] == pytest.approx(
        float(money({"prompt_tokens": prompt, "completion_tokens": written}, prices))
    )


def test_forecasts_add_up_and_an_unknown_one_makes_the_sum_unknown(tmp_path):
    known = forecast(plan(10), tmp_path / "run")
    assert total(known).calls == (20, 20)
    assert total(known).questions == 20
    (unknown,) = forecast(plan(10, methods={"mine": Own(StubRetriever())}), tmp_path / "run")
    assert (unknown.calls, unknown.prompt_tokens, unknown.cost(Prices(1.0, 1.0))) == (None, None, None)
    assert total([*known, unknown]).calls is None


class Own(SearchProgram):
    """A method that no registry knows."""

    def __init__(self, retriever):
        super().__init__(retriever)
        self.ask = dspy.Predict("question -> answer")

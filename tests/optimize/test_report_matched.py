"""Methods at an equal cost, as a report shows them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.optimize.reporting import report
from maps_rag.optimize.reporting.matched import cap_for

from tests.optimize.run_dirs import failed, line, write_run
from tests.optimize.test_report import made, table

__all__ = ["made"]

TOKENS = "Score at equal logical tokens"
CALLS = "Score at equal LM calls"


def asked(method, questions, **more):
    """Lines of one method: a question for each (right, tokens)."""
    return [
        line(method, name=f"q{place}", right=right, tokens=tokens, **more)
        for place, (right, tokens) in enumerate(questions)
    ]


def test_the_dearer_method_is_cut_off_where_it_spends_what_the_cheaper_does(made):
    # At a cap of 3,000 maps takes 1,000 + 3,000 + 3,000 + 1,000, a mean of 2,000, and loses its two dear answers.
    dear = asked("maps", [(1, 1000), (1, 5000), (1, 3500), (0, 1000)])
    [row] = table(made(dear + asked("vanilla", [(1, 2000), (1, 2000), (0, 2000), (0, 2000)])), TOKENS)
    assert (row["set"], row["methods"], row["how"]) == ("hotpotqa", "maps vs vanilla", "maps cut off at 3,000")
    assert (row["n"], row["logical tokens"], row["first"], row["second"]) == ("4", "2,000", "25.0", "50.0")
    assert row["difference"].startswith("-25.0 [")


def test_methods_of_the_same_cost_are_compared_as_they_ran(made):
    shown = made(asked("maps", [(1, 900), (1, 1100)]) + asked("vanilla", [(1, 1000), (0, 1000)]))
    [row] = table(shown, TOKENS)
    assert (row["how"], row["first"], row["second"]) == ("as run", "100.0", "50.0")
    assert (table(shown, CALLS)[0]["how"], table(shown, CALLS)[0]["LM calls"]) == ("as run", "5.00")


def test_where_the_costs_do_not_meet_a_line_says_so_and_there_is_no_table(made):
    dear = asked("maps", [(1, 3000), (1, 4000)], rounds=3)
    shown = made(dear + asked("vanilla", [(1, 500), (0, 700)]))
    assert "Score at equal cost" in shown
    for label in ("logical tokens", "LM calls"):
        said = f"No equal cost in {label}: on hotpotqa, vanilla takes less on average than any question took with maps."
        assert said in shown
    assert "Score at equal logical tokens" not in shown


def test_settings_of_a_method_in_several_directories_are_compared_without_cutting(tmp_path):
    def settings(rounds):
        return {"maps": {"program": "MAPS", "settings": {"max_rounds": rounds}, "prompts": "0a", "trained": False}}

    one = write_run(tmp_path / "one", asked("maps", [(1, 1000), (0, 1000)]), methods=settings(1))
    two = write_run(tmp_path / "two", asked("maps", [(1, 3000), (1, 3000)], rounds=2), methods=settings(2))
    other = write_run(tmp_path / "other", asked("search-o1", [(1, 2000), (0, 2000)]))
    [row] = table(report([one, two, other]).markdown(), TOKENS)
    # Halfway between its settings of 1,000 tokens (50 %) and 3,000 (100 %).
    assert (row["methods"], row["how"], row["logical tokens"]) == ("maps vs search-o1", "as run", "2,000")
    assert (row["first"], row["second"]) == ("75.0", "50.0")


def test_failed_questions_have_no_cost_and_are_left_out(made):
    lines = asked("maps", [(1, 1000), (1, 1000)]) + asked("vanilla", [(1, 1000)]) + [failed("vanilla", name="q1")]
    assert table(made(lines), TOKENS)[0]["n"] == "1"


def test_one_method_alone_has_no_section_of_it(made):
    assert "equal cost" not in made(asked("maps", [(1, 1000), (0, 1000)]))


def test_p_values_are_adjusted_over_the_table(made):
    rows = [(place % 2, 1000) for place in range(12)]
    flipped = [(1 - right, tokens) for right, tokens in rows]
    shown = table(made(asked("maps", [(1, 1000)] * 12) + asked("direct", rows) + asked("vanilla", flipped)), TOKENS)
    assert len(shown) == 2
    for row in shown:
        assert float(row["p (Holm)"].strip("<")) >= float(row["p"].strip("<"))


@settings(max_examples=50)
@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30), st.floats(0, 1))
def test_the_cap_spends_the_budget(costs, share):
    values = np.array(costs, dtype=float)
    budget = values.min() + share * (values.mean() - values.min())
    assert np.minimum(values, cap_for(values, budget)).mean() == pytest.approx(budget)


def test_a_cap_on_a_cost_answers_the_questions_of_that_cost():
    assert cap_for(np.array([2.0, 5.0, 5.0, 8.0]), 4.25) == 5.0

"""Methods compared at the same cost, by values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.metrics import Setting, compute_matched, paired_bootstrap, truncated
from maps_rag.programs import UserError

CHEAP = Setting([1, 0, 0, 0], [10, 10, 10, 10])
DEAR = Setting([1, 1, 1, 0], [20, 40, 30, 30])
OTHER = Setting([1, 1, 0, 0], [20, 20, 20, 20])


def test_between_two_settings_the_score_is_that_of_a_mixture():
    # The costs are 10 and 30 a question, the scores 1/4 and 3/4: at 20, halfway, 1/2.
    (found,) = compute_matched([DEAR, CHEAP], [OTHER], [20])
    assert (found.budget, found.first, found.second) == (20, pytest.approx(0.5), pytest.approx(0.5))
    assert (found.test.difference, found.test.n) == (pytest.approx(0), 4)


def test_above_its_dearest_setting_a_method_keeps_its_score():
    found = compute_matched([CHEAP, DEAR], [OTHER], [25, 30, 1000])
    assert [point.first for point in found] == pytest.approx([0.625, 0.75, 0.75])
    assert [point.second for point in found] == [0.5, 0.5, 0.5]


def test_the_budgets_are_the_costs_of_the_settings_that_both_reach():
    assert [point.budget for point in compute_matched([CHEAP, DEAR], [OTHER])] == [20, 30]


def test_below_its_cheapest_setting_a_method_has_no_score():
    with pytest.raises(UserError, match="give budgets from 20 on"):
        compute_matched([CHEAP, DEAR], [OTHER], [19])


def test_at_the_cost_of_single_settings_it_is_the_paired_bootstrap():
    rng = np.random.default_rng(0)
    one, two = rng.random(80), rng.random(80) * 0.8
    flat = np.full(80, 5.0)
    (found,) = compute_matched([Setting(one, flat)], [Setting(two, flat)])
    expected = paired_bootstrap(one, two)
    assert found.test.difference == pytest.approx(expected.difference)
    assert (found.test.low, found.test.high) == pytest.approx((expected.low, expected.high), abs=0.01)
    assert found.test.p_value == pytest.approx(expected.p_value, abs=0.01)


def test_the_interval_counts_in_that_costs_are_uncertain():
    # One score per cost unit on average, and every question pays in full: at the budget the score is sure, whatever
    # questions are drawn, while the score of the setting alone is not.
    costs = np.arange(1.0, 41.0)
    nothing = Setting(np.zeros(40), np.zeros(40))
    paid = Setting(costs / 40, costs)
    (found,) = compute_matched([nothing, paid], [nothing], [10])
    assert (found.test.low, found.test.high) == (pytest.approx(0.25), pytest.approx(0.25))


def test_the_same_seed_gives_the_same_result():
    assert compute_matched([CHEAP, DEAR], [OTHER]) == compute_matched([CHEAP, DEAR], [OTHER])


def test_of_settings_at_one_cost_the_first_counts():
    better = Setting([1, 1, 1, 1], [10, 10, 10, 10])
    (found, *_) = compute_matched([CHEAP, better], [CHEAP], [10])
    assert found.first == 0.25


def test_a_question_over_its_cap_is_cut_off():
    short, long = truncated(DEAR, [30, 100])
    assert (short.scores.tolist(), short.costs.tolist()) == ([1, 0, 1, 0], [20, 30, 30, 30])
    assert (long.scores.tolist(), long.costs.tolist()) == ([1, 1, 1, 0], [20, 40, 30, 30])
    (known,) = truncated(DEAR, [30], fallback=0.5)
    assert known.scores.tolist() == [1, 0.5, 1, 0]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 100)), min_size=1, max_size=20), st.floats(1, 100))
@settings(max_examples=50)
def test_a_smaller_cap_never_costs_or_scores_more(questions, cap):
    scores, costs = zip(*questions, strict=True)
    low, high = truncated(Setting(scores, costs), [cap / 2, cap])
    assert np.all(low.costs <= high.costs)
    assert np.all(high.costs <= np.array(costs))
    assert np.all(low.scores <= high.scores)


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ([], [OTHER], "first method needs settings"),
        ([CHEAP, Setting([1], [2])], [OTHER], "sizes are"),
        ([Setting([1], [2])], [OTHER], "1 and 4"),
        ([Setting([1], [-2])], [Setting([1], [2])], "0 or more"),
        ([Setting([1, 0], [2])], [OTHER], "2 and 1"),
    ],
)
def test_settings_that_do_not_fit_are_refused(first, second, match):
    with pytest.raises(UserError, match=match):
        compute_matched(first, second)


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(UserError, match="above 0"):
        truncated(DEAR, [0])

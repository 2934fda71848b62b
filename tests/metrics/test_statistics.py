"""Intervals and tests against values worked out by hand and against scipy."""

import json
import math
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.metrics import (
    Interval,
    SignTest,
    bootstrap_interval,
    by_group,
    holm,
    macro_interval,
    mcnemar,
    paired_bootstrap,
    proportion_interval,
    sign_test,
    spread,
    wilcoxon_test,
)
from maps_rag.programs import UserError
from scipy import stats

BITS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)
SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=40)

# Two runs of ten questions: both right on 3, only the first on 5, only the second on 1, neither on 1.
FIRST = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]
SECOND = [1, 1, 1, 0, 0, 0, 0, 0, 1, 0]


def test_mcnemar_of_two_runs_is_the_value_worked_out_by_hand():
    # Six questions differ, one of them against the first: P = 2 (C(6,0) + C(6,1)) / 2^6 = 14 / 64.
    assert mcnemar(FIRST, SECOND) == SignTest(5, 1, 4, pytest.approx(14 / 64))


def test_the_paired_bootstrap_of_two_runs_agrees_with_values_worked_out():
    found = paired_bootstrap(FIRST, SECOND)
    # Of ten draws from +1 (5 in 10), 0 (4 in 10) and -1 (1 in 10), every outcome and its chance:
    chances = {}
    for plus in range(11):
        for minus in range(11 - plus):
            ways = math.factorial(10) // (
                math.factorial(plus) * math.factorial(minus) * math.factorial(10 - plus - minus)
            )
            chance = ways * 0.5**plus * 0.1**minus * 0.4 ** (10 - plus - minus)
            chances[plus - minus] = chances.get(plus - minus, 0) + chance
    # Those that are 0.4 or more away from the observed difference of 0.4.
    expected = sum(chance for total, chance in chances.items() if abs(total - 4) >= 4)
    assert found.difference == pytest.approx(0.4)
    assert found.p_value == pytest.approx(expected, abs=0.01)
    below, low = 0.0, None
    for total in sorted(chances):
        below += chances[total]
        if low is None and below > 0.025:
            low = total / 10
    assert found.low == pytest.approx(low)
    assert (found.high, found.n) == (pytest.approx(0.8), 10)


def test_the_bootstrap_of_two_questions_is_worked_out_in_the_head():
    # One of two differs: means of two draws are 0, 1/2, 1 with 1/4, 1/2, 1/4; half are 1/2 away from 1/2. One question
    # that differs can point either way, though: the p-value is 1.
    found = paired_bootstrap([1, 0], [0, 0])
    assert (found.difference, found.low, found.high, found.p_value) == (0.5, 0.0, 1.0, 1.0)


def test_few_questions_that_all_agree_are_no_proof():
    assert paired_bootstrap([1, 1, 1], [0, 0, 0]).p_value == mcnemar([1, 1, 1], [0, 0, 0]).p_value == 0.25


def test_methods_that_never_differ_are_not_told_apart():
    found = paired_bootstrap([1, 0, 1], [1, 0, 1])
    assert (found.difference, found.low, found.high, found.p_value) == (0, 0, 0, 1)
    assert mcnemar([1, 0, 1], [1, 0, 1]) == SignTest(0, 0, 3, 1.0)
    assert wilcoxon_test([0.1 + 0.2], [0.3]).p_value == 1.0


def test_mcnemar_takes_nothing_but_right_and_wrong():
    with pytest.raises(UserError, match=r"second holds 0\.5"):
        mcnemar([1, 0], [0.5, 1])


@given(BITS)
@settings(max_examples=50)
def test_the_exact_test_does_not_depend_on_order_or_agreement(pairs):
    first, second = zip(*pairs, strict=True)
    found, other = mcnemar(first, second), mcnemar(second, first)
    assert (found.wins, found.losses, found.p_value) == (other.losses, other.wins, other.p_value)
    more = mcnemar([*first, 1, 0], [*second, 1, 0])
    assert (more.p_value, more.ties) == (found.p_value, found.ties + 2)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=9))
@settings(max_examples=50)
def test_the_exact_test_is_scipys_permutation_test_of_signs(pairs):
    first, second = np.array(pairs, float).T
    exact = stats.permutation_test(
        (first - second,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    assert mcnemar(first, second).p_value == pytest.approx(exact.pvalue)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_sign_test_counts_which_is_better_and_not_by_how_much(alternative):
    first, second = [0.9, 0.5, 0.4, 0.7, 0.2], [0.1, 0.4, 0.4, 0.6, 0.3]
    found = sign_test(first, second, alternative=alternative)
    assert (found.wins, found.losses, found.ties) == (3, 1, 1)
    # Three or more of four by chance: 5/16; three or fewer: 15/16.
    assert found.p_value == pytest.approx({"two-sided": 10 / 16, "greater": 5 / 16, "less": 15 / 16}[alternative])


def test_the_rank_test_weighs_large_differences_more():
    first, second = [0.9, 0.5, 0.8, 0.2, 0.3], [0.1, 0.4, 0.6, 0.7, 0.3]
    # Differences 0.8, 0.1, 0.2, -0.5, 0: ranks of the losses 3, of 10 in all; 5 of 16 sign patterns have 3 or less.
    found = wilcoxon_test(first, second, alternative="greater")
    assert (found.statistic, found.n) == (7, 4)
    assert found.p_value == pytest.approx(5 / 16)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_rank_test_is_scipys(alternative):
    rng = np.random.default_rng(0)
    first, second = rng.random(60), rng.random(60)
    expected = stats.wilcoxon(first - second, alternative=alternative)
    found = wilcoxon_test(first, second, alternative=alternative)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))


def test_an_unknown_alternative_is_refused():
    for test in (sign_test, wilcoxon_test):
        with pytest.raises(UserError, match="'better'"):
            test([1], [0], alternative="better")


def test_holm_is_the_value_worked_out_by_hand():
    # Sorted .01 .02 .03 .04 times 4 3 2 1: .04 .06 .06 .04, then never falling.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert (holm([]), holm([0.2])) == ([], [0.2])


@given(st.lists(st.floats(0, 1), max_size=10), st.floats(0.01, 0.2))
@settings(max_examples=50)
def test_holm_rejects_what_its_steps_reject(p_values, level):
    rejected = set()
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] * (len(p_values) - step) > level:
            break
        rejected.add(place)
    assert {place for place, value in enumerate(holm(p_values)) if value <= level} == rejected


@pytest.mark.parametrize("p_values", [[0.5, 1.5], [float("nan")], [-0.1]])
def test_holm_refuses_what_is_no_p_value(p_values):
    with pytest.raises(UserError, match="0 to 1"):
        holm(p_values)


@pytest.mark.parametrize("kind", ["right or wrong", "graded", "many"])
def test_a_bootstrap_interval_is_scipys_within_what_drawing_varies(kind):
    rng = np.random.default_rng(1)
    scores = {"right or wrong": rng.random(200) < 0.3, "graded": rng.random(200), "many": rng.random(1_200)}[kind]
    scores = scores.astype(float)
    expected = stats.bootstrap((scores,), np.mean, method="percentile", rng=np.random.default_rng(2))
    found = bootstrap_interval(scores)
    allowed = 0.15 * expected.standard_error
    assert found.mean == pytest.approx(scores.mean())
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=allowed)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=allowed)
    assert found.n == len(scores)


def test_the_paired_interval_is_scipys_within_what_drawing_varies():
    rng = np.random.default_rng(3)
    first, second = rng.random(150), rng.random(150) * 0.9
    expected = stats.bootstrap((first - second,), np.mean, method="percentile", rng=np.random.default_rng(4))
    found = paired_bootstrap(first, second)
    allowed = 0.15 * expected.standard_error
    assert (found.low, found.high) == (
        pytest.approx(expected.confidence_interval.low, abs=allowed),
        pytest.approx(expected.confidence_interval.high, abs=allowed),
    )
    # For 150 questions a t test says nearly the same.
    assert found.p_value == pytest.approx(stats.ttest_rel(first, second).pvalue, abs=0.02)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_right_or_all_wrong_is_not_certain(value):
    # Clopper and Pearson's bound for none of five: 1 - 0.025^(1/5).
    bound = 1 - 0.025 ** (1 / 5)
    found = bootstrap_interval([value] * 5)
    assert (found.low, found.high) == pytest.approx((0, bound) if value == 0 else (1 - bound, 1))


def test_the_interval_of_a_proportion_is_wilsons():
    # 3 of 10, z = 1.959964: centre (0.3 + z^2 / 20) / (1 + z^2 / 10), and so on.
    z = 1.959963984540054
    centre, half = (0.3 + z * z / 20) / (1 + z * z / 10), z * math.sqrt(0.021 + z * z / 400) / (1 + z * z / 10)
    found = proportion_interval([1] * 3 + [0] * 7)
    assert found == Interval(pytest.approx(0.3), pytest.approx(centre - half), pytest.approx(centre + half), 10)
    with pytest.raises(UserError, match="0 or 1"):
        proportion_interval([0.5])


@given(SCORES, st.integers(0, 5))
@settings(max_examples=50)
def test_an_interval_lies_among_its_scores_and_is_the_same_for_the_same_seed(scores, seed):
    found = bootstrap_interval(scores, resamples=200, seed=seed)
    assert found == bootstrap_interval(scores, resamples=200, seed=seed)
    alike = set(scores) in ({0.0}, {1.0})
    least, most = (0, 1) if alike else (min(scores), max(scores))
    assert least - 1e-9 <= found.low <= found.high <= most + 1e-9
    assert json.loads(json.dumps(asdict(found))) == asdict(found)


def test_more_confidence_is_a_wider_interval_and_seeds_differ():
    scores = np.random.default_rng(5).random(50)
    narrow, wide = bootstrap_interval(scores, confidence=0.5), bootstrap_interval(scores, confidence=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert bootstrap_interval(scores, seed=1) != bootstrap_interval(scores, seed=2)


def test_the_mean_over_sets_weighs_sets_alike_and_is_surer_than_one():
    small, large = [1.0, 0.0] * 5, [1.0] * 60 + [0.0] * 20
    found = macro_interval([small, large])
    assert (found.mean, found.n) == (pytest.approx((0.5 + 0.75) / 2), 90)
    # The standard error of the mean of two means, from those of the two.
    error = math.sqrt(0.25 / 10 + 0.1875 / 80) / 2
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.06)
    assert macro_interval([small]) == bootstrap_interval(small)


def test_groups_have_the_mean_and_interval_of_their_questions():
    scores, groups = [1, 0, 1, 1, 0, 1], ["bridge", "comparison", "bridge", "", None, "comparison"]
    found = by_group(scores, groups)
    assert list(found) == ["bridge", "comparison"]
    assert found["bridge"] == bootstrap_interval([1, 1])
    assert found["comparison"] == bootstrap_interval([0, 1])
    assert list(by_group([1, 0, 1], [10, 4, 4])) == [4, 10]
    with pytest.raises(UserError, match="2 scores and 1 groups"):
        by_group([1, 0], ["bridge"])


def test_the_spread_of_runs_is_worked_out_by_hand():
    found = spread([[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 1, 1]])
    # Means 1/2, 1/4, 3/4. Of the three pairs of runs, none differs on the first question, two on each of the others.
    assert found.means == (0.5, 0.25, 0.75)
    assert (found.mean, found.sd, found.n) == (0.5, pytest.approx(0.25), 4)
    assert found.flip_rate == pytest.approx((0 + 2 / 3 + 2 / 3 + 2 / 3) / 4)
    assert found.unstable == 0.75


def test_one_run_has_no_spread():
    found = spread([[1, 0, 1]])
    assert (found.mean, found.sd, found.flip_rate, found.unstable) == (pytest.approx(2 / 3), None, None, None)


@given(st.integers(2, 5), st.integers(1, 8), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_the_flip_rate_of_right_and_wrong_is_that_of_drawing_two_runs(runs, size, random):
    scores = [[random.randint(0, 1) for _ in range(size)] for _ in range(runs)]
    found = spread(scores)
    drawn = [
        one[place] != two[place]
        for (i, one), (j, two) in product(enumerate(scores), repeat=2)
        if i != j
        for place in range(size)
    ]
    assert found.flip_rate == pytest.approx(np.mean(drawn))
    assert found.flip_rate <= found.unstable + 1e-12


@pytest.mark.parametrize("runs", [[], [[]], [[1, 0], [1]], [1, 0]])
def test_runs_must_be_scores_of_the_same_questions(runs):
    with pytest.raises(UserError):
        spread(runs)


@pytest.mark.parametrize(
    ("scores", "match"),
    [([], "at least one"), ([0.5, float("nan")], "number 1 is nan"), (["x"], "must be numbers"), ([[1.0]], "shape")],
)
def test_what_are_no_scores_is_refused(scores, match):
    with pytest.raises(UserError, match=match):
        bootstrap_interval(scores)


def test_scores_that_do_not_pair_and_options_out_of_range_are_refused():
    with pytest.raises(UserError, match="2 and 1"):
        paired_bootstrap([1, 0], [1])
    with pytest.raises(UserError, match="confidence"):
        bootstrap_interval([1, 0], confidence=95)
    with pytest.raises(UserError, match="resamples"):
        bootstrap_interval([1, 0], resamples=0)

"""Momentum, its alignment and its fit, by hand in two dimensions and on walks with a known beta."""

import numpy as np
import pytest
from maps_rag.metrics.drift import with_first_beta
from maps_rag.metrics.drift.momentum import alignment, defined, fit_beta, point_weights, step_weights
from maps_rag.metrics.drift.walks import by_question, walks_of
from maps_rag.programs.errors import UserError

from tests.metrics.drift_paths import path, shared_shift, with_momentum

# Steps up, right, up; so the points, seen from the question, are (0, 1), (1, 1), (1, 2).
STAIRS = path((1, 1), (2, 1), (2, 2))


def test_momentum_weighs_steps_as_defined():
    # m_1 = d_1; m_2 = .5 d_1 + .5 d_2; m_3 = .25 (.5 d_1 + .5 d_2) + .75 d_3
    assert step_weights([0, 0.5, 0.25]) == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0], [0.125, 0.125, 0.75]]))
    # In points: m_2 = .5 x_1 + .5 (x_2 - x_1) = .5 x_2
    assert point_weights([0, 0.5])[1] == pytest.approx([0, 0.5])


def test_alignment_by_hand():
    # m_1 = (0, 1) against (1, 1); m_2 = (.5, .5) against (1, 2)
    assert alignment(walks_of([STAIRS]), [0, 0.5])[0] == pytest.approx([1 / np.sqrt(2), 3 / np.sqrt(10)])


def test_the_fit_finds_the_beta_worked_out_by_hand():
    # m_2 = beta (0, 1) + (1 - beta) (1, 0) points along (1, 2) at beta = 2/3
    walks = walks_of([STAIRS])
    assert fit_beta(walks, 2) == pytest.approx([0, 2 / 3], abs=1e-4)
    assert fit_beta(walks, 2, "joint") == pytest.approx([0, 2 / 3], abs=1e-4)
    assert alignment(walks, fit_beta(walks, 2))[0, 1] == pytest.approx(1)


def test_a_straight_line_is_aligned_whatever_beta_is():
    walks = walks_of([path((1, 1), (1, 2), (1, 3))])
    assert alignment(walks, [0.3, 0.7])[0] == pytest.approx([1, 1])


def test_alignment_equals_the_definition_in_vectors():
    rng = np.random.default_rng(5)
    points = rng.standard_normal((5, 7))
    start, beta = rng.standard_normal(7), (0.2, 0.6, 0.1, 0.9)
    momentum, before, expected = np.zeros(7), start, []
    for value, now, following in zip(beta, points, points[1:], strict=False):
        momentum = value * momentum + (1 - value) * (now - before)
        to = following - start
        expected.append(momentum @ to / np.linalg.norm(momentum) / np.linalg.norm(to))
        before = now
    assert alignment(walks_of([path(*points, start=start)]), beta)[0] == pytest.approx(expected)


def test_a_round_of_several_sub_queries_is_their_mean_or_each_on_its_own():
    both = path((1, 1), (2, 1))
    wide = type(both)("q", both.start, (np.array([[1.0, 1.0], [3.0, 0.0]]), np.array([[2.0, 1.0]])))
    mean = walks_of([wide])
    assert mean.gram[0] == pytest.approx(np.array([[1.25, 1.5], [1.5, 2]]))  # (1, .5) and (1, 1)
    each = walks_of([wide], "each")
    assert each.gram[0] == pytest.approx(np.array([[1, 1], [1, 2]]))  # (0, 1) and (1, 1)
    assert each.gram[1] == pytest.approx(np.array([[4, 2], [2, 2]]))  # (2, 0) and again (1, 1)
    assert each.questions == 1
    assert by_question(alignment(each, [0]), each.group) == pytest.approx(np.array([[1 / np.sqrt(2)]]))


def test_another_first_beta_gives_the_same_alignment():
    walks = walks_of(shared_shift(20, 5, 6, 0.4, seed=1))
    beta = (0.0, 0.6, 0.8, 0.9)
    other = with_first_beta(beta, 0.5)
    assert other[0] == 0.5
    assert other[1] == pytest.approx(0.75)  # .6 / .4 = 1.5 of a momentum half as long: 3 = .75 / .25
    assert alignment(walks, other) == pytest.approx(alignment(walks, beta))
    assert with_first_beta(other, 0.0) == pytest.approx(beta)


def test_a_first_beta_of_one_is_refused():
    with pytest.raises(UserError, match="below 1"):
        with_first_beta((0.0, 0.5), 1.0)


@pytest.mark.parametrize("mode", ["step", "joint"])
def test_a_known_beta_is_recovered(mode):
    beta = (0.0, 0.6, 0.35, 0.8)
    walks = walks_of(with_momentum(2000, 12, beta, seed=3))
    assert fit_beta(walks, 4, mode) == pytest.approx(beta, abs=0.03)


def test_the_joint_objective_equals_that_of_a_grid_search():
    walks = walks_of(shared_shift(150, 4, 4, 0.3, seed=2))
    fitted = np.nanmean(alignment(walks, fit_beta(walks, 3, "joint")), axis=0).sum()
    grid = np.linspace(0, 0.99, 34)
    best = max(np.nanmean(alignment(walks, (0, a, b)), axis=0).sum() for a in grid for b in grid)
    assert fitted == pytest.approx(best, abs=1e-3)
    assert fitted >= best - 1e-9


def test_each_step_of_a_stepwise_fit_equals_a_grid_search():
    walks = walks_of(shared_shift(150, 5, 4, 0.3, seed=4))
    beta = fit_beta(walks, 4)
    for step in range(1, 4):
        found = np.nanmean(alignment(walks, beta[: step + 1]), axis=0)[step]
        grid = np.linspace(0, 0.999, 200)
        best = max(np.nanmean(alignment(walks, (*beta[:step], value)), axis=0)[step] for value in grid)
        assert found == pytest.approx(best, abs=1e-3)
        assert found >= best - 1e-9


def test_questions_weigh_the_same_whatever_the_number_of_their_walks():
    # Two runs of one question that turn right, one of another that goes on: alone, beta_2 would be 2/3 and any.
    turned, straight = path((1, 1), (2, 1), (2, 2), question="a"), path((1, 1), (2, 1), (3, 1), question="b")
    once = fit_beta(walks_of([turned, straight]), 2)
    assert fit_beta(walks_of([turned, turned, turned, straight]), 2) == pytest.approx(once, abs=1e-4)


def test_a_sub_query_that_is_the_question_has_no_direction():
    # x_2 = 0: S_1 has no target; S_2 has one, and momentum (0, 1) / 2 - (0, 1) / 2 = 0 there.
    walks = walks_of([path((1, 1), (1, 0), (2, 0))])
    assert defined(walks, 2).tolist() == [[False, True]]
    scores = alignment(walks, [0, 0.5])
    assert np.isnan(scores[0, 0])
    assert scores[0, 1] == 0


def test_nothing_has_moved_before_the_first_sub_query_that_differs():
    walks = walks_of([path((1, 0), (1, 1), (2, 1))])
    assert defined(walks, 2).tolist() == [[False, True]]


def test_a_repeated_sub_query_is_a_step_of_length_zero():
    walks = walks_of([path((1, 1), (1, 1), (1, 2))])
    assert walks.steps()[0] == pytest.approx([1, 0, 1])
    assert alignment(walks, [0, 0.5])[0] == pytest.approx([1, 1])
    assert alignment(walks, [0, 0.0])[0] == pytest.approx([1, 0])  # beta 0 keeps only the step of length zero


def test_a_walk_of_one_round_has_no_alignment():
    assert np.isnan(alignment(walks_of([path((1, 1))]), [0, 0.5])).all()
    with pytest.raises(UserError, match="fewer steps"):
        fit_beta(walks_of([path((1, 1))]), 1)


@pytest.mark.parametrize(("options", "match"), [({"vectors": "sum"}, "'sum'"), ({"vectors": "mean"}, "dimensions")])
def test_bad_walks_are_refused(options, match):
    paths = [path((1, 1)), path((1, 1, 1), start=(1.0, 0.0, 0.0))]
    with pytest.raises(UserError, match=match):
        walks_of(paths, **options)


def test_an_unknown_mode_is_refused():
    with pytest.raises(UserError, match="'both'"):
        fit_beta(walks_of([STAIRS]), 2, "both")

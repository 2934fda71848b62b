"""fit_momentum: encoding, halves, populations, nulls and their excess."""

import json

import numpy as np
import pytest
from maps_rag.metrics.drift import (
    CachedEncoder,
    fit_momentum,
    query_paths,
    random_walk_alignment,
    shared_shift_alignment,
)
from maps_rag.metrics.drift.estimate import estimate
from maps_rag.metrics.drift.momentum import alignment, fit_beta, with_first_beta
from maps_rag.metrics.drift.nulls import memoryless, shuffled
from maps_rag.metrics.drift.scores import momentum_of
from maps_rag.metrics.drift.walks import walks_of
from maps_rag.programs.errors import UserError

from tests.metrics.drift_paths import (
    TableEncoder,
    path,
    random_walks,
    shared_shift,
    trajectory,
    with_momentum,
)

WORDS = {"q": (1, 0), "up": (1, 1), "right": (2, 1), "on": (2, 2), "back": (1, 0)}


def asked(count, *rounds, word="q"):
    """As many questions, all with the same vectors, and their encoder."""
    table = WORDS | {f"{word}{i}": WORDS["q"] for i in range(count)}
    return [trajectory(f"{word}{i}", *rounds) for i in range(count)], TableEncoder(table)


def test_scores_by_hand_and_their_populations():
    long, encoder = asked(8, ["up"], ["right"], ["on"])
    found = fit_momentum(long, encoder, steps=2)
    assert found.questions == 8
    assert found.all == found.fixed
    assert found.all.fitted_on == (4, 4)
    assert found.all.beta == pytest.approx((0, 2 / 3), abs=1e-4)
    assert found.all.score[0].mean == pytest.approx(1 / np.sqrt(2))
    assert found.all.score[1].mean == pytest.approx(1)
    assert [item.n for item in found.all.score] == [4, 4]
    assert not found.first_beta_identifiable


def test_the_fixed_population_holds_only_questions_that_reach_the_last_step():
    long, encoder = asked(20, ["up"], ["right"], ["on"], ["back"], ["up"])
    short, others = asked(20, ["up"], ["on"], ["right"], word="s")
    encoder.table |= others.table
    found = fit_momentum(long + short, encoder, steps=4)
    # S_3 is against "back", which is the question itself: nobody has it, and the fit ends before.
    assert found.steps == 2
    assert found.all.score[1].n == found.fixed.score[1].n == 20
    found = fit_momentum([*long, *short], TableEncoder(encoder.table | {"back": (0, 1)}), steps=4)
    assert found.steps == 4
    held = found.fixed.score[3].n
    assert [item.n for item in found.all.score] == [20, 20, held, held]
    assert [item.n for item in found.fixed.score] == [held] * 4
    assert sum(found.fixed.fitted_on) + 4 * held == 4 * 20


def test_trajectories_with_fewer_rounds_are_left_out():
    long, encoder = asked(8, ["up"], ["right"], ["on"])
    short, others = asked(8, ["up"], ["right"], word="s")
    encoder.table |= others.table
    assert fit_momentum(long + short, encoder).questions == 8
    assert fit_momentum(long + short, encoder, min_rounds=2).questions == 16


def test_runs_of_one_question_lie_in_the_same_half_and_count_once():
    long, encoder = asked(6, ["up"], ["right"], ["on"])
    found = fit_momentum(long * 3, encoder)
    assert found.questions == 6
    assert found.all.fitted_on == (3, 3)
    assert found.all.score[0].n == 3


def test_undefined_scores_are_counted():
    long, encoder = asked(8, ["up"], ["back"], ["on"])
    more, others = asked(8, ["up"], ["right"], ["on"], word="s")
    encoder.table |= others.table
    found = fit_momentum(long + more, encoder)
    assert found.all.undefined[0] + found.all.score[0].n == 8
    assert found.all.undefined[0] > 0
    assert found.all.undefined[1] == 0


def test_each_text_is_encoded_once_and_in_batches():
    long, encoder = asked(5, ["up", "right"], ["right"], ["on"])
    shared = CachedEncoder(encoder, batch_size=4)
    paths = query_paths(long, shared)
    assert sorted(text for batch in encoder.batches for text in batch) == sorted(
        [*(f"q{i}" for i in range(5)), "up", "right", "on"]
    )
    assert [len(batch) for batch in encoder.batches] == [4, 4]
    query_paths(long, shared)
    assert len(encoder.batches) == 2
    assert paths[0].rounds[0].tolist() == [[1, 1], [2, 1]]


def test_texts_that_were_withheld_and_questions_without_rounds_have_no_path():
    encoder = TableEncoder(WORDS)
    given = [trajectory("", [""]), trajectory("q", [""]), trajectory("q"), trajectory("q", ["up"])]
    assert [found.question for found in query_paths(given, encoder)] == ["q"]


def test_a_round_without_a_search_is_none():
    given = trajectory("q", ["up"], {"queries": [], "passages": []}, ["on"])
    assert len(query_paths([given], TableEncoder(WORDS))[0].rounds) == 2


def test_a_vector_that_is_not_finite_is_an_error_that_names_the_text():
    encoder = TableEncoder(WORDS | {"up": (np.nan, 1)})
    with pytest.raises(UserError, match="not finite for 'up'"):
        query_paths([trajectory("q", ["up"])], encoder)
    with pytest.raises(UserError, match="not finite"):
        path((1, np.inf))


def test_an_encoder_without_queries_or_with_too_few_rows_is_refused():
    with pytest.raises(UserError, match="encode_queries"):
        query_paths([trajectory("q", ["up"])], object())

    class Short(TableEncoder):
        def encode_queries(self, texts):
            return super().encode_queries(texts)[1:]

    with pytest.raises(UserError, match="one row each"):
        query_paths([trajectory("q", ["up"])], Short(WORDS))


@pytest.mark.parametrize(
    "rounds",
    [(["up"],), (["up"], ["right"]), (["back"], ["back"], ["back"])],
    ids=["one round", "two rounds", "never moves"],
)
def test_too_little_to_fit_is_an_error_that_says_so(rounds):
    given, encoder = asked(8, *rounds)
    with pytest.raises(UserError, match="of 8 trajectories"):
        fit_momentum(given, encoder)


def test_sub_queries_that_all_repeat_the_first_are_aligned():
    given, encoder = asked(8, ["up"], ["up"], ["up"])
    found = fit_momentum(given, encoder)
    assert [item.mean for item in found.all.score] == pytest.approx([1, 1])
    assert found.all.nulls["shuffled"].mean_excess.mean == pytest.approx(0)


@pytest.mark.parametrize(
    ("option", "match"),
    [({"steps": 0}, "steps"), ({"min_rounds": 1}, "min_rounds"), ({"train": 1.0}, "train"), ({"draws": 0}, "draws")],
)
def test_options_out_of_range_are_refused(option, match):
    given, encoder = asked(8, ["up"], ["right"], ["on"])
    with pytest.raises(UserError, match=match):
        fit_momentum(given, encoder, **option)


def test_a_shuffled_walk_has_the_same_points_in_another_order():
    walks = walks_of([path((1, 1), (2, 1), (2, 2)), path((1, 1), (2, 1))])
    drawn = shuffled(walks, np.random.default_rng(0))
    assert sorted(np.diag(drawn.gram[0])) == [1, 2, 5]
    assert sorted(np.diag(drawn.gram[1])) == [0, 1, 2]
    assert drawn.gram[1, 2, 2] == 0  # the padding stays at the end
    assert sorted(drawn.start[0]) == [0, 1, 1]
    assert {tuple(np.diag(shuffled(walks, np.random.default_rng(seed)).gram[0])) for seed in range(60)} == {
        (1, 2, 5), (1, 5, 2), (2, 1, 5), (2, 5, 1), (5, 1, 2), (5, 2, 1)
    }  # fmt: skip


def test_memoryless_walks_keep_the_lengths_of_the_steps_and_nothing_else():
    walks = walks_of(random_walks(400, 4, 50, seed=1))
    drawn = memoryless(walks, np.random.default_rng(0))
    assert drawn.steps() == pytest.approx(walks.steps())
    lengths = np.sqrt(walks.steps())
    along = drawn.gram[:, 0, 1] - drawn.gram[:, 0, 0]  # the first step times the second
    cosines = along / (lengths[:, 0] * lengths[:, 1])
    # Directions are uniform in 50 dimensions: their cosine has mean 0 and variance 1 / 50.
    assert abs(cosines.mean()) < 4 / np.sqrt(50 * 400)
    assert cosines.var() == pytest.approx(1 / 50, rel=0.25)


def test_memoryless_walks_in_fewer_dimensions_than_rounds():
    walks = walks_of(random_walks(300, 5, 2, seed=1))
    drawn = memoryless(walks, np.random.default_rng(0))
    assert drawn.steps() == pytest.approx(walks.steps())
    assert np.linalg.matrix_rank(drawn.gram[0]) == 2


def test_a_walk_of_fewer_rounds_stays_short_in_the_memoryless_null():
    drawn = memoryless(walks_of([path((1, 1), (2, 1), (2, 2)), path((1, 1))]), np.random.default_rng(0))
    assert drawn.gram[1, 0, 0] == pytest.approx(1)
    assert not drawn.gram[1, 1:].any()


def test_closed_forms_by_hand():
    assert random_walk_alignment(3) == pytest.approx((np.sqrt(1 / 2), np.sqrt(2 / 3), np.sqrt(3 / 4)))
    # rho = 1/2: 1/2 / sqrt(1/2 + 1/2) and 1/2 / sqrt(1/2 + 1/4)
    assert shared_shift_alignment(0.5, 2) == pytest.approx((0.5, 1 / np.sqrt(3)))


def test_simulated_nulls_reach_the_values_worked_out_before():
    # An independent simulation in 768 dimensions, fitted jointly, gave these with a beta_1 of 0.04.
    walks = walks_of(shared_shift(300, 5, 768, 0.405, seed=0))
    beta = fit_beta(walks, 4, "joint")
    assert with_first_beta(beta, 0.04)[1:] == pytest.approx((0.62, 0.82, 0.92), abs=0.02)
    assert np.nanmean(alignment(walks, beta), axis=0) == pytest.approx([0.41, 0.48, 0.52, 0.54], abs=0.012)


def test_forgetful_data_have_no_excess_over_their_own_null():
    walks = walks_of(shared_shift(120, 5, 64, 0.4, seed=7, width=3))
    found = momentum_of(walks, draws=5).all.nulls["shuffled"]
    assert found.mean_excess.low < 0 < found.mean_excess.high
    walks = walks_of(random_walks(120, 5, 64, seed=8))
    found = momentum_of(walks, draws=5).all.nulls["memoryless"]
    assert found.mean_excess.low < 0 < found.mean_excess.high


def test_momentum_that_is_there_shows_as_excess_over_both_nulls():
    walks = walks_of(with_momentum(200, 64, (0.0, 0.7, 0.7, 0.7), seed=1, noise=0.3))
    found = momentum_of(walks, draws=5).all
    assert all(item.low > 0 for item in found.nulls["shuffled"].excess[1:])
    assert found.nulls["memoryless"].excess[0].low > 0


def test_the_same_seed_gives_the_same_numbers_and_all_of_it_is_plain_data():
    walks = walks_of(shared_shift(40, 4, 8, 0.4, seed=7))
    first, second = (momentum_of(walks, draws=2, seed=3).as_dict() for _ in range(2))
    assert json.loads(json.dumps(first)) == json.loads(json.dumps(second))
    assert momentum_of(walks, draws=2, seed=4).as_dict() != first
    assert "NaN" not in json.dumps(first)


def test_an_interval_by_hand():
    # mean 2, standard error 1 / sqrt(3), Student's t of 2 degrees of freedom 4.30265
    found = estimate([1, 2, 3, np.nan])
    assert (found.mean, found.n) == (2, 3)
    assert (found.low, found.high) == pytest.approx((2 - 4.30265 / np.sqrt(3), 2 + 4.30265 / np.sqrt(3)), abs=1e-4)
    assert estimate([np.nan]) is None
    assert estimate([1.5]).low is None

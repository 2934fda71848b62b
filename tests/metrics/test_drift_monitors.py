"""Offset, similarity, monitors, leaks, flag and stopping, each by hand in two dimensions."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from maps_rag.metrics.drift import (
    PUBLISHED_STOPPING,
    CachedEncoder,
    cumulative_offset,
    drift_flags,
    leaks,
    monitors,
    similarity_by_round,
    stopping,
)
from maps_rag.metrics.drift.flag import has_drifted
from maps_rag.metrics.drift.offset import momentum_to_question
from maps_rag.metrics.drift.walks import walks_of
from maps_rag.programs.errors import UserError

from tests.metrics.drift_paths import TableEncoder, path, trajectory

# Cosines with q: near .8, far .6, across 0.
TABLE = {
    "q": (1, 0),
    "r": (0, 1),
    "near": (0.8, 0.6),
    "far": (0.6, 0.8),
    "across": (0, 1),
    "long": (3, 4),
    "G\ngold": (0.8, 0.6),
    "other gold": (0, 1),
}
GOLD = {"title": "G", "text": "gold"}
OTHER = {"title": "", "text": "other gold"}


@pytest.fixture
def encoder():
    return TableEncoder(TABLE)


def means(found):
    """The means by round, None where there is none."""
    return [None if item is None else item.mean for item in found]


def close(*expected):
    """Means by round up to the rounding of 32 bits."""
    return pytest.approx(list(expected), abs=1e-6)


def test_offset_by_hand():
    # From q0 = (1, 0): steps (1, 1), (-2, 0), (2, 0); with beta 1/2, 1/2 from m_1 = (1, 1):
    # m_2 = (-.5, .5), m_3 = (.75, .25).
    walks = walks_of([path((2, 1), (0, 1), (2, 1))])
    cosines = [1 / np.sqrt(2), -1 / np.sqrt(2), 3 / np.sqrt(10)]
    assert momentum_to_question(walks, [0, 0.5, 0.5])[0] == pytest.approx(cosines)


def test_signed_offset_telescopes_and_absolute_does_not():
    encoder = TableEncoder({"q": (1, 0), "a": (2, 1), "b": (0, 1)})
    found = cumulative_offset([trajectory("q", ["a"], ["b"], ["a"])], encoder, (0, 0.5, 0.5)).all
    first, second, third = 1 / np.sqrt(2), -1 / np.sqrt(2), 3 / np.sqrt(10)
    assert means(found.cosine) == close(first, second, third)
    assert means(found.signed) == close(0, second - first, third - first)
    assert means(found.absolute) == close(0, first - second, (first - second) + (third - second))


def test_offset_counts_who_reaches_a_step_and_who_reaches_the_last():
    encoder = TableEncoder({"q": (1, 0), "r": (1, 0), "a": (2, 1), "b": (0, 1)})
    given = [trajectory("q", ["a"], ["b"]), trajectory("r", ["b"])]
    found = cumulative_offset(given, encoder, (0, 0.5))
    assert [item.n for item in found.all.cosine] == [2, 1]
    assert [item.n for item in found.fixed.cosine] == [1, 1]
    # From q and r to "b" is (-1, 1).
    assert means(found.all.cosine)[0] == pytest.approx((1 / np.sqrt(2) - 1 / np.sqrt(2)) / 2)
    assert means(found.fixed.cosine)[0] == pytest.approx(1 / np.sqrt(2))


def test_offset_of_momentum_without_a_direction_is_undefined():
    # The first sub-query is the question; then there is a step (0, 1), across it.
    walks = walks_of([path((1, 0), (1, 1))])
    found = momentum_to_question(walks, [0, 0.5])[0]
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(0)


@pytest.mark.parametrize("beta", [(), (0, 1.0), (-0.1,)])
def test_offset_refuses_a_beta_out_of_range(beta, encoder):
    with pytest.raises(UserError, match="beta"):
        cumulative_offset([], encoder, beta)


def test_similarity_to_the_question_by_hand(encoder):
    given = [trajectory("q", ["near", "across"], ["long"]), trajectory("r", ["across"])]
    found = similarity_by_round(given, encoder, [[], []]).question
    # q: mean (.8 + 0) / 2 and best .8; then .6 whatever the length. r: "across" lies on it.
    assert means(found.mean) == close((0.4 + 1) / 2, 0.6)
    assert means(found.best) == close((0.8 + 1) / 2, 0.6)
    assert [item.n for item in found.mean] == [2, 1]


def test_similarity_to_gold_is_over_all_pairs_or_the_best_for_each_passage(encoder):
    found = similarity_by_round([trajectory("q", ["near", "across"])], encoder, [[GOLD, OTHER]])
    # near: 1 and .6; across: .6 and 1
    assert means(found.gold.mean) == close(0.8)
    assert means(found.gold.best) == close(1.0)
    assert found.without_gold == 0


def test_similarity_to_random_passages_takes_those_of_other_questions(encoder):
    given = [trajectory("q", ["near"], ["far"]), trajectory("r", ["across"])]
    found = similarity_by_round(given, encoder, [[GOLD], [OTHER]])
    # q has the gold of r: .6, then .8; r has that of q: .6
    assert means(found.random.mean) == close(0.6, 0.8)
    assert [item.n for item in found.random.mean] == [2, 1]
    assert means(found.gold.mean) == close(1.0, 0.96)


def test_a_question_whose_gold_is_all_there_is_has_no_random_passages(encoder):
    found = similarity_by_round([trajectory("q", ["near"])], encoder, [[GOLD]])
    assert means(found.random.mean) == [None]


def test_questions_without_gold_count_only_for_the_question(encoder):
    given = [trajectory("q", ["near"]), trajectory("r", ["near"])]
    found = similarity_by_round(given, encoder, [[GOLD], []])
    assert found.without_gold == 1
    assert found.question.mean[0].n == 2
    assert found.gold.mean[0].n == 1


def test_gold_named_by_id_needs_its_text(encoder):
    given = [trajectory("q", ["near"])]
    assert similarity_by_round(given, encoder, [["g1"]]).without_gold == 1
    found = similarity_by_round(given, encoder, [["g1"]], texts={"g1": GOLD})
    assert means(found.gold.mean) == close(1.0)


def test_runs_of_one_question_are_averaged_first(encoder):
    given = [trajectory("q", ["near"]), trajectory("q", ["across"]), trajectory("r", ["across"])]
    found = similarity_by_round(given, encoder, [[], [], []]).question.mean[0]
    assert found.mean == pytest.approx((0.4 + 1) / 2)
    assert found.n == 2


def test_no_trajectories_have_no_rounds(encoder):
    assert similarity_by_round([], encoder, []).question.mean == ()
    assert monitors([], encoder, []).new_gold == ()


@pytest.mark.parametrize("measure", [similarity_by_round, monitors, drift_flags])
def test_gold_must_be_given_for_each_trajectory(measure, encoder):
    with pytest.raises(UserError, match="one each"):
        measure([trajectory("q", ["near"])], encoder, [])


def test_gold_without_an_encoder_of_passages_is_an_error(encoder):
    class Queries:
        encode_queries = encoder.encode_queries

    with pytest.raises(UserError, match="encode_passages"):
        similarity_by_round([trajectory("q", ["near"])], Queries(), [[GOLD]])


def test_one_cache_serves_all(encoder):
    shared = CachedEncoder(encoder)
    given, gold = [trajectory("q", ["near", "far"], ["across"])], [[GOLD]]
    similarity_by_round(given, shared, gold)
    monitors(given, shared, gold)
    drift_flags(given, shared, gold)
    cumulative_offset(given, shared, (0, 0.5))
    texts = [text for batch in encoder.batches for text in batch]
    assert sorted(texts) == sorted(["q", "near", "far", "across", "G\ngold"])


def passages(*names):
    return [{"id": name} for name in names]


def test_gold_and_repeats_by_round(encoder):
    given = trajectory(
        "q",
        {"queries": ["near", "far"], "ids": [["a", "b"], ["b", "c"]], "passages": passages("a", "b", "c")},
        {"queries": ["near"], "passages": passages("b", "c", "d", "e")},
        {"queries": ["near"], "passages": passages("a")},
    )
    found = monitors([given], encoder, [["a", "d", "x"]])
    assert means(found.new_gold) == [1, 1, 0]
    assert means(found.gold_share) == close(1 / 3, 2 / 3, 2 / 3)
    assert means(found.repeated_passages) == [None, 0.5, 1.0]


def test_without_gold_the_other_monitors_remain(encoder):
    found = monitors([trajectory("q", ["near"], ["near"])], encoder, [[]])
    assert means(found.new_gold) == [None, None]
    assert means(found.to_earlier) == [None, pytest.approx(1)]


def test_similarity_of_sub_queries_to_each_other_by_hand(encoder):
    given = trajectory("q", ["near", "far", "across"], ["across"], ["q", "near"])
    found = monitors([given], encoder, [[]])
    # near.far .96, near.across .6, far.across .8; then one alone; then q.near .8
    assert means(found.within_round)[0] == pytest.approx((0.96 + 0.6 + 0.8) / 3)
    assert means(found.within_round)[1:] == [None, pytest.approx(0.8)]
    # across was asked before; then q is nearest to near (.8), and near was asked before
    assert means(found.to_earlier) == [None, pytest.approx(1), pytest.approx((0.8 + 1) / 2)]


def test_a_vector_of_length_zero_has_no_similarity():
    encoder = TableEncoder(TABLE | {"near": (0, 0)})
    given = [trajectory("q", ["near"], ["near"])]
    found = monitors(given, encoder, [[]])
    assert means(found.to_earlier) == [None, None]
    assert means(similarity_by_round(given, encoder, [[]]).question.best) == [None, None]
    assert drift_flags(given, encoder, [[]]).flags == (None,)


def test_leaks_by_hand():
    given = trajectory(
        "Which film is older?",
        {
            "queries": ["director of the film Pod People", "Pod People"],
            "directions": ["find who directed Pod People"],
            "reasoning_state": "Known: the director of film Pod People is Simon.",
        },
        {
            "queries": ["birth date of Juan Simon"],
            "directions": ["birth date of Simon"],
            "reasoning_state": "Searched the birth date of Simon.",
        },
    )
    first, second = leaks(given)
    # Articles are dropped: "director of film Pod People" stands there; the name of two words does not count.
    assert (first.sub_queries.whole, first.sub_queries.longest_run) == (1, 1)
    # Of "find who directed Pod People" the state has "Pod People", 2 of 5 words.
    assert (first.directions.whole, first.directions.longest_run) == (0, 0.4)
    # "director of film Pod People": "of", 1 of 5. "birth date of Juan Simon": "birth date of", 3 of 5.
    assert (second.sub_queries.whole, second.sub_queries.longest_run) == (0, pytest.approx((0.2 + 0.6) / 2))
    assert (second.directions.whole, second.directions.longest_run) == (0.5, pytest.approx((0 + 1) / 2))


def test_what_stands_in_the_question_and_where_no_state_is_kept_is_no_leak():
    question = "Who directed the film Pod People in Spain?"
    given = trajectory(
        question,
        {"queries": ["directed the film Pod People"], "reasoning_state": "They directed the film Pod People."},
        {"queries": ["where did Juan Simon work"]},
    )
    first, second = leaks(given)
    assert first.sub_queries is None
    assert second.sub_queries is None


def test_leaks_are_averaged_by_round():
    words = "one two three four"
    encoder = TableEncoder({"q": (1, 0), words: (0, 1), "r": (1, 0)})
    given = [
        trajectory("q", {"queries": [words], "reasoning_state": words}),
        trajectory("r", {"queries": [words], "reasoning_state": "one two"}),
    ]
    found = monitors(given, encoder, [[], []])
    assert means(found.sub_queries_in_state) == [0.5]
    assert means(found.sub_query_runs_in_state) == [0.75]
    assert means(found.directions_in_state) == [None]


def test_the_flag_by_hand(encoder):
    # The best of the first round .8, of the last .6: fallen by .2.
    assert has_drifted(path((0.8, 0.6), (0, 1), (0.6, 0.8)))
    assert not has_drifted(path((0.8, 0.6), (0.6, 0.8)), margin=0.25)
    assert not has_drifted(path((0.6, 0.8), (0.8, 0.6)))
    assert has_drifted(path((0.8, 0.6))) is None
    wide = trajectory("q", ["near", "across"], ["far", "near"])
    assert drift_flags([wide], encoder, [[]]).flags == (False,)  # the best counts


def test_the_precision_of_the_flag_by_hand(encoder):
    def asked(last, found):
        return trajectory("q", {"queries": ["near"], "passages": []}, {"queries": [last], "passages": passages(found)})

    given = [
        asked("far", "x"),  # flagged, and nothing found
        asked("far", "y"),  # flagged, and nothing found
        asked("far", "g"),  # flagged, but gold found
        asked("near", "g"),
        asked("near", "x"),  # nothing found, not flagged
        asked("far", "x"),  # flagged; no gold is known
        trajectory("q", ["near"]),  # one round
    ]
    found = drift_flags(given, encoder, [["g"]] * 5 + [[], ["g"]])
    assert found.flags == (True, True, True, False, False, True, None)
    assert (found.flagged.mean, found.flagged.n) == (4 / 6, 6)
    assert (found.precision.mean, found.precision.n) == (2 / 3, 3)
    assert (found.base_rate.mean, found.base_rate.n) == (3 / 5, 5)
    assert (found.recall.mean, found.recall.n) == (2 / 3, 3)
    # Wilson's interval of 2 of 3, from its formula with z = 1.959964
    z = 1.959964
    centre, half = (2 / 3 + z**2 / 6) / (1 + z**2 / 3), z * np.sqrt(2 / 27 + z**2 / 36) / (1 + z**2 / 3)
    assert (found.precision.low, found.precision.high) == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert json.loads(json.dumps(asdict(found)))["margin"] == 0.02


def test_without_gold_the_flag_has_no_precision(encoder):
    found = drift_flags([trajectory("q", ["near"], ["far"])], encoder, [[]])
    assert found.precision is found.base_rate is found.recall is None
    assert found.flagged.mean == 1


def test_a_margin_out_of_range_is_refused(encoder):
    with pytest.raises(UserError, match="margin"):
        drift_flags([], encoder, [], margin=-0.1)


def test_stopping_in_rounds_and_in_the_papers_steps():
    given = [trajectory("q", *[["near"]] * rounds) for rounds in (0, 1, 1, 2, 3, 4, 9, 1)]
    found = stopping(given)
    assert found.rounds == {0: 1, 1: 3, 2: 1, 3: 1, 4: 1, 9: 1}
    assert found.steps == {1: 1, 2: 3, 3: 1, 4: 1, 5: 1, 10: 1}
    assert asdict(found.bars) == {
        "step_1": 1 / 8, "step_2": 3 / 8, "steps_3_and_4": 2 / 8, "step_5_or_later": 2 / 8, "mean_steps": 29 / 8
    }  # fmt: skip
    assert found.mean_rounds.mean == pytest.approx(21 / 8)
    assert stopping([]) is None


def test_published_bars_add_up():
    for bars in PUBLISHED_STOPPING.values():
        shares = (bars.step_1, bars.step_2, bars.steps_3_and_4, bars.step_5_or_later)
        assert sum(shares) == pytest.approx(1)
    assert PUBLISHED_STOPPING["MAPS"].step_2 == 0.627


def test_all_of_it_is_plain_data(encoder):
    given, gold = [trajectory("q", ["near", "far"], ["across"])], [[GOLD]]
    found = [
        asdict(item)
        for item in (
            similarity_by_round(given, encoder, gold),
            monitors(given, encoder, gold),
            cumulative_offset(given, encoder, (0, 0.5)),
            stopping(given),
        )
    ]
    assert "NaN" not in json.dumps(found)

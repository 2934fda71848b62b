"""Merging, cutting and splitting passages, and the small text helpers: rules and properties."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from maps_rag.programs.passages import (
    SENTENCES_PER_PASSAGE,
    citations,
    cut_passage,
    merge_passages,
    opening,
    show_passage,
    split_sentences,
)
from maps_rag.programs.texts import distinct, says_something
from maps_rag.programs.types import Passage

scores = st.floats(-1, 1, allow_nan=False)
ranked = st.lists(
    st.builds(Passage, st.sampled_from("abcdefgh"), st.just("T"), st.just("text"), scores),
    max_size=6,
    unique_by=lambda passage: passage.id,
).map(lambda found: sorted(found, key=lambda passage: -passage.score))
prose = st.text(alphabet="AbcZ .!?()\"'\n1,", max_size=400)


def passage(text, title="T", id="p"):
    return Passage(id, title, text)


# Merging.


def test_merging_keeps_each_passage_once_at_its_best_rank_with_its_best_score():
    one = [Passage("a", "", "", 0.9), Passage("b", "", "", 0.8)]
    two = [Passage("b", "", "", 0.95), Passage("c", "", "", 0.7), Passage("a", "", "", 0.99)]
    assert [(p.id, p.score) for p in merge_passages([one, two])] == [("a", 0.99), ("b", 0.95), ("c", 0.7)]


def test_among_equal_ranks_the_earlier_query_comes_first():
    results = [[Passage(id, "", "", 0.1 * i)] for i, id in enumerate("xyz")]
    assert [p.id for p in merge_passages(results)] == ["x", "y", "z"]


@given(st.lists(ranked, max_size=4))
def test_merging_loses_and_repeats_nothing(results):
    merged = merge_passages(results)
    ids = [p.id for p in merged]
    assert len(ids) == len(set(ids))
    assert set(ids) == {p.id for found in results for p in found}
    for p in merged:
        assert p.score == max(other.score for found in results for other in found if other.id == p.id)
    best = {p.id: min(f.index(q) for f in results for q in f if q.id == p.id) for p in merged}
    assert [best[id] for id in ids] == sorted(best.values())


@given(ranked)
def test_merging_one_result_changes_nothing(found):
    assert merge_passages([found]) == found
    assert merge_passages([found, found]) == found


# Cutting.


def test_a_short_passage_is_not_touched():
    p = passage("Short.")
    assert cut_passage(p, 100) is p


def test_a_passage_is_cut_at_the_end_of_a_sentence_where_one_ends_late_enough():
    text = "The first sentence is here. The second one is here too. The third is cut."
    assert cut_passage(passage(text), 60).text == "The first sentence is here. The second one is here too."


def test_a_passage_without_such_an_end_is_cut_at_a_word_and_says_so():
    assert cut_passage(passage("one two three four five six seven"), 15).text == "one two three ..."


def test_a_cut_passage_keeps_id_title_and_score():
    cut = cut_passage(Passage("i", "t", "word " * 50, 0.5), 100)
    assert (cut.id, cut.title, cut.score) == ("i", "t", 0.5)


@given(prose, st.integers(10, 200))
def test_a_cut_text_is_a_beginning_of_the_text_and_no_longer_than_allowed(text, characters):
    cut = cut_passage(passage(text), characters).text
    if cut == text:
        return
    assert len(text) > characters
    assert text.startswith(cut.removesuffix(" ..."))
    assert len(cut.removesuffix(" ...")) <= characters
    assert cut_passage(passage(cut.removesuffix(" ...")), characters).text == cut.removesuffix(" ...")


# Sentences.


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        ("   ", []),
        ("One sentence without a stop", ["One sentence without a stop"]),
        ("First one. Second one.", ["First one.", "Second one."]),
        ("Really? Yes! Good.", ["Really?", "Yes!", "Good."]),
        ("J. R. R. Tolkien wrote it. He was born in 1892.", ["J. R. R. Tolkien wrote it.", "He was born in 1892."]),
        ("Dr. Smith met Mrs. Jones. They talked.", ["Dr. Smith met Mrs. Jones.", "They talked."]),
        ("It was founded by St. John of the Cross, Jr. and others.", None),
        ("He lived in the U.S. Army barracks. Then he left.", ["He lived in the U.S. Army barracks.", "Then he left."]),
        ("It has 3.5 million people. It grew.", ["It has 3.5 million people.", "It grew."]),
        ('He said "Stop." Then he went.', ['He said "Stop."', "Then he went."]),
        ("It opened (see below). It closed.", ["It opened (see below).", "It closed."]),
        ("Born c. 1850 in Ghent. Died 1900.", ["Born c. 1850 in Ghent.", "Died 1900."]),
        ("He was born in Jan. 1900. He died.", ["He was born in Jan. 1900.", "He died."]),
        ("no capital follows. so this is one", ["no capital follows. so this is one"]),
        ("Two lines.\nStill two.", ["Two lines.", "Still two."]),
    ],
)
def test_running_text_is_split_into_sentences(text, sentences):
    assert split_sentences(text) == (sentences if sentences is not None else [text])


@given(prose)
def test_splitting_loses_nothing_but_space(text):
    sentences = split_sentences(text)
    assert re.sub(r"\s", "", "".join(sentences)) == re.sub(r"\s", "", text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@given(prose)
def test_a_sentence_is_a_piece_of_the_text(text):
    assert all(sentence in text for sentence in split_sentences(text))


# Openings.


@given(prose)
def test_an_opening_is_the_title_and_the_first_sentences(text):
    shown = opening(passage(text, title="Title"))
    assert shown == " ".join(["Title:", *split_sentences(text)[:SENTENCES_PER_PASSAGE]]).strip() or not text.strip()
    assert opening(passage(text, title="")) == shown.removeprefix("Title: ")


def test_a_passage_without_a_title_is_shown_as_its_text():
    assert show_passage(passage("Text.", title="")) == "Text."
    assert show_passage(passage("Text.", title="Title")) == "Title: Text."


# Lists that a model writes.


@given(st.lists(st.text(max_size=12), max_size=10), st.integers(1, 5))
def test_distinct_texts_are_stripped_first_seen_and_no_two_alike(texts, limit):
    kept = distinct(texts, limit)
    assert len(kept) <= limit
    assert all(text and text == text.strip() for text in kept)
    assert len({text.casefold() for text in kept}) == len(kept)
    stripped = [text.strip() for text in texts if text.strip()]
    positions = [stripped.index(text) for text in kept]
    assert positions == sorted(positions)
    assert len(kept) == min(limit, len({text.casefold() for text in stripped}))


@given(st.lists(st.text(max_size=12), max_size=10), st.integers(1, 5))
def test_distinct_is_idempotent(texts, limit):
    kept = distinct(texts, limit)
    assert distinct(kept, limit) == kept


@pytest.mark.parametrize("nothing", ["", "  ", "None", "none.", "(None)", "Nothing.", "N/A", "null", "unknown"])
def test_ways_to_say_nothing(nothing):
    assert not says_something(nothing)


@pytest.mark.parametrize("something", ["None of the films was Belgian.", "42", "Unknown Pleasures is an album."])
def test_facts_that_only_begin_like_nothing(something):
    assert says_something(something)


def test_each_cited_passage_is_cited_once_in_the_order_of_first_use():
    a, b = passage("x", "A", "a"), passage("y", "B", "b")
    assert citations([b, a, b]) == [{"id": "b", "title": "B"}, {"id": "a", "title": "A"}]

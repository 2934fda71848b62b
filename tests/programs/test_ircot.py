"""IRCoT: a sentence, a search, a sentence, until a sentence answers; then a separate reader."""

from __future__ import annotations

import pytest
from maps_rag.programs import Passage, UserError
from maps_rag.programs.ircot import IRCoT, first_sentence

from tests.programs.method_checks import (
    QUESTION,
    ByOutput,
    check_saving,
    check_sync_async_and_stream_are_equal,
    queries_of,
    roles_of,
    run,
    titles_in,
)
from tests.scripted import StubRetriever

ANSWER = {"reasoning": "because", "answer": "the answer"}


def thoughts(*sentences):
    return [{"thought": sentence} for sentence in sentences]


def script():
    return ByOutput(thought=thoughts("The first fact.", "So the answer is: x."), answer=ANSWER)


def make(**knobs):
    return IRCoT(StubRetriever(), **knobs)


def test_thoughts_and_searches_alternate_until_a_thought_answers():
    retriever = StubRetriever()
    prediction, sent = run(IRCoT(retriever, passages=2), script())
    # By hand: search q; think; search thought 1; think "answer is"; read. R = 2: 3 calls, 2 retrievals.
    assert retriever.batches == [([QUESTION], 2), (["The first fact."], 2)]
    assert roles_of(prediction) == ["think", "think", "answer"]
    first, second, reader = sent
    assert titles_in(first) == [f"{QUESTION} 0", f"{QUESTION} 1"]
    everything = [*titles_in(first), "The first fact. 0", "The first fact. 1"]
    assert titles_in(second) == titles_in(reader) == everything
    assert "[[ ## thoughts ## ]]\n[]" in first
    assert '[[ ## thoughts ## ]]\n["The first fact."]' in second
    assert "thoughts" not in reader
    assert prediction.stop_reason == "sufficient"
    assert (prediction.rounds, prediction.usage["retrievals"], prediction.usage["calls"]) == (2, 2, 3)
    assert prediction.thoughts == ["The first fact.", "So the answer is: x."]
    assert prediction.reasoning_state == "The first fact. So the answer is: x."
    assert [call["round"] for call in prediction.trajectory["calls"]] == [1, 2, 3]
    assert prediction.trajectory["rounds"][0]["reasoning_state"] == "The first fact."


@pytest.mark.parametrize("cap", [1, 3, 10])
def test_at_the_cap_of_sentences_the_reader_answers(cap):
    prediction, sent = run(make(max_rounds=cap), ByOutput(thought={"thought": "One more fact."}, answer=ANSWER))
    assert (prediction.rounds, prediction.stop_reason, prediction.answer) == (cap, "max_rounds", "the answer")
    assert len(sent) == cap + 1
    assert queries_of(prediction) == [[QUESTION], *[["One more fact."]] * (cap - 1)]


def test_passages_stop_adding_up_at_their_cap_while_the_search_goes_on():
    replies = ByOutput(thought=thoughts("A.a one.", "Fact two.", "Fact three.", "The answer is x."), answer=ANSWER)
    prediction, sent = run(make(passages=2, max_passages=5), replies)
    assert [len(titles_in(prompt)) for prompt in sent] == [2, 4, 5, 5, 5]
    assert len(queries_of(prediction)) == 4
    assert len(prediction.passages) == 5
    assert titles_in(sent[-1])[:2] == [f"{QUESTION} 0", f"{QUESTION} 1"]


def test_a_passage_found_twice_is_kept_once():
    class One:
        def search(self, queries, k):
            return [[Passage("p", "The page", "Its text.")] for _ in queries]

    prediction, sent = run(IRCoT(One()), script())
    assert sent[-1].count("The page: Its text.") == 1
    assert [passage["id"] for passage in prediction.passages] == ["p"]


@pytest.mark.parametrize("empty", ["", "  \n "])
def test_an_empty_thought_stops_the_search(empty):
    prediction, _ = run(make(), ByOutput(thought=thoughts("A fact.", empty), answer=ANSWER))
    assert (prediction.stop_reason, prediction.rounds, prediction.thoughts) == ("no_thought", 2, ["A fact."])


def test_the_rule_reads_answer_is_in_any_case():
    prediction, _ = run(make(), ByOutput(thought=thoughts("Hence THE ANSWER IS clear"), answer=ANSWER))
    assert (prediction.stop_reason, prediction.rounds) == ("sufficient", 1)


def test_only_the_first_sentence_of_a_reply_is_kept_and_searched():
    reply = "It was written by J. R. R. Tolkien in 1937. So the answer is: Tolkien."
    prediction, _ = run(make(max_rounds=2), ByOutput(thought=thoughts(reply, "The answer is x."), answer=ANSWER))
    assert queries_of(prediction) == [[QUESTION], ["It was written by J. R. R. Tolkien in 1937."]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("George R. R. Martin wrote it. He lives there.", "George R. R. Martin wrote it."),
        ("Dr. A. B. Smith was born in St. Louis. Yes.", "Dr. A. B. Smith was born in St. Louis."),
        ("no full stop", "no full stop"),
        ("one\nline. Another.", "one line."),
        ("", ""),
    ],
)
def test_initials_and_titles_end_no_sentence(text, sentence):
    assert first_sentence(text) == sentence


def test_a_thought_that_cannot_be_parsed_is_asked_once_more_and_then_counts_as_empty():
    prediction, sent = run(make(), ByOutput(thought="nonsense", answer=ANSWER))
    assert prediction.failures == {"think: reply unparseable": 2}
    assert (prediction.stop_reason, prediction.answer, len(sent)) == ("no_thought", "the answer", 3)


def test_an_unparseable_answer_is_empty_after_a_second_attempt():
    prediction, _ = run(make(), ByOutput(thought=thoughts("The answer is x."), answer="nonsense"))
    assert (prediction.answer, prediction.failures) == ("", {"answer: reply unparseable": 2})


def test_a_budget_ends_in_an_answer_from_what_was_found():
    prediction, sent = run(make(passages=1, max_calls=2), ByOutput(thought={"thought": "A fact."}, answer=ANSWER))
    assert roles_of(prediction) == ["think", "answer"]
    assert (prediction.stop_reason, prediction.answer) == ("budget", "the answer")
    assert titles_in(sent[-1]) == [f"{QUESTION} 0", "A fact. 0"]
    assert [record["complete"] for record in prediction.trajectory["rounds"]] == [True, False]


def test_sync_async_and_streamed_runs_are_equal():
    check_sync_async_and_stream_are_equal(make, script)


def test_saving_keeps_the_prompts(tmp_path):
    demo = {"question": "q", "passages": ["p"], "reasoning": "r", "answer": "DEMO"}
    check_saving(make, script, tmp_path, demo)


@pytest.mark.parametrize("knob", ["passages", "max_rounds", "max_passages"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_a_count_that_is_none_is_refused(knob, value):
    with pytest.raises(UserError, match=f"{knob} must be a whole number of at least 1"):
        make(**{knob: value})

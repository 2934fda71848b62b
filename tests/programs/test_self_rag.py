"""Prompted Self-RAG: decision, one critique per passage, the weighted sum and the vote, worked out by hand."""

from __future__ import annotations

import re

import dspy
import pytest
from maps_rag.programs import UserError
from maps_rag.programs.self_rag import PRESETS, SelfRAG

from tests.programs.search_script import (
    CHAT,
    QUESTION,
    Shelf,
    check_runs_are_equal,
    check_state_survives,
    run,
    value_of,
)
from tests.scripted import StubRetriever, scripted_lm

YES = {"reasoning": "It asks for a date.", "retrieve": True}
NO = {"reasoning": "It is arithmetic.", "retrieve": False}
MEMORY = {"reasoning": "I know.", "answer": "four"}


def judged(answer, relevant=True, support="full", utility=5):
    return {
        "relevant": relevant,
        "reasoning": f"why {answer}",
        "answer": answer,
        "support": support,
        "utility": utility,
    }


def shelf(*titles):
    return Shelf(**{QUESTION: list(titles)})


def run_parallel(program, critiques, choices=None):
    """Run with critiques by the title of their passage, since they are asked for side by side."""

    def reply(system, user):
        if title := re.search(r"\[\[ ## passage ## \]\]\n(\w+):", user):
            return critiques[title[1]]
        return YES if "retrieve" in system else MEMORY

    lm = scripted_lm(reply)
    with dspy.context(lm=lm, adapter=CHAT):
        return program(question=QUESTION, choices=choices), lm.engine.prompts


class AnyShelf(Shelf):
    """Finds the same titles whatever is asked."""

    def __init__(self, *titles):
        super().__init__()
        self.titles = list(titles)

    def search(self, queries, k):
        self.found = dict.fromkeys(queries, self.titles)
        return super().search(queries, k)


def test_the_best_sum_of_relevance_support_and_utility_wins():
    critiques = {
        "A": judged("first", relevant=True, support="none", utility=5),  # 1 + 0 + 1
        "B": judged("second", relevant=True, support="full", utility=4),  # 1 + 1 + 0.5
        "C": judged("third", relevant=True, support="partial", utility=4),  # 1 + 0.5 + 0.5
        "D": judged("fourth", relevant=False, support="none", utility=1),  # 0 + 0 - 1
    }
    retriever = shelf("A", "B", "C", "D")
    prediction, sent = run_parallel(SelfRAG(retriever), critiques)
    assert retriever.batches == [([QUESTION], 5)]
    assert [item["score"] for item in prediction.critiques] == [2.0, 2.5, 2.0, -1.0]
    assert [item["id"] for item in prediction.critiques] == ["A", "B", "C", "D"]
    assert (prediction.answer, prediction.reasoning, prediction.stop_reason) == ("second", "why second", "answered")
    assert [call["role"] for call in prediction.trajectory["calls"]] == ["decide"] + ["critique"] * 4
    assert len(sent) == prediction.usage["calls"] == 5
    assert (prediction.usage["retrievals"], prediction.rounds) == (1, 1)


def test_each_critique_sees_its_own_passage_only():
    _, sent = run_parallel(SelfRAG(shelf("A", "B")), {"A": judged("a"), "B": judged("b")})
    assert sorted(value_of(prompt, "passage") for prompt in sent[1:]) == ["A: about A", "B: about B"]


def test_the_nearer_passage_wins_among_equals():
    prediction, _ = run_parallel(SelfRAG(shelf("A", "B")), {"A": judged("a"), "B": judged("b")})
    assert prediction.answer == "a"


def test_weights_change_the_winner():
    critiques = {"A": judged("a", support="none", utility=5), "B": judged("b", support="full", utility=2)}
    assert run_parallel(SelfRAG(shelf("A", "B")), critiques)[0].answer == "a"  # 2 against 1.5
    assert run_parallel(SelfRAG(shelf("A", "B"), utility_weight=0.5), critiques)[0].answer == "b"  # 1.5 against 1.75


def test_an_answer_that_says_there_is_none_does_not_compete():
    critiques = {"A": judged("Unknown."), "B": judged("b", relevant=False, support="none", utility=1)}
    assert run_parallel(SelfRAG(shelf("A", "B")), critiques)[0].answer == "b"


def test_a_utility_out_of_range_counts_as_its_end():
    prediction, _ = run_parallel(SelfRAG(shelf("A", "B")), {"A": judged("a", utility=90), "B": judged("b", utility=-7)})
    assert [item["score"] for item in prediction.critiques] == [3.0, 1.0]


def test_without_need_for_retrieval_it_answers_from_memory():
    retriever = shelf("A")
    prediction, sent = run(SelfRAG(retriever), [NO, MEMORY])
    assert (prediction.answer, prediction.rounds, retriever.batches, len(sent)) == ("four", 0, [], 2)
    assert prediction.critiques == []


def test_always_retrieving_asks_for_no_decision():
    prediction, sent = run(SelfRAG(shelf("A"), always_retrieve=True), [judged("a")])
    assert (prediction.answer, len(sent)) == ("a", 1)


def test_where_nothing_is_found_it_answers_from_memory():
    assert run(SelfRAG(shelf()), [YES, MEMORY])[0].answer == "four"


def test_k_is_the_most_passages_that_are_judged():
    prediction, sent = run_parallel(SelfRAG(shelf("A", "B", "C"), passages=2), {t: judged(t) for t in "ABC"})
    assert (len(prediction.critiques), len(sent)) == (2, 3)


def test_the_scores_of_the_passages_vote_per_option():
    critiques = {
        "A": judged("A. iron"),  # 3 for A
        "B": judged("(b) tin", support="partial", utility=4),  # 2 for B
        "C": judged("tin", support="partial", utility=4),  # 2 for B
        "D": judged("It cannot be said."),  # names no option
    }
    prediction, _ = run_parallel(SelfRAG(AnyShelf("A", "B", "C", "D")), critiques, choices=["iron", "tin"])
    assert (prediction.answer, prediction.reasoning) == ("B", "why (b) tin")


def test_without_any_vote_the_best_answer_stands():
    critiques = {"A": judged("lead", utility=3), "B": judged("A metal.", utility=5)}
    prediction, _ = run_parallel(SelfRAG(AnyShelf("A", "B")), critiques, choices=["iron", "tin"])
    assert prediction.answer == "A metal."


def test_an_unusable_decision_retrieves_and_an_unusable_critique_drops_out():
    replies = ["nonsense", "nonsense", judged("a")]
    prediction, _ = run(SelfRAG(shelf("A")), replies)
    assert prediction.failures == {"decide: reply unparseable": 1, "critique: reply unparseable": 1}
    assert prediction.answer == "a"
    critiques = {"A": "nonsense", "B": judged("b", relevant=False, support="none", utility=1)}
    prediction, _ = run_parallel(SelfRAG(shelf("A", "B")), critiques)
    assert (prediction.answer, prediction.failures) == ("b", {"critique: reply unparseable": 2})


def test_where_no_critique_can_be_used_the_answer_is_empty():
    prediction, _ = run_parallel(SelfRAG(shelf("A", "B")), {"A": "nonsense", "B": "nonsense"})
    assert (prediction.answer, prediction.failures) == ("", {"critique: reply unparseable": 4})


@pytest.mark.parametrize(
    ("max_calls", "replies", "answer", "rounds"),
    [(1, [MEMORY], "four", 0), (3, [YES, judged("a")], "a", 1), (4, [YES, judged("a"), judged("a")], "a", 1)],
)
def test_a_budget_is_kept_and_still_answers(max_calls, replies, answer, rounds):
    prediction, sent = run(SelfRAG(shelf("A", "B"), max_calls=max_calls), replies)
    assert (prediction.answer, prediction.rounds, len(sent)) == (answer, rounds, len(replies))
    assert prediction.stop_reason == ("budget" if max_calls < 4 else "answered")


def test_called_awaited_and_streamed_runs_are_equal():
    check_runs_are_equal(SelfRAG(shelf("A", "B")), [YES, judged("a"), judged("a")])


def test_a_compiled_state_survives_saving_and_loading(tmp_path):
    programs = [SelfRAG(shelf("A")) for _ in range(2)]
    check_state_survives(*programs, [YES, judged("a")], tmp_path / "state.json")


def test_the_presets_construct():
    assert SelfRAG(StubRetriever(), **PRESETS["original"]).config.passages == 10
    assert SelfRAG(StubRetriever(), **PRESETS["paper"]).config == SelfRAG(StubRetriever()).config


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"passages": 0}, "passages must be a whole number of at least 1, but got 0"),
        ({"always_retrieve": "yes"}, "always_retrieve must be True or False, but got 'yes'"),
        ({"support_weight": -1}, "support_weight must be a number of at least 0, but got -1"),
        ({"utility_weight": float("nan")}, "utility_weight must be a number"),
        ({"relevance_weight": True}, "but got True"),
        ({"max_rounds": 3}, "SelfRAG has no option max_rounds. It has: retriever, passages, always_retrieve"),
    ],
)
def test_a_wrong_knob_is_refused_with_what_is_allowed(knobs, words):
    with pytest.raises(UserError, match=words):
        SelfRAG(StubRetriever(), **knobs)

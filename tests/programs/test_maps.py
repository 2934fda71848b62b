"""What MAPS does, step by step, under a scripted language model."""

from __future__ import annotations

import json
import re

import dspy
import pytest
from maps_rag.programs import MAPS, UserError

from tests.programs.maps_script import Script, run
from tests.scripted import StubRetriever, prompts, role_of, scripted_lm


def sentinels(prompt: str, before: int) -> set[str]:
    """Sentinels of rounds earlier than ``before`` in a prompt; passages carry the round in their query."""
    found = re.findall(r"SENT-[a-z]+-(\d+)(?:-\d+)?", prompt)
    return {match for match in found if int(match) < before}


def rounds_of_prompts(all_prompts: list[str]) -> list[tuple[int, str]]:
    """Number each prompt with the round it belongs to: a plan opens a round."""
    numbered, current = [], 0
    for prompt in all_prompts:
        if role_of(prompt) == "propose":
            current += 1
        numbered.append((current, prompt))
    return numbered


@pytest.mark.parametrize("refine", ["distil", "select"])
def test_no_prompt_contains_anything_of_an_earlier_round_but_knowledge_and_state(refine):
    script = Script(rounds=3)
    if refine == "select":
        inner = script.__call__

        def reply(system, user):
            return {"selected": [], "new_state": "s"} if role_of(system) == "refine" else inner(system, user)

        lm = scripted_lm(reply)
        with dspy.context(lm=lm):
            MAPS(StubRetriever("SENT-passage about {query}"), refine=refine, max_rounds=3)(question="What is asked?")
        sent = prompts(lm)
    else:
        _, sent = run(script)
    checked = [(round_, sentinels(prompt, round_)) for round_, prompt in rounds_of_prompts(sent)]
    assert max(round_ for round_, _ in checked) >= 2
    assert [found for _, found in checked if found] == []


def test_the_same_check_finds_the_history_that_disentangle_false_leaves_in():
    _, sent = run(Script(rounds=3), disentangle=False)
    leaks = [sentinels(prompt, round_) for round_, prompt in rounds_of_prompts(sent)]
    assert {"1", "2"} in leaks
    second_plan = next(prompt for round_, prompt in rounds_of_prompts(sent) if round_ == 2)
    for kind in ("SENT-known-1", "SENT-missing-1", "SENT-query-1-0", "SENT-passage about SENT-query-1-0"):
        assert kind in second_plan


def test_refine_never_sees_the_sub_queries_themselves():
    prediction, sent = run(Script(rounds=1), StubRetriever("a neutral text {query}".replace("{query}", "")))
    refine = next(prompt for prompt in sent if role_of(prompt) == "refine")
    titles = [p["title"] for p in prediction.trajectory["rounds"][0]["passages"]]
    for title in titles:  # the stub puts the query into titles; without them nothing of it may be left
        refine = refine.replace(title, "")
    assert "SENT-query" not in refine


@pytest.mark.parametrize("rounds", [0, 1, 2, 4])
def test_calls_are_3r_plus_2_when_the_planner_stops(rounds):
    retriever = StubRetriever()
    prediction, sent = run(Script(rounds), retriever)
    assert len(sent) == prediction.usage["calls"] == 3 * rounds + 2
    assert prediction.usage["retrievals"] == 3 * rounds
    assert [len(batch) for batch, _ in retriever.batches] == [3] * rounds
    assert (prediction.rounds, prediction.steps, prediction.stop_reason) == (rounds, rounds + 1, "sufficient")


@pytest.mark.parametrize("rounds", [1, 3])
def test_calls_are_3r_plus_1_at_the_cap(rounds):
    prediction, sent = run(Script(rounds=99), max_rounds=rounds)
    assert len(sent) == prediction.usage["calls"] == 3 * rounds + 1
    assert (prediction.rounds, prediction.stop_reason) == (rounds, "max_rounds")


def test_without_listed_directions_a_round_takes_two_calls_and_refine_gets_none():
    prediction, sent = run(Script(rounds=2, listed=False), list_directions=False)
    assert len(sent) == 2 * 2 + 2
    assert prediction.trajectory["rounds"][0]["directions"] == []
    assert [s["query"] for s in prediction.trajectory["rounds"][0]["searches"]] == [
        f"SENT-item-1-{i}" for i in range(3)
    ]
    refine = next(prompt for prompt in sent if role_of(prompt) == "refine")
    assert "directions" not in refine


def test_one_direction_is_the_ablation_without_parallelism():
    retriever = StubRetriever()
    prediction, sent = run(Script(rounds=2, directions=1), retriever, directions=1)
    assert len(sent) == 3 * 2 + 2
    assert [len(batch) for batch, _ in retriever.batches] == [1, 1]
    assert prediction.usage["retrievals"] == 2


def test_the_trajectory_holds_what_happened():
    prediction, _ = run(Script(rounds=1), passages=2)
    (record,) = prediction.trajectory["rounds"]
    assert record["known"] == ["SENT-known-1"]
    assert record["missing"] == "SENT-missing-1"
    assert record["directions"] == [f"SENT-item-1-{i}" for i in range(3)]
    assert [search["query"] for search in record["searches"]] == [f"SENT-query-1-{i}" for i in range(3)]
    assert [len(search["ids"]) for search in record["searches"]] == [2, 2, 2]
    assert len(record["passages"]) == 6
    assert record["knowledge"] == [{"text": "fact of round 1", "passage_id": None}]
    assert record["reasoning_state"] == "state after round 1"
    assert [call["role"] for call in prediction.trajectory["calls"]] == [
        "propose",
        "write",
        "refine",
        "propose",
        "answer",
    ]
    assert [call["round"] for call in prediction.trajectory["calls"]] == [1, 1, 1, 2, 2]
    assert json.loads(json.dumps(prediction.trajectory)) == prediction.trajectory


def test_two_rounds_that_change_nothing_stop_the_search():
    def reply(system, user):
        match role_of(system):
            case "propose":
                return {"known": [], "missing": "m", "sufficient": False, "directions": ["d"]}
            case "write":
                return {"queries": ["always the same"]}
            case "refine":
                return {"new_knowledge": "None.", "new_state": ""}
        return {"reasoning": "", "answer": "a"}

    lm = scripted_lm(reply)
    with dspy.context(lm=lm):
        prediction = MAPS(StubRetriever())(question="Q?")
    assert (prediction.stop_reason, prediction.rounds, prediction.knowledge) == ("stalled", 2, [])


def test_min_rounds_searches_although_nothing_seems_missing():
    def reply(system, user):
        match role_of(system):
            case "propose":
                return {"known": [], "missing": "nothing", "sufficient": True, "directions": []}
            case "write":
                return {"queries": ["only query"]}
            case "refine":
                return {"new_knowledge": "fact", "new_state": "state"}
        return {"reasoning": "", "answer": "a"}

    lm = scripted_lm(reply)
    retriever = StubRetriever()
    with dspy.context(lm=lm):
        prediction = MAPS(retriever, min_rounds=1)(question="The question?")
    assert (prediction.rounds, prediction.stop_reason) == (1, "sufficient")
    # With no direction listed the question itself is the only direction.
    assert prediction.trajectory["rounds"][0]["directions"] == ["The question?"]


@pytest.mark.parametrize(("max_calls", "calls", "rounds"), [(1, 1, 0), (4, 4, 1), (5, 5, 1), (6, 6, 2)])
def test_a_budget_of_calls_is_kept_and_still_answers(max_calls, calls, rounds):
    prediction, sent = run(Script(rounds=99), max_calls=max_calls)
    assert len(sent) == calls
    assert prediction.stop_reason == "budget"
    assert prediction.answer == "the answer"
    assert prediction.rounds == rounds


def test_a_round_cut_short_by_the_budget_is_marked_incomplete():
    # Two calls (plan, write), the search, then nothing left for refine but the reserve for the answer.
    prediction, _ = run(Script(rounds=99), max_calls=3)
    (record,) = prediction.trajectory["rounds"]
    assert record["complete"] is False
    assert [search["query"] for search in record["searches"]] == [f"SENT-query-1-{i}" for i in range(3)]


def test_a_budget_of_tokens_stops_after_the_call_that_crosses_it():
    free, _ = run(Script(rounds=99), max_rounds=3)
    first = free.trajectory["calls"][0]
    limit = first["prompt_tokens"] + first["completion_tokens"]
    prediction, sent = run(Script(rounds=99), max_tokens=limit)
    assert prediction.stop_reason == "budget"
    assert len(sent) == 2


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"directions": 0}, "directions must be a whole number of at least 1, but got 0"),
        ({"passages": -1}, "passages must be"),
        ({"max_rounds": 0}, "max_rounds must be"),
        ({"max_rounds": 2.5}, "but got 2.5"),
        ({"directions": True}, "but got True"),
        ({"min_rounds": 4, "max_rounds": 2}, "min_rounds .4. must not exceed max_rounds .2."),
        ({"refine": "summarise"}, "'distil' or 'select', but got 'summarise'"),
        ({"max_calls": 0}, "max_calls must be"),
        ({"max_tokens": "many"}, "but got 'many'"),
        ({"top_k": 3}, "MAPS has no option top_k. It has: retriever, directions, passages"),
    ],
)
def test_a_wrong_knob_is_refused_with_what_is_allowed(knobs, words):
    with pytest.raises(UserError, match=words):
        MAPS(StubRetriever(), **knobs)


@pytest.mark.parametrize("question", ["", "   ", None])
def test_an_empty_question_is_refused(question):
    with dspy.context(lm=scripted_lm(Script(1))), pytest.raises(UserError, match="question is empty"):
        MAPS(StubRetriever())(question=question)


def test_without_a_language_model_the_error_says_how_to_set_one():
    with dspy.context(lm=None), pytest.raises(UserError, match="language_model"):
        MAPS(StubRetriever())(question="Q?")


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ("Where was X born?']}.junk", "Where was X born?"),
        ('Who wrote Y?"]', "Who wrote Y?"),
        ("songs of ['A'] band", "songs of ['A'] band"),
        ("  plain  ", "plain"),
    ],
)
def test_brackets_that_a_small_model_closes_inside_a_query_end_it(written, query):
    def reply(system, user):
        match role_of(system):
            case "propose":
                return {"known": [], "missing": "m", "sufficient": False, "directions": ["d"]}
            case "write":
                return {"queries": [written]}
            case "refine":
                return {"new_knowledge": "", "new_state": ""}
        return {"reasoning": "", "answer": "a"}

    retriever = StubRetriever()
    with dspy.context(lm=scripted_lm(reply)):
        MAPS(retriever, max_rounds=1)(question="Q?")
    assert retriever.batches == [([query], 5)]

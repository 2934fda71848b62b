"""Junk from a model, a retriever or a caller: counted or refused with what is allowed, never a raw error."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace

import dspy
import numpy as np
import pytest
from maps_rag.programs import MAPS, Passage, UserError, VanillaRAG
from maps_rag.programs.ircot import IRCoT
from maps_rag.programs.lm_call import _CutOff, _reading, _request_of
from maps_rag.programs.methods import METHODS, create
from maps_rag.programs.rag_fusion import RAGFusion
from maps_rag.programs.react import ReAct
from maps_rag.programs.s3 import S3
from maps_rag.programs.self_rag import SelfRAG
from maps_rag.programs.texts import plain_query

from tests.programs.method_checks import QUESTION, ByOutput, queries_of, roles_of, run
from tests.scripted import Roles, StubRetriever, scripted_lm

ANSWER = {"reasoning": "because", "answer": "the answer"}
DEEP = ["[" * 5000, '{"a":' * 3000]
JSON = dspy.JSONAdapter()


def ask(program, reply, adapter=JSON, **inputs):
    with dspy.context(lm=scripted_lm(reply), adapter=adapter):
        return program(question=QUESTION, **inputs)


# Text of the model.


@pytest.mark.parametrize("written", ["", " ", "\t]", "\n]", "\t']", " \n'\t]", "None", " null "])
def test_a_query_that_says_nothing_is_missing(written):
    assert plain_query(written) == ""


def test_a_blank_sub_query_of_maps_is_its_direction():
    prediction = ask(MAPS(StubRetriever(), directions=2, max_rounds=1), Roles(write={"queries": ["\t]", "\n]"]}))
    assert queries_of(prediction) == [["direction 0 0", "direction 0 1"]]


@pytest.mark.parametrize("written", ["\n]", None])
def test_a_blank_next_query_of_s3_stops_it(written):
    turn = {"selected": [1], "complete": False, "next_query": written}
    prediction = ask(S3(StubRetriever()), ByOutput(selected=turn, answer=ANSWER))
    assert (prediction.stop_reason, queries_of(prediction)) == ("no_query", [[QUESTION]])


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_blank_query_of_react_is_an_observation_and_no_search(query):
    turns = [{"next_thought": "t", "next_tool_name": name, "next_tool_args": args} for name, args in
             [("search", {"query": query}), ("finish", {})]]  # fmt: skip
    prediction = ask(ReAct(StubRetriever()), ByOutput(next_thought=turns, answer=ANSWER))
    assert (prediction.answer, prediction.rounds, prediction.stop_reason) == ("the answer", 0, "answered")
    assert "Neither a search" in prediction.react_trajectory["observation_0"][0]


def test_half_characters_are_dropped_and_whole_ones_kept():
    plan = {"known": [], "missing": "m\ud83d", "sufficient": False, "directions": ["d\ud83d\ude00"]}
    replies = Roles(
        propose=[plan],
        write=[{"queries": ["q\udc00"]}],
        refine=[{"new_knowledge": "fact number 0\ud83d", "new_state": "\ud83ds"}],
        answer={"reasoning": "r", "answer": "a\ud83db"},
    )
    prediction = ask(MAPS(StubRetriever()), replies)
    assert prediction.answer == "ab"
    json.dumps(prediction.trajectory, ensure_ascii=False).encode()


@pytest.mark.parametrize("reply", DEEP)
@pytest.mark.parametrize("adapter", [JSON, dspy.ChatAdapter()])
@pytest.mark.parametrize("name", ["maps", "react"])
def test_a_reply_nested_too_deeply_is_unparseable(name, reply, adapter):
    prediction = ask(create(name, StubRetriever()), lambda system, user: reply, adapter)
    assert prediction.answer == ""
    assert all(failure.endswith("reply unparseable") for failure in prediction.failures)


def test_nested_arguments_of_react_end_no_question():
    nested = "x"
    for _ in range(300):
        nested = [nested]
    turn = {"next_thought": "t", "next_tool_name": "search", "next_tool_args": {"query": nested}}
    prediction = ask(ReAct(StubRetriever()), ByOutput(next_thought=turn, answer=ANSWER))
    assert (prediction.answer, prediction.stop_reason) == ("the answer", "unparseable")


@pytest.mark.parametrize("name", METHODS)
def test_a_null_answer_is_no_answer(name):
    replies = ByOutput(
        directions={"known": [], "missing": "", "sufficient": True, "directions": []},
        selected={"selected": [], "complete": True, "next_query": ""},
        thought={"thought": "So the answer is"},
        retrieve={"reasoning": "", "retrieve": False},
        next_thought={"next_thought": "t", "next_tool_name": "finish", "next_tool_args": {}},
        relevant={"relevant": [], "merged": "", "reasoning": "r", "queries": [], "answer": None},
        query={"reasoning": "r", "query": "", "answer": None},
        answer={"reasoning": "r", "answer": None, "queries": []},
        sufficient={"known": [], "missing": "", "sufficient": True, "queries": []},
        queries={"queries": ["q"]},
    )
    assert ask(create(name, StubRetriever()), replies).answer == ""


@pytest.mark.parametrize(("finish", "cut"), [(None, True), ("stop", False), ("length", True)])
def test_a_reply_that_breaks_off_is_not_mended_where_its_end_is_not_known(finish, cut):
    text = '{"reasoning": "r", "answer": "Johann Seb'
    response = SimpleNamespace(choices=[SimpleNamespace(finish_reason=finish)], usage=None)
    requests = [_request_of({"response": response, "usage": {}, "outputs": [text]})]
    signature = dspy.Signature("question -> reasoning, answer")
    with pytest.raises(_CutOff) if cut else nullcontext():
        assert _reading(JSON, requests).parse(signature, text)["answer"] == "Johann Seb"
    assert requests[0].cut_off is cut


# The budget.


@pytest.mark.parametrize("method", [IRCoT, S3, ReAct])
def test_a_second_attempt_leaves_a_call_for_the_answer(method):
    replies = ByOutput(thought="nonsense", selected="nonsense", next_thought="nonsense", answer=ANSWER)
    prediction, sent = run(method(StubRetriever(), max_calls=2), replies)
    assert (prediction.answer, prediction.usage["calls"], len(sent)) == ("the answer", 2, 2)


@pytest.mark.parametrize(("budget", "made"), [(7, 6), (9, 8), (20, 11)])
def test_second_attempts_side_by_side_share_what_is_left(budget, made):
    # By hand: one decision, five critiques, at most five second attempts, one call in reserve.
    replies = ByOutput(retrieve={"reasoning": "r", "retrieve": True}, support="nonsense")
    prediction, sent = run(SelfRAG(StubRetriever(), max_calls=budget), replies)
    assert prediction.usage["calls"] == len(sent) == made
    assert roles_of(prediction)[0] == "decide"


# Retrievers.

GOOD = Passage("i", "t", "x", 0.5)


class Returns:
    def __init__(self, found):
        self.found = found

    def search(self, queries, k):
        return self.found


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (None, "NoneType"),
        ("text", "str"),
        ({}, "dict"),
        ([], "0 results"),
        ([[GOOD], [GOOD]], "2 results"),
        ([GOOD], "a result of the type Passage"),
        (["text"], "a result of the type str"),
        ([[{"text": "x"}]], "a passage of the type dict"),
        ([["text"]], "a passage of the type str"),
        ([[Passage("i", "t", None)]], "a passage with the text None"),
        ([[Passage(1, "t", "x")]], "a passage with the id 1"),
        ([[Passage("i", "t", "x", "high")]], "a passage with the score 'high'"),
        ([[Passage("i", "t", "x", float("nan"))]], "a passage with the score nan"),
    ],
)
def test_results_that_are_no_passages_are_refused_with_what_is_allowed(found, what):
    with pytest.raises(UserError, match=rf"^Returns\.search returned {what}; .* 1 lists of at most 2 Passage objects"):
        ask(VanillaRAG(Returns(found), passages=2), Roles())


def test_no_more_than_k_passages_are_used_and_scores_are_plain_floats():
    found = [[Passage(str(number), "t", "x", np.float32(0.5)) for number in range(20)]]
    prediction = ask(VanillaRAG(Returns(found), passages=2), Roles())
    assert [passage["id"] for passage in prediction.passages] == ["0", "1"]
    assert [type(passage["score"]) for passage in prediction.passages] == [float, float]


# Callers.


@pytest.mark.parametrize("knob", ["list_directions", "disentangle"])
@pytest.mark.parametrize("value", ["False", None, 0])
def test_a_switch_of_maps_that_is_none_is_refused(knob, value):
    with pytest.raises(UserError, match=f"{knob} must be True or False, but got {value!r}"):
        MAPS(StubRetriever(), **{knob: value})


def test_demos_are_on_off_or_left_open():
    with pytest.raises(UserError, match="demos must be True, False or None, but got 'no'"):
        MAPS(StubRetriever(), demos="no")
    assert [VanillaRAG(StubRetriever(), demos=value).limits.demos for value in (True, False, None)] == [
        True,
        False,
        None,
    ]


@pytest.mark.parametrize(("method", "knob"), [(MAPS, "directions"), (RAGFusion, "rewrites"), (S3, "max_calls")])
def test_a_count_beyond_all_use_is_refused(method, knob):
    with pytest.raises(UserError, match=f"{knob} must be at most 10000, but got {2**64}"):
        method(StubRetriever(), **{knob: 2**64})
    method(StubRetriever(), max_tokens=10**6)


def test_a_name_of_another_type_is_an_unknown_name():
    with pytest.raises(UserError, match=r"There is no method \['maps'\]"):
        create(["maps"])
    with pytest.raises(UserError, match=r"maps has no preset \['paper'\]"):
        create("maps", preset=["paper"])


def test_an_input_that_a_method_does_not_take_is_refused_with_what_it_takes():
    with pytest.raises(UserError, match=r"MAPS takes question, choices, but got .*'context'"):
        ask(MAPS(StubRetriever()), Roles(), context="c")

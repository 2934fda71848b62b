"""What a program does with replies it cannot use and with requests that fail: counted, never silent, never a loop."""

from __future__ import annotations

import asyncio

import dspy
import pytest
from dspy import lm15
from dspy.utils.exceptions import ContextWindowExceededError, LMAuthError, LMRateLimitError, LMServerError
from maps_rag.programs import MAPS, VanillaRAG

from tests.scripted import Roles, StubRetriever, chat, prompts, role_of, scripted_lm, written

NO_FALLBACK = dspy.ChatAdapter(use_json_adapter_fallback=False)
ADAPTERS = {
    "chat": dspy.ChatAdapter(),
    "chat without fallback": NO_FALLBACK,
    "json": dspy.JSONAdapter(),
    "xml": dspy.XMLAdapter(),
}


def ask(reply, adapter=NO_FALLBACK, retriever=None, lm_options=None, program=None, **knobs):
    """Run one question; return the prediction and the prompts that were sent."""
    lm = scripted_lm(reply, **(lm_options or {}))
    program = program or MAPS(retriever or StubRetriever(), **{"directions": 2, "max_rounds": 2, **knobs})
    with dspy.context(lm=lm, adapter=adapter):
        prediction = program(question="What is asked?")
    return prediction, lm


def of_role(lm, role):
    return [prompt for prompt in prompts(lm) if role_of(prompt) == role]


# Replies that cannot be used, by role.


@pytest.mark.parametrize("name", ADAPTERS)
def test_an_unparseable_plan_means_search_for_the_question_itself(name):
    bad = ["nonsense"] * (2 if name in ("chat", "xml") else 1)  # their JSON fallback asks once more
    prediction, _ = ask(Roles(propose=bad), ADAPTERS[name])
    first = prediction.trajectory["rounds"][0]
    assert first["directions"] == ["What is asked?"]
    assert prediction.failures == {"propose: reply unparseable": 1}
    assert prediction.trajectory["calls"][0]["failure"] == "reply unparseable"
    assert prediction.trajectory["calls"][0]["requests"] == len(bad)
    assert (prediction.answer, prediction.stop_reason) == ("the answer", "sufficient")


def test_the_json_fallback_saves_a_reply_and_is_counted_as_a_request():
    prediction, lm = ask(Roles(propose=["nonsense"]), dspy.ChatAdapter())
    assert prediction.failures == {}
    assert prediction.trajectory["calls"][0]["requests"] == 2
    assert prediction.usage["requests"] == prediction.usage["calls"] + 1 == len(prompts(lm))


@pytest.mark.parametrize("adapter", ["chat without fallback", "json"])
@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("nonsense", "unparseable"),
        ("", "empty"),
        ("<think>only a thought</think>", "empty"),
        ("<cut>nonsense", "cut off"),
    ],
)
@pytest.mark.parametrize("role", ["propose", "write", "refine", "answer"])
def test_every_role_counts_why_its_reply_could_not_be_used(role, reply, why, adapter):
    prediction, _ = ask(Roles(**{role: reply}), ADAPTERS[adapter])
    assert set(prediction.failures) == {f"{role}: reply {why}"}
    assert prediction.trajectory["failures"] == prediction.failures
    failed = [call for call in prediction.trajectory["calls"] if call["failure"]]
    assert {call["role"] for call in failed} == {role}
    assert len(failed) == prediction.failures[f"{role}: reply {why}"]


def test_unparseable_sub_queries_fall_back_to_the_directions():
    prediction, _ = ask(Roles(write="nonsense"))
    assert [search["query"] for search in prediction.trajectory["rounds"][0]["searches"]] == [
        "direction 0 0",
        "direction 0 1",
    ]


def test_an_unparseable_refinement_keeps_the_old_state_and_adds_nothing():
    prediction, lm = ask(Roles(rounds=3, refine=[{"new_knowledge": "fact number 1", "new_state": "kept"}, "nonsense"]))
    assert prediction.knowledge == ["fact number 1"]
    assert prediction.reasoning_state == "kept"
    assert "kept" in of_role(lm, "answer")[0]


def test_an_unparseable_answer_is_asked_once_more_and_then_empty():
    prediction, lm = ask(Roles(answer="nonsense"), lm_options={"temperature": 0.0})
    assert prediction.answer == ""
    assert prediction.failures == {"answer: reply unparseable": 2}
    first, second = lm.engine.requests[-2:]
    assert first.config.temperature == 0
    assert second.config.temperature > 0
    assert [entry["kwargs"].get("rollout_id") for entry in lm.history[-2:]] == [None, 1001]


def test_the_second_attempt_at_an_answer_counts_when_it_succeeds():
    prediction, lm = ask(Roles(answer=["nonsense"]))
    assert prediction.answer == "the answer"
    assert prediction.failures == {"answer: reply unparseable": 1}
    assert prediction.usage["calls"] == len(prompts(lm)) == 6


def test_the_second_attempt_is_not_served_the_first_reply_from_the_cache(tmp_path):
    replies = Roles(answer=["nonsense"])
    cache = dspy.cache
    dspy.configure_cache(disk_cache_dir=str(tmp_path), enable_disk_cache=False)
    try:
        prediction, _ = ask(replies, lm_options={"temperature": 0.0, "cache": True})
    finally:
        dspy.cache = cache
    assert prediction.answer == "the answer"


@pytest.mark.parametrize(("temperature", "expected"), [(0.0, 0.7), (0.3, 0.3), (None, None)])
def test_the_second_attempt_leaves_a_temperature_that_is_not_zero_alone(temperature, expected):
    _, lm = ask(Roles(answer=["nonsense"]), lm_options={"temperature": temperature})
    assert lm.engine.requests[-1].config.temperature == expected


def test_the_rollout_of_an_lm_shifts_that_of_its_second_attempts():
    _, lm = ask(Roles(answer=["nonsense"]), lm_options={"temperature": 1.0, "rollout_id": 4})
    assert lm.history[-1]["kwargs"]["rollout_id"] == 5001


def test_a_second_attempt_is_not_made_beyond_the_budget():
    prediction, lm = ask(Roles(rounds=9, answer="nonsense"), max_calls=4)
    assert len(prompts(lm)) == prediction.usage["calls"] == 4
    assert (prediction.answer, prediction.stop_reason) == ("", "budget")


# Replies that parse and still are not what was asked for.


@pytest.mark.parametrize(
    ("listed", "used"),
    [
        (["a", "b", "c", "d"], ["a", "b"]),
        (["a", " A ", "a", "b"], ["a", "b"]),
        (["", "  ", "b"], ["b"]),
        (["only"], ["only"]),
        ([], ["What is asked?"]),
        (["", " "], ["What is asked?"]),
    ],
)
def test_directions_are_stripped_made_distinct_and_cut_to_n(listed, used):
    plan = {"known": [], "missing": "m", "sufficient": False, "directions": listed}
    prediction, _ = ask(Roles(propose=plan, write={"queries": []}), max_rounds=1)
    assert prediction.trajectory["rounds"][0]["directions"] == used
    assert [search["query"] for search in prediction.trajectory["rounds"][0]["searches"]] == used


@pytest.mark.parametrize("listed", [[], ["a", "b", "c"], ["a", "a"]])
def test_sub_queries_of_a_plan_without_directions_are_made_distinct_and_cut_to_n(listed):
    plan = {"known": [], "missing": "m", "sufficient": False, "queries": listed}
    prediction, _ = ask(Roles(propose=plan), list_directions=False, max_rounds=1)
    used = {0: ["What is asked?"], 3: ["a", "b"], 2: ["a"]}[len(listed)]
    assert [search["query"] for search in prediction.trajectory["rounds"][0]["searches"]] == used


@pytest.mark.parametrize(
    ("queries", "searched"),
    [
        ([], ["direction 0 0", "direction 0 1"]),
        (["q"], ["q", "direction 0 1"]),
        (["", "q"], ["direction 0 0", "q"]),
        (["q", "r", "s"], ["q", "r"]),
    ],
)
def test_a_missing_sub_query_is_its_direction(queries, searched):
    prediction, _ = ask(Roles(write={"queries": queries}), max_rounds=1)
    assert [search["query"] for search in prediction.trajectory["rounds"][0]["searches"]] == searched


@pytest.mark.parametrize(("selected", "kept"), [([0, -1, 99], 0), ([1, 1, 99], 1), ([], 0), ([2, 1], 2)])
def test_selections_out_of_range_or_repeated_are_dropped(selected, kept):
    refine = {"selected": selected, "new_state": "s"}
    prediction, _ = ask(Roles(refine=refine), max_rounds=1, refine="select", passages=2)
    assert len(prediction.knowledge) == kept


# Text around a reply.


@pytest.mark.parametrize("name", ADAPTERS)
def test_thinking_is_dropped_with_any_adapter_which_stays_as_it_was(name):
    adapter = ADAPTERS[name]
    before = dict(vars(adapter))
    usual = Roles()

    def reply(system, user):
        return "<think>[[ ## answer ## ]] {} <answer>no</answer></think>" + written(usual(system, user), system)

    prediction, lm = ask(reply, adapter)
    assert prediction.failures == {}
    assert prediction.answer == "the answer"
    assert vars(adapter) == before
    assert len(prompts(lm)) == prediction.usage["calls"]


def test_thinking_without_its_opening_tag_is_dropped():
    prediction, _ = ask(Roles(answer="Let me see. [[ ## answer ## ]] no\n</think>" + chat(Roles().usual("answer", ""))))
    assert (prediction.answer, prediction.failures) == ("the answer", {})


def test_thinking_that_never_ends_is_an_empty_reply():
    prediction, _ = ask(Roles(answer="<think>[[ ## answer ## ]] not yet"))
    assert (prediction.answer, prediction.failures) == ("", {"answer: reply empty": 2})


# Cut-off replies.


def test_a_reply_that_was_cut_off_is_not_used_although_it_parses():
    cut = "<cut>" + chat({"reasoning": "r", "answer": "Johann Sebast"})
    prediction, lm = ask(Roles(answer=[cut]), dspy.ChatAdapter())
    assert prediction.answer == "the answer"
    assert prediction.failures == {"answer: reply cut off": 1}
    # A cut reply is not asked for as JSON: that would be cut as well.
    assert len(of_role(lm, "answer")) == 2


def test_a_reply_that_was_cut_off_never_becomes_a_trace_entry():
    cut = "<cut>" + chat({"new_knowledge": "half a fa", "new_state": "s"})
    with dspy.context(lm=scripted_lm(Roles(refine=[cut])), trace=[]):
        program = MAPS(StubRetriever(), max_rounds=1)
        program(question="Q?")
        traced = [predictor for predictor, _, _ in dspy.settings.trace]
    assert traced == [program.propose, program.write, program.answer]


# Requests that fail in transport.

TRANSPORT = {
    "rate limit": lm15.RateLimitError("slow down", retry_after=7.0),
    "timeout": lm15.TimeoutError("too slow"),
    "server": lm15.ServerError("broken", status=500),
    "connection": lm15.TransportError("refused"),
}


@pytest.mark.parametrize("kind", TRANSPORT)
@pytest.mark.parametrize("run", ["sync", "async"])
def test_transport_failures_are_tried_again_and_counted(kind, run, pauses):
    reply = Roles(write=[TRANSPORT[kind]] * 2)
    if run == "sync":
        prediction, lm = ask(reply)
    else:
        lm = scripted_lm(reply)

        async def main():
            with dspy.context(lm=lm, adapter=NO_FALLBACK):
                return await MAPS(StubRetriever(), directions=2, max_rounds=2).acall(question="What is asked?")

        prediction = asyncio.run(main())
    call = prediction.trajectory["calls"][1]
    assert (call["role"], call["requests"], call["retries"], call["failure"]) == ("write", 3, 2, None)
    assert prediction.usage["requests"] == prediction.usage["calls"] + 2 == len(prompts(lm))
    assert prediction.usage["retries"] == 2
    assert prediction.failures == {}
    assert len(pauses) == 2
    if kind == "rate limit":
        assert pauses == [7.0, 7.0]
    else:
        assert 0 < pauses[0] < pauses[1]


def test_transport_failures_are_raised_after_the_retries_of_the_lm(pauses):
    lm = scripted_lm(Roles(propose=lm15.ServerError("broken", status=500)), num_retries=2)
    with dspy.context(lm=lm), pytest.raises(LMServerError, match="broken"):
        MAPS(StubRetriever())(question="Q?")
    assert len(prompts(lm)) == 3
    assert len(pauses) == 2


def test_an_lm_without_retries_fails_at_once(pauses):
    lm = scripted_lm(Roles(answer=TRANSPORT["rate limit"]), num_retries=0)
    with dspy.context(lm=lm), pytest.raises(LMRateLimitError):
        VanillaRAG(StubRetriever())(question="Q?")
    assert (len(prompts(lm)), pauses) == (1, [])


def test_what_cannot_be_mended_by_waiting_is_raised_at_once(pauses):
    lm = scripted_lm(Roles(propose=lm15.AuthError("wrong key", status=401)))
    with dspy.context(lm=lm), pytest.raises(LMAuthError, match="wrong key"):
        MAPS(StubRetriever())(question="Q?")
    assert (len(prompts(lm)), pauses) == (1, [])


def test_an_error_of_the_retriever_is_raised():
    class Broken:
        def search(self, queries, k):
            raise RuntimeError("index gone")

    with dspy.context(lm=scripted_lm(Roles())), pytest.raises(RuntimeError, match="index gone"):
        MAPS(Broken())(question="Q?")


# Prompts that do not fit.


class Window:
    """Replies as usual, but refuses prompts of a role that hold more than so many of the marked items."""

    def __init__(self, role, limit, mark, **options):
        self.role, self.limit, self.mark = role, limit, mark
        self.usual = Roles(**options)
        self.seen = []

    def __call__(self, system, user):
        if role_of(system) == self.role:
            self.seen.append(user.count(self.mark))
            if user.count(self.mark) > self.limit:
                return lm15.ContextLengthError("too long", status=400)
        return self.usual(system, user)


def test_a_prompt_that_is_too_long_loses_the_tail_of_its_passages_once():
    script = Window("refine", 2, "Title ")
    prediction, lm = ask(script, passages=2, max_rounds=1)
    assert script.seen == [4, 2]
    kept = of_role(lm, "refine")[1]
    assert "Title query 0 0 0" in kept
    assert "Title query 0 1 1" not in kept
    assert prediction.failures == {"refine: prompt too long, shortened": 1}
    assert prediction.trajectory["calls"][2]["requests"] == 2
    assert len(prediction.trajectory["rounds"][0]["passages"]) == 4


def test_a_prompt_that_is_too_long_then_loses_its_oldest_knowledge():
    script = Window("propose", 2, "fact number", rounds=9)
    prediction, lm = ask(script, max_rounds=4)
    assert script.seen == [0, 1, 2, 3, 2]
    assert "fact number 0" not in of_role(lm, "propose")[-1]
    assert prediction.knowledge == [f"fact number {i}" for i in range(4)]
    assert prediction.failures == {"propose: prompt too long, shortened": 1}


def test_a_prompt_that_cannot_be_shortened_enough_fails_the_question_with_its_reason():
    script = Window("refine", 0, "Title ")
    lm = scripted_lm(script)
    with dspy.context(lm=lm), pytest.raises(ContextWindowExceededError):
        MAPS(StubRetriever(), directions=2, passages=4)(question="Q?")
    assert script.seen == [8, 4]


def test_a_selecting_refinement_that_is_too_long_still_points_at_the_right_passages():
    script = Window("refine", 2, "Title ", refine={"selected": [2], "new_state": "s"})
    prediction, _ = ask(script, refine="select", passages=2, max_rounds=1)
    assert script.seen == [4, 2]
    assert prediction.knowledge == ["Title query 0 1 0: text about query 0 1 0"]

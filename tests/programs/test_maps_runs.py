"""Ways to run MAPS that must come to the same: at once, awaited, streamed, in many threads."""

from __future__ import annotations

import asyncio
import json
import re
import threading

import dspy
from maps_rag.programs import MAPS

from tests.programs.maps_script import Script, run
from tests.scripted import StubRetriever, prompts, role_of, scripted_lm


def without_times(prediction: dspy.Prediction) -> dict[str, object]:
    trajectory = json.loads(json.dumps(prediction.trajectory))
    for timed in (trajectory, trajectory["usage"], *trajectory["calls"]):
        timed["seconds"] = 0
    return trajectory


def test_sync_async_and_streamed_runs_are_equal():
    sync, _ = run(Script(rounds=2))
    with dspy.context(lm=scripted_lm(Script(rounds=2))):
        program = MAPS(StubRetriever("SENT-passage about {query}"))
        awaited = asyncio.run(program.acall(question="What is asked?"))
    with dspy.context(lm=scripted_lm(Script(rounds=2))):
        *rounds, streamed = program.stream("What is asked?")
    assert without_times(sync) == without_times(awaited) == without_times(streamed)
    assert [record.index for record in rounds] == [1, 2]
    assert rounds[1].reasoning_state == "state after round 2"


def test_a_stream_with_steps_shows_each_role_and_search():
    with dspy.context(lm=scripted_lm(Script(rounds=1))):
        items = list(MAPS(StubRetriever()).stream("Q?", steps=True))
    names = [getattr(item, "role", type(item).__name__) for item in items]
    assert names == ["propose", "write", "search", "refine", "Round", "propose", "answer", "Prediction"]


def test_leaving_a_stream_early_ends_the_run():
    script = Script(rounds=50)
    left = threading.Event()

    def reply(system, user):
        if script.round == 1 and role_of(system) == "propose":
            left.wait(timeout=30)
        return script(system, user)

    lm = scripted_lm(reply)
    with dspy.context(lm=lm):
        stream = MAPS(StubRetriever(), max_rounds=50).stream("Q?")
        assert next(stream).index == 1
        stream.close()
    left.set()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and thread.daemon:
            thread.join(timeout=10)
    assert len(prompts(lm)) == 4  # the call that was under way is the last


def test_sixteen_threads_over_one_program_answer_like_one():
    from concurrent.futures import ThreadPoolExecutor

    def reply(system, user):
        question = re.search(r"question ## \]\]\n(.*)", user)[1]
        match role_of(system):
            case "propose":
                return {
                    "known": [],
                    "missing": "m",
                    "sufficient": "fact about" in user,
                    "directions": [f"d {question}"],
                }
            case "write":
                return {"queries": [f"q {question}"]}
            case "refine":
                return {"new_knowledge": f"fact about {question}", "new_state": "s"}
        return {"reasoning": "", "answer": f"answer to {question}"}

    questions = [f"question {i}" for i in range(64)]
    lm = scripted_lm(reply)
    program = MAPS(StubRetriever())

    def ask(question):
        with dspy.context(lm=lm):
            return without_times(program(question=question))

    with ThreadPoolExecutor(16) as pool:
        threaded = list(pool.map(ask, questions))
    assert threaded == [ask(question) for question in questions]
    assert [record["answer"] for record in threaded] == [f"answer to {question}" for question in questions]


def test_knowledge_of_a_later_round_never_reaches_an_earlier_trace_entry():
    with dspy.context(lm=scripted_lm(Script(rounds=3)), trace=[]):
        MAPS(StubRetriever())(question="Q?")
        trace = list(dspy.settings.trace)
    sizes = [len(inputs["knowledge"]) for _, inputs, _ in trace]
    assert sizes == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]

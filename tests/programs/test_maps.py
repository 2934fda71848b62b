"""What MAPS does, step by step, under a scripted language model."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import threading
from dataclasses import replace

import dspy
import pytest
from maps_rag.programs import MAPS, UserError

from tests.scripted import StubRetriever, prompts, role_of, scripted_lm


class Script:
    """Replies for R rounds of N directions, each field carrying a sentinel that names field, round and item."""

    def __init__(self, rounds: int, directions: int = 3, listed: bool = True) -> None:
        self.rounds = rounds
        self.directions = directions
        self.listed = listed
        self.plans = itertools.count(1)
        self.round = 0

    def __call__(self, system: str, user: str) -> dict[str, object]:
        role = role_of(system)
        if role == "propose":
            self.round = next(self.plans)
            t = self.round
            items = [f"SENT-item-{t}-{i}" for i in range(self.directions)]
            return {
                "known": [f"SENT-known-{t}"],
                "missing": f"SENT-missing-{t}",
                "sufficient": t > self.rounds,
                "directions" if self.listed else "queries": items,
            }
        t = self.round
        if role == "write":
            return {"queries": [f"SENT-query-{t}-{i}" for i in range(self.directions)]}
        if role == "refine":
            return {"new_knowledge": f"fact of round {t}", "new_state": f"state after round {t}"}
        return {"reasoning": "because", "answer": "the answer"}


def run(script: Script, retriever: StubRetriever | None = None, **knobs):
    lm = scripted_lm(script)
    program = MAPS(retriever or StubRetriever("SENT-passage about {query}"), **knobs)
    with dspy.context(lm=lm):
        prediction = program(question="What is asked?")
    return prediction, prompts(lm)


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


def selecting(selected, queries=("q",)):
    """Replies of a model that picks passages and finds that it knows enough once it has any."""

    def reply(system, user):
        match role_of(system):
            case "propose":
                return {"known": [], "missing": "m", "sufficient": "Sentence" in user, "directions": list(queries)}
            case "write":
                return {"queries": list(queries)}
            case "refine":
                return {"selected": selected}
        return {"reasoning": "r", "answer": "a"}

    return reply


def test_selecting_copies_first_sentences_verbatim_with_their_passage_id():
    lm = scripted_lm(selecting([2, 2, 99, 0]))
    retriever = StubRetriever("Sentence one. Sentence two. Sentence three. Sentence four. Sentence five.")
    with dspy.context(lm=lm):
        prediction = MAPS(retriever, refine="select", passages=2, max_rounds=2)(question="Q?")
    text = "Title q 1: Sentence one. Sentence two. Sentence three. Sentence four."
    assert prediction.knowledge == [text]
    assert prediction.trajectory["rounds"][0]["knowledge"] == [{"text": text, "passage_id": "q/1"}]
    assert prediction.citations == [{"id": "q/1", "title": "Title q 1"}]


def test_what_was_selected_is_not_offered_again_even_where_another_query_finds_it():
    class Growing(StubRetriever):
        """The same passages each time, with scores that depend on the query."""

        def search(self, queries, k):
            self.asked = getattr(self, "asked", 0) + 1
            found = StubRetriever("Other text.").search(["q"] * len(queries), k)
            return [[replace(passage, score=passage.score / self.asked) for passage in each] for each in found]

    lm = scripted_lm(selecting([1]))
    with dspy.context(lm=lm):
        prediction = MAPS(Growing(), refine="select", passages=3, max_rounds=2)(question="Q?")
    refine = [prompt for prompt in prompts(lm) if "[1] Title" in prompt]
    assert [[f"Title q {n}: Other" in prompt.split("[1]")[1] for n in range(3)] for prompt in refine] == [
        [True, True, True],
        [False, True, True],
    ]
    assert [source["id"] for source in prediction.citations] == ["q/0", "q/1"]


@pytest.mark.parametrize(
    ("searches", "passages", "least", "most"), [(1, 3, 1, 3), (3, 3, 3, 4), (3, 1, 3, 3), (1, 1, 1, 1), (2, 0, 0, 0)]
)
def test_at_least_one_passage_a_sub_query_is_to_be_selected(searches, passages, least, most):
    queries = [f"q{number}" for number in range(searches)]
    steps = MAPS(StubRetriever(), refine="select").steps("Q?")
    next(steps)
    steps.send(dspy.Prediction(known=[], missing="m", sufficient=False, directions=queries))
    search = steps.send(dspy.Prediction(queries=queries))
    refine = steps.send(StubRetriever("Sentence.").search(search.queries, passages) if passages else [[]] * searches)
    assert refine.bounds == ("selected", least, most)


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

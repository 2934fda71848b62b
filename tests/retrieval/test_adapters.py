import asyncio
import copy
import threading

import dspy
import numpy as np
import pytest
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import as_retriever
from maps_rag.programs.types import Passage

TEXTS = ["T0 | zero", "T1 | one", "T2 | two"]


class Item:
    long_text = "T0 | zero"
    pid = 5
    score = 0.5


def test_a_retriever_is_returned_as_it_is(retriever):
    assert as_retriever(retriever) is retriever


@pytest.mark.parametrize(
    "function",
    [
        lambda query, k: TEXTS[:k],
        lambda query, k=3: TEXTS[:k],
        lambda query, number: TEXTS[:number],
        lambda query, *, k: TEXTS[:k],
        lambda query, **kwargs: TEXTS[: kwargs["k"]],
        lambda *args, **kwargs: TEXTS[: kwargs["k"]],
        lambda query: TEXTS,
    ],
)
def test_callables_are_called_with_k_or_cut_to_it(function):
    found = as_retriever(function).search(["a", "b"], 2)
    assert [[(p.title, p.text) for p in passages] for passages in found] == [[("T0", "zero"), ("T1", "one")]] * 2


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Passage("7", "T", "x", 0.1), Passage("7", "T", "x", 0.1)),
        ({"id": 7, "title": "T", "text": "x", "score": 0.5}, Passage("7", "T", "x", 0.5)),
        ({"long_text": "T0 | zero", "pid": "p", "score": np.float32(0.5)}, Passage("p", "T0", "zero", 0.5)),
        ({"text": "T0 | zero", "title": "T0", "id": 0}, Passage("0", "T0", "zero", 0.0)),
        ({"text": "left | right", "title": "T", "id": 0}, Passage("0", "T", "left | right", 0.0)),
        (dspy.dsp.utils.dotdict(long_text="x", pid=3, score=1), Passage("3", "", "x", 1.0)),
        (Item(), Passage("5", "T0", "zero", 0.5)),
    ],
)
def test_each_kind_of_passage_is_understood(item, expected):
    assert as_retriever(lambda query, k: [item]).search(["a"], 5) == [[expected]]


def test_passages_without_an_id_get_the_same_one_for_the_same_text():
    first = as_retriever(lambda query, k: TEXTS).search(["a"], 3)[0]
    second = as_retriever(lambda query, k: TEXTS[::-1]).search(["b"], 3)[0]
    assert [p.id for p in first] == [p.id for p in second][::-1]
    assert len({p.id for p in first}) == 3
    assert first[0].id == "827b4ec07c3f12ae"  # sha256 of "T0 | zero", so equal in every run


def test_a_bar_far_into_a_text_does_not_make_a_title():
    text = "word " * 40 + "| more"
    assert as_retriever(lambda query, k: [text]).search(["a"], 1)[0][0].text == text


def test_a_prediction_gives_its_ids_scores_and_titles():
    prediction = dspy.Prediction(passages=["T | x", "y"], ids=["a", "b"], scores=[0.5, 0.25], titles=["T", ""])
    found = as_retriever(lambda query, k: prediction).search(["q"], 5)
    assert found == [[Passage("a", "T", "x", 0.5), Passage("b", "", "y", 0.25)]]


def test_a_prediction_may_hold_arrays():
    prediction = dspy.Prediction(passages=["T | x", "y"], ids=np.array([3, 4]), scores=np.array([0.5, 0.25], "float32"))
    (found,) = as_retriever(lambda query, k: prediction).search(["q"], 5)
    assert found == [Passage("3", "T", "x", 0.5), Passage("4", "", "y", 0.25)]
    assert [type(passage.score) for passage in found] == [float, float]


def test_our_own_retriever_called_as_a_function_gives_what_its_search_gives(retriever):
    assert as_retriever(lambda query, k: retriever(query, k)).search(["a"], 3) == retriever.search(["a"], 3)


def test_dspys_embeddings_are_adapted():
    vectors = {"T0 | zero": [1.0, 0], "T1 | one": [0.0, 1], "T2 | two": [0.6, 0.8], "q": [1.0, 0]}
    inner = dspy.retrievers.Embeddings(TEXTS, lambda texts: np.asarray([vectors[text] for text in texts]), k=3)
    adapted = as_retriever(inner)
    assert adapted.search(["q", "q"], 2) == [[Passage("0", "T0", "zero"), Passage("2", "T2", "two")]] * 2
    assert copy.deepcopy(adapted) is adapted  # DSPy's own cannot be copied


def test_none_is_dspys_retrieval_model_at_each_call(retriever):
    adapted = as_retriever(None)
    with pytest.raises(UserError, match=r"no retriever: .* dspy\.configure\(rm=\.\.\.\)"):
        adapted.search(["a"], 2)
    with dspy.context(rm=retriever.as_rm()):
        found = adapted.search(["a", "b"], 2)
    # The two queries may or may not be searched together, which shows in the last digit of a score.
    assert [[p.id for p in one] for one in found] == [[p.id for p in one] for one in retriever.search(["a", "b"], 2)]
    with dspy.context(rm=lambda query, k: TEXTS[:k]):
        assert [p.title for p in adapted.search(["a"], 2)[0]] == ["T0", "T1"]


def test_queries_run_side_by_side_with_dspys_settings():
    together = threading.Barrier(3)

    def find(query, k):
        together.wait(60)
        return [f"{dspy.settings.marker} {query}"]

    with dspy.context(marker="set"):
        found = as_retriever(find).search(["a", "b", "c"], 1)
    assert [passages[0].text for passages in found] == ["set a", "set b", "set c"]


def test_async_search_equals_the_plain_one():
    adapted = as_retriever(lambda query, k: TEXTS[:k])
    assert asyncio.run(adapted.asearch(["a", "b"], 2)) == adapted.search(["a", "b"], 2)


def test_a_coroutine_function_serves_async_programs_only():
    async def find(query, k):
        return TEXTS[:k]

    adapted = as_retriever(find)
    assert [p.title for p in asyncio.run(adapted.asearch(["a"], 2))[0]] == ["T0", "T1"]
    with pytest.raises(UserError, match="this retriever is asynchronous; call the program with acall"):
        adapted.search(["a"], 2)


@pytest.mark.parametrize("thing", ["a path", 3, {"search": 1}, object(), [1]])
def test_other_things_are_refused_with_what_is_allowed(thing):
    with pytest.raises(UserError, match=f"{type(thing).__name__} is not a retriever; give an object with search"):
        as_retriever(thing)


def test_a_class_and_a_function_without_a_query_are_refused():
    with pytest.raises(UserError, match="the class Passage was given"):
        as_retriever(Passage)
    with pytest.raises(UserError, match="takes no query"):
        as_retriever(lambda: TEXTS)


@pytest.mark.parametrize(
    ("result", "match"),
    [
        ("one string", "returned str"),
        (None, "returned NoneType"),
        ({"text": "x"}, "returned dict"),
        ([3], "a passage is a int without a text"),
        ([{"id": 1}], "without a text"),
        (dspy.Prediction(answer="x"), "has no passages, only answer"),
        (dspy.Prediction(passages="abc"), "passages of the retriever's Prediction are a str"),
        (dspy.Prediction(passages=["x", "y"], ids=["a"]), "has 2 passages, but 1 ids"),
        (dspy.Prediction(passages=["x"], scores=["high"]), "the score 'high'; it must be a finite number"),
        ([{"text": "x", "score": "high"}], "the score 'high'"),
        ([{"text": "x", "score": float("nan")}], "the score nan"),
    ],
)
def test_results_of_another_kind_are_refused(result, match):
    with pytest.raises(UserError, match=match):
        as_retriever(lambda query, k: result).search(["a"], 1)

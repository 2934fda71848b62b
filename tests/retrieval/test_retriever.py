import asyncio
import copy
import pickle
import threading

import dspy
import numpy as np
import pytest
from dspy.utils.callback import BaseCallback
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import E5Retriever, build_index
from maps_rag.programs.types import Passage, Retriever


@pytest.fixture
def same_prefix(tmp_path, documents, make_stub):
    """A retriever whose queries are encoded as passages, so that a passage's contents find it with score 1."""
    stub = make_stub(prefixes=make_stub().prefixes._replace(query="passage: "))
    build_index(documents, tmp_path / "same", stub)
    return E5Retriever(tmp_path / "same", stub, k=3)


def assert_alike(found, expected):
    """Compare predictions; which queries are searched together shows in the last digit of a score."""
    assert found.scores == pytest.approx(expected.scores, abs=1e-5)
    assert found.ids == expected.ids
    assert found.passages == expected.passages


def test_a_call_gives_passages_ids_scores_and_titles(same_prefix, documents):
    found = same_prefix(documents[4].contents)
    assert isinstance(found, dspy.Prediction)
    assert found.ids[0] == "d4"
    assert found.titles[0] == "Title 4"
    assert found.passages[0] == f"Title 4 | {documents[4].text}"
    assert found.scores[0] == pytest.approx(1.0, abs=1e-5)
    assert found.scores == sorted(found.scores, reverse=True)
    assert [len(found[name]) for name in ("passages", "ids", "scores", "titles")] == [3, 3, 3, 3]


def test_results_are_the_nearest_by_brute_force(retriever, documents, make_stub):
    stub = make_stub()
    vectors = stub.encode_passages([document.contents for document in documents])
    queries = ["one question", "another question", "a third"]
    order = np.argsort(-(stub.encode_queries(queries) @ vectors.T), axis=1)[:, :7]
    assert [[p.id for p in found] for found in retriever.search(queries, 7)] == [[f"d{at}" for at in r] for r in order]


def test_a_list_of_queries_gives_a_list_of_predictions(same_prefix, documents):
    found = same_prefix([documents[1].contents, documents[2].contents], k=1)
    assert [prediction.ids for prediction in found] == [["d1"], ["d2"]]
    assert same_prefix([]) == []


def test_search_gives_passages(same_prefix, documents):
    assert isinstance(same_prefix, Retriever)
    ((passage,),) = same_prefix.search([documents[9].contents], 1)
    assert isinstance(passage, Passage)
    assert (passage.id, passage.title, passage.text) == documents[9]
    assert same_prefix.search([], 3) == []


def test_the_queries_of_one_search_are_one_encode_and_one_search(retriever, stub, monkeypatch):
    searches = []
    inner = retriever.index.search
    monkeypatch.setattr(
        retriever.index, "search", lambda vectors, k: searches.append(len(vectors)) or inner(vectors, k)
    )
    retriever.search(["a", "b", "c"], 2)
    assert stub.query_batches == [["a", "b", "c"]]
    assert searches == [3]


def test_rows_that_faiss_leaves_empty_are_dropped(retriever, monkeypatch):
    def short(vectors, k):
        return np.asarray([[0.9, 0.8, -3e38], [0.7, -3e38, -3e38]]), np.asarray([[3, 5, -1], [4, -1, -1]])

    monkeypatch.setattr(retriever.index, "search", short)
    found = retriever.search(["a", "b"], 3)
    assert [[p.id for p in passages] for passages in found] == [["d3", "d5"], ["d4"]]


def test_a_nearly_empty_ivf_index_gives_only_real_passages(tmp_path, documents, stub):
    build_index(documents, tmp_path / "ivf", stub, factory="IVF16,Flat")
    narrow = E5Retriever(tmp_path / "ivf", stub, nprobe=1)
    (found,) = narrow.search(["a"], 30)
    assert 0 < len(found) < 30
    (everything,) = E5Retriever(tmp_path / "ivf", stub, nprobe=16).search(["a"], 30)
    assert len(everything) == 30


def test_async_calls_equal_plain_ones(retriever):
    async def main():
        return await asyncio.gather(retriever.acall("a"), retriever.acall(["a", "b"], k=2), retriever.asearch(["b"], 4))

    one, several, passages = asyncio.run(main())
    assert_alike(one, retriever("a"))
    for found, expected in zip(several, retriever(["a", "b"], k=2), strict=True):
        assert_alike(found, expected)
    assert [p.id for p in passages[0]] == [p.id for p in retriever.search(["b"], 4)[0]]


def test_async_calls_do_not_block_the_loop(retriever, stub, monkeypatch):
    released = threading.Event()
    encode = stub.encode_queries

    def slow(texts):
        assert released.wait(60)  # only the loop sets it
        return encode(texts)

    monkeypatch.setattr(stub, "encode_queries", slow)

    async def main():
        task = asyncio.create_task(retriever.acall("a"))
        await asyncio.sleep(0)
        released.set()
        return await task

    assert len(asyncio.run(main()).ids) == 3


def test_many_threads_get_the_answers_of_one(retriever):
    queries = [f"question {at}" for at in range(64)]
    alone = [retriever(query).toDict() for query in queries]
    results = [None] * 64

    def ask(start):
        for at in range(start, 64, 16):
            results[at] = retriever(queries[at]).toDict()

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [found["ids"] for found in results] == [found["ids"] for found in alone]


def test_it_serves_as_the_retrieval_model_of_dspy(same_prefix, documents):
    with dspy.context(rm=same_prefix.as_rm()):
        assert dspy.Retrieve(k=2)(documents[6].contents).passages[0] == f"Title 6 | {documents[6].text}"
        (item,) = dspy.settings.rm(documents[6].contents, k=1)
    assert (item.pid, item.long_text) == ("d6", f"Title 6 | {documents[6].text}")
    assert item.score == pytest.approx(1.0, abs=1e-5)
    assert len(same_prefix.as_rm()(["a", "b"])) == 2


def test_copies_are_the_retriever_itself(retriever):
    program = dspy.Module()
    program.retriever = retriever
    assert copy.copy(retriever) is retriever
    assert copy.deepcopy(retriever) is retriever
    assert program.deepcopy().retriever is retriever


def test_pickling_reopens_the_index(retriever):
    retriever.k = 2
    content = pickle.dumps(retriever)
    assert len(content) < 2000
    again = pickle.loads(content)
    assert again.fingerprint == retriever.fingerprint
    assert_alike(again("a"), retriever("a"))


class Recorder(BaseCallback):
    def __init__(self):
        self.seen = []

    def on_module_start(self, call_id, instance, inputs):
        self.seen.append(("start", call_id, instance, inputs))

    def on_module_end(self, call_id, outputs, exception=None):
        self.seen.append(("end", call_id, outputs, exception))


def test_calls_are_traced_by_dspy_callbacks(retriever):
    recorder = Recorder()
    with dspy.context(callbacks=[recorder]):
        found = retriever("a", k=1)
        asyncio.run(retriever.asearch(["b"], 1))
        with pytest.raises(UserError):
            retriever("")
    starts = [entry for entry in recorder.seen if entry[0] == "start"]
    ends = [entry for entry in recorder.seen if entry[0] == "end"]
    assert [inputs for *_, inputs in starts] == [
        {"query": "a", "k": 1},
        {"queries": ["b"], "k": 1},
        {"query": "", "k": None},
    ]
    assert all(instance is retriever for _, _, instance, _ in starts)
    assert ends[0][2] is found
    assert isinstance(ends[2][3], UserError)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda r: r(""), "a query is empty"),
        (lambda r: r(" \n"), "a query is empty"),
        (lambda r: r(["a", ""]), "a query is empty"),
        (lambda r: r([3]), "a query must be a string, not int"),
        (lambda r: r(None), "a query must be a string or a list of strings, not NoneType"),
        (lambda r: r("a", k=0), "k must be a whole number of at least 1, not 0"),
        (lambda r: r("a", k=True), "k must be"),
        (lambda r: r("a", k=2.5), "k must be"),
        (lambda r: r.search("a", 1), "search takes a list of queries"),
        (lambda r: r.search(["a"], -1), "k must be"),
        (lambda r: asyncio.run(r.acall("")), "a query is empty"),
        (lambda r: asyncio.run(r.asearch(["a"], 0)), "k must be"),
    ],
)
def test_bad_input_is_refused_before_anything_is_encoded(retriever, stub, call, match):
    with pytest.raises(UserError, match=match):
        call(retriever)
    assert stub.query_batches == []


@pytest.mark.parametrize("option", ["k", "nprobe", "ef_search", "max_batch"])
def test_options_below_one_are_refused(index, stub, option):
    with pytest.raises(UserError, match=f"{option} must be a whole number of at least 1, not 0"):
        E5Retriever(index, stub, **{option: 0})


@pytest.mark.parametrize("change", [lambda vectors: vectors * np.float32("nan"), lambda vectors: vectors[:, :16]])
def test_query_vectors_that_are_not_unit_vectors_of_the_dimension_are_refused(retriever, monkeypatch, change):
    encode = type(retriever.encoder).encode_queries
    monkeypatch.setattr(type(retriever.encoder), "encode_queries", lambda self, texts: change(encode(self, texts)))
    with pytest.raises(UserError, match="the encoder 'stub' gave"):
        retriever("anything")

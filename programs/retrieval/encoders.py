"""From texts to unit vectors."""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.local_e5 import local_e5_directory
from maps_rag.programs.retrieval.prefixes import Prefixes, known_prefixes, prefixes_from_prompts
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

Vectors = NDArray[np.float32]

LOCAL = "local"
CPUINFO = Path("/proc/cpuinfo")
# E5 was trained on inputs of at most 512 tokens; longer ones are cut.
MAX_TOKENS = 512
# Where throughput levels off on CPUs, measured on Wikipedia paragraphs of about 150 tokens.
BATCH_SIZE = 32
# How far from 1 the length of a vector may be: above what half precision leaves.
_LENGTH_TOLERANCE = 0.01


@runtime_checkable
class Encoder(Protocol):
    """Anything that turns queries and passages into vectors of one space.

    - Both methods return float32 of shape (n, ``dimension``), each row of length 1, in the order of the texts.
    - They add the prefixes themselves, and are safe to call from several threads.
    - ``name`` is what an index remembers: opening the index with an encoder of another name is refused.
    - An encoder that is pickled with its retriever must itself be picklable.
    """

    name: str
    dimension: int
    prefixes: Prefixes

    def encode_queries(self, texts: Sequence[str]) -> Vectors: ...

    def encode_passages(self, texts: Sequence[str]) -> Vectors: ...


def checked_vectors(found: Any, count: int, encoder: Encoder) -> Vectors:
    """Return what an encoder gave for ``count`` texts, float32 of shape (count, dimension).

    :raises UserError: it is of another shape, or a row is not finite or not of length 1.
    """
    try:
        vectors = np.ascontiguousarray(found, dtype=np.float32)
    except (TypeError, ValueError):
        vectors, problem = np.zeros(0, np.float32), f"a {type(found).__name__}"
    else:
        problem = f"an array of shape {vectors.shape}"
    if vectors.shape == (count, encoder.dimension):
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.linalg.norm(vectors, axis=1)
        bad = lengths[~(np.abs(lengths - 1) <= _LENGTH_TOLERANCE)]
        if not bad.size:
            return vectors
        problem = f"a vector of length {bad[0]:.3g}"
    raise UserError(
        f"the encoder {encoder.name!r} gave {problem} for {count} texts; it must give finite vectors of length 1, "
        f"an array of shape ({count}, {encoder.dimension})"
    )


class SentenceTransformerEncoder:
    """A sentence-transformers model with its prefixes; made by `load_encoder`.

    bfloat16 is used where the processor computes in it and float32 elsewhere; pooling and results are float32 always.
    """

    def __init__(self, name: str, model: Any, prefixes: Prefixes, *, batch_size: int = BATCH_SIZE) -> None:
        import torch

        self.name = name
        self.prefixes = prefixes
        self.batch_size = batch_size
        model.max_seq_length = min(model.max_seq_length or MAX_TOKENS, MAX_TOKENS)
        model.eval()
        if bfloat16_is_fast(model.device.type):
            model[0].to(torch.bfloat16)
            model[0].register_forward_hook(_tokens_to_float32)
        self.model = model
        self.dimension: int = model.get_embedding_dimension()
        # A fast tokenizer raises "Already borrowed" when two threads use it.
        self._lock = threading.Lock()

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per query, float32 of shape (n, dimension)."""
        return self._encode(self.prefixes.query, texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit vector per passage, float32 of shape (n, dimension)."""
        return self._encode(self.prefixes.passage, texts)

    def _encode(self, prefix: str, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        inputs = [prefix + text for text in texts]
        with self._lock:
            vectors: Vectors = self.model.encode(
                inputs, batch_size=self.batch_size, show_progress_bar=False, convert_to_numpy=True
            )
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def __reduce__(self) -> tuple[Any, ...]:
        return load_encoder, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> SentenceTransformerEncoder:
        return self


def _after_fork() -> None:
    # The lock may be held by a thread that the child does not have, and OpenMP's threads are not there either: a
    # parallel region would wait for them for ever.
    for encoder in list(_loaded.values()):
        encoder._lock = threading.Lock()
    if _loaded:
        import torch

        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


_loaded: weakref.WeakValueDictionary[str, SentenceTransformerEncoder] = weakref.WeakValueDictionary()
_loading = threading.Lock()


def load_encoder(name: str) -> SentenceTransformerEncoder:
    """Return the encoder of a name; one that this process already holds is shared.

    ``local`` is multilingual-e5-small, 4 bit, which works without a network (extra ``local``). Anything else is a
    directory or a hub id of a sentence-transformers model; the paper's is ``intfloat/e5-base-v2``. Prefixes: the known
    ones of E5 and BGE, else the model's own prompts.

    :raises UserError: there is no such model here and none can be fetched.
    """
    if not isinstance(name, str) or not name.strip():
        raise UserError(f"encoder {name!r} is not a name; give 'local', a directory or a Hugging Face id")
    with _loading:
        encoder = _loaded.get(name)
        if encoder is None:
            encoder = _loaded[name] = _load(name)
        return encoder


def _load(name: str) -> SentenceTransformerEncoder:
    path = str(local_e5_directory()) if name == LOCAL else name
    from sentence_transformers import SentenceTransformer

    try:
        with _quiet_loading():
            model = SentenceTransformer(path)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        logger.debug("loading %s failed", name, exc_info=True)
        raise UserError(_cannot_load(name, error)) from error
    prefixes = known_prefixes(name) or prefixes_from_prompts(model.prompts or {})
    if not any(prefixes):
        logger.info("The encoder %s has no prefixes of its own: queries and passages are encoded alike", name)
    return SentenceTransformerEncoder(name, model, prefixes)


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """Keep transformers from drawing a bar and from reporting the pooler that E5 does without."""
    from transformers.utils import logging as transformers_logging

    settings: Any = transformers_logging  # untyped
    level, bar = settings.get_verbosity(), settings.is_progress_bar_enabled()
    settings.set_verbosity_error()
    settings.disable_progress_bar()
    try:
        yield
    finally:
        settings.set_verbosity(level)
        if bar:
            settings.enable_progress_bar()


def _cannot_load(name: str, error: Exception) -> str:
    if Path(name).is_dir():
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        return f"the directory {name} is not a sentence-transformers model: {first}"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
        why = "it is not in the Hugging Face cache and HF_HUB_OFFLINE forbids fetching it"
    else:
        why = "it is neither a directory nor in the Hugging Face cache, and the hub has or gives no such model"
    todo = "use 'local', a model directory, or fetch it where there is a network"
    return f"encoder {name!r} cannot be loaded: {why}; {todo}"


def bfloat16_is_fast(device: str) -> bool:
    """Return whether matrix products in bfloat16 are done by the hardware of ``cpu`` or ``cuda``."""
    import torch

    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device == "cpu":
        # Elsewhere than on Linux the flags cannot be read, and float32 is the safe answer.
        flags = _cpu_flags(CPUINFO)
        return "amx_bf16" in flags or "avx512_bf16" in flags
    return False


def _cpu_flags(cpuinfo: Path) -> frozenset[str]:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return frozenset()
    return next((frozenset(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), frozenset())


def _tokens_to_float32(module: Any, inputs: Any, output: dict[str, Any]) -> dict[str, Any]:
    output["token_embeddings"] = output["token_embeddings"].float()
    return output

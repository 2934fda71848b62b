"""An encoder without a model: a unit vector drawn from each text's hash."""

import hashlib
import threading

import numpy as np
from maps_rag.programs.retrieval import Prefixes


class StubEncoder:
    """Equal texts have equal vectors and different texts nearly orthogonal ones, so each text finds itself first."""

    def __init__(self, name="stub", dimension=32, prefixes=Prefixes("query: ", "passage: ")):  # noqa: B008
        self.name = name
        self.dimension = dimension
        self.prefixes = prefixes
        self.query_batches = []
        self.passage_batches = []
        self._lock = threading.Lock()

    def encode_queries(self, texts):
        with self._lock:
            self.query_batches.append(list(texts))
        return self._vectors(texts)

    def encode_passages(self, texts):
        self.passage_batches.append(list(texts))
        return self._vectors(texts)

    def _vectors(self, texts):
        rows = [
            np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])).normal(
                size=self.dimension
            )
            for text in texts
        ]
        vectors = np.asarray(rows, dtype=np.float32).reshape(len(texts), self.dimension)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def __reduce__(self):
        return StubEncoder, (self.name, self.dimension, self.prefixes)

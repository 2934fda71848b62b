"""What the tests of drift share: an encoder by table, trajectories of a few words, paths drawn at random."""

import numpy as np
from maps_rag.metrics.drift import QueryPath


class TableEncoder:
    """Encodes by a table from text to vector; records every batch."""

    def __init__(self, table):
        self.table = table
        self.batches = []

    def encode_queries(self, texts):
        self.batches.append(list(texts))
        return np.array([self.table[text] for text in texts], dtype=np.float32)

    def encode_passages(self, texts):
        return self.encode_queries(texts)


def trajectory(question, *rounds):
    """A trajectory as plain data; a round is a list of sub-queries, or a dict with what else it has."""
    return {"question": question, "rounds": [_round(index, given) for index, given in enumerate(rounds, 1)]}


def _round(index, given):
    fields = {"queries": given} if isinstance(given, list) else dict(given)
    queries = fields.pop("queries")
    passages = [{"score": 0.5, "title": "", "text": "", **passage} for passage in fields.pop("passages", ())]
    found = [passage["id"] for passage in passages]
    ids = fields.pop("ids", [found] * len(queries))
    searches = [
        {"query": query, "ids": each, "scores": [0.5] * len(each)} for query, each in zip(queries, ids, strict=True)
    ]
    empty = {"known": [], "missing": "", "directions": [], "knowledge": [], "reasoning_state": "", "complete": True}
    return {"index": index, **empty, "searches": searches, "passages": passages, **fields}


def path(*points, question="q", start=(1.0, 0.0)):
    """A path of one sub-query a round."""
    return QueryPath(question, np.array(start), tuple(np.array([point], dtype=float) for point in points))


def shared_shift(count, rounds, dimension, share, seed, width=1):
    """Paths whose sub-queries forget each other: question + a shift of the question + noise of their own."""
    rng = np.random.default_rng(seed)
    shift = np.sqrt(share / dimension) * rng.standard_normal((count, 1, 1, dimension))
    noise = np.sqrt((1 - share) / dimension) * rng.standard_normal((count, rounds, width, dimension))
    return [QueryPath(f"q{i}", unit(dimension), tuple(unit(dimension) + part)) for i, part in enumerate(shift + noise)]


def random_walks(count, rounds, dimension, seed, lengths=(0.5, 2)):
    """Paths whose steps forget each other and have lengths of their own, drawn between two."""
    rng = np.random.default_rng(seed)
    steps = rng.standard_normal((count, rounds, dimension)) * rng.uniform(*lengths, (count, rounds, 1))
    points = unit(dimension) + np.cumsum(steps / np.sqrt(dimension), axis=1)
    return [QueryPath(f"q{i}", unit(dimension), tuple(part[:, None])) for i, part in enumerate(points)]


def with_momentum(count, dimension, beta, seed, noise=0.5):
    """Paths whose next sub-query lies along the momentum of a known beta, but for noise in all directions alike."""
    rng = np.random.default_rng(seed)

    def drawn(size=1.0):
        return size / np.sqrt(dimension) * rng.standard_normal((count, dimension))

    points, momentum, before = [], np.zeros((count, dimension)), np.zeros((count, dimension))
    for value in (*beta, None):
        point = drawn() if not points else momentum / np.linalg.norm(momentum, axis=1, keepdims=True) + drawn(noise)
        if value is not None:
            momentum = value * momentum + (1 - value) * (point - before)
        points.append(point)
        before = point
    whole = unit(dimension) + np.stack(points, axis=1)
    return [QueryPath(f"q{i}", unit(dimension), tuple(part[:, None])) for i, part in enumerate(whole)]


def unit(dimension):
    """The first unit vector."""
    vector = np.zeros(dimension)
    vector[0] = 1
    return vector

"""Diagnostics of drift: the paper's momentum beside its nulls, and monitors that mean something."""

from maps_rag.metrics.drift.encoding import CachedEncoder, QueryEncoder, QueryPath, query_paths
from maps_rag.metrics.drift.estimate import Estimate
from maps_rag.metrics.drift.momentum import with_first_beta
from maps_rag.metrics.drift.nulls import random_walk_alignment, shared_shift_alignment
from maps_rag.metrics.drift.scores import Momentum, MomentumScores, NullScores, fit_momentum

__all__ = [
    "CachedEncoder",
    "Estimate",
    "Momentum",
    "MomentumScores",
    "NullScores",
    "QueryEncoder",
    "QueryPath",
    "fit_momentum",
    "query_paths",
    "random_walk_alignment",
    "shared_shift_alignment",
    "with_first_beta",
]

"""Diagnostics of drift: the paper's momentum beside its nulls, and monitors that mean something."""

from maps_rag.metrics.drift.encoding import CachedEncoder, QueryEncoder, QueryPath, query_paths
from maps_rag.metrics.drift.estimate import Estimate
from maps_rag.metrics.drift.excess import NullScores
from maps_rag.metrics.drift.flag import DriftFlags, drift_flags
from maps_rag.metrics.drift.leaks import Leak, RoundLeaks, leaks
from maps_rag.metrics.drift.momentum import with_first_beta
from maps_rag.metrics.drift.monitors import Monitors, monitors
from maps_rag.metrics.drift.nulls import random_walk_alignment, shared_shift_alignment
from maps_rag.metrics.drift.offset import Offset, OffsetCurves, cumulative_offset
from maps_rag.metrics.drift.scores import Momentum, MomentumScores, TooFewQuestionsError, fit_momentum
from maps_rag.metrics.drift.similarity import RoundSimilarity, Similarity, similarity_by_round
from maps_rag.metrics.drift.stopping import PUBLISHED_STOPPING, Stopping, StoppingBars, stopping

__all__ = [
    "PUBLISHED_STOPPING",
    "CachedEncoder",
    "DriftFlags",
    "Estimate",
    "Leak",
    "Momentum",
    "MomentumScores",
    "Monitors",
    "NullScores",
    "Offset",
    "OffsetCurves",
    "QueryEncoder",
    "QueryPath",
    "RoundLeaks",
    "RoundSimilarity",
    "Similarity",
    "Stopping",
    "StoppingBars",
    "TooFewQuestionsError",
    "cumulative_offset",
    "drift_flags",
    "fit_momentum",
    "leaks",
    "monitors",
    "query_paths",
    "random_walk_alignment",
    "shared_shift_alignment",
    "similarity_by_round",
    "stopping",
    "with_first_beta",
]

"""Intervals, paired tests, spread over runs and comparison at equal cost; numpy in, frozen records out.

The unit is the question: with several runs a question counts once, with its mean. Everything random takes a seed.
"""

from maps_rag.metrics.statistics.intervals import (
    Interval,
    bootstrap_interval,
    by_group,
    macro_interval,
    proportion_interval,
)
from maps_rag.metrics.statistics.matched import Matched, Setting, compute_matched, truncated
from maps_rag.metrics.statistics.paired import (
    PairedTest,
    RankTest,
    SignTest,
    holm,
    mcnemar,
    paired_bootstrap,
    sign_test,
    wilcoxon_test,
)
from maps_rag.metrics.statistics.runs import Spread, spread

__all__ = [
    "Interval",
    "Matched",
    "PairedTest",
    "RankTest",
    "Setting",
    "SignTest",
    "Spread",
    "bootstrap_interval",
    "by_group",
    "compute_matched",
    "holm",
    "macro_interval",
    "mcnemar",
    "paired_bootstrap",
    "proportion_interval",
    "sign_test",
    "spread",
    "truncated",
    "wilcoxon_test",
]

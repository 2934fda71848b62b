"""From an example and a prediction to numbers.

The diagnostics of drift are loaded when they are first used, since they bring scipy's optimizer with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maps_rag.metrics.answers import (
    METRIC_VERSION,
    CoverEM,
    answer_tokens,
    cover_em,
    cover_em_capped,
    cover_em_response,
    cover_em_substring,
    exact_match,
    f1,
)
from maps_rag.metrics.choices import choice_accuracy, choice_letter
from maps_rag.metrics.cost import Prices, money, question_cost
from maps_rag.metrics.evidence import GoldPassages, evidence
from maps_rag.metrics.normalize import normalize
from maps_rag.metrics.statistics import (
    Interval,
    Matched,
    PairedTest,
    RankTest,
    Setting,
    SignTest,
    Spread,
    bootstrap_interval,
    by_group,
    compute_matched,
    holm,
    macro_interval,
    mcnemar,
    paired_bootstrap,
    proportion_interval,
    sign_test,
    spread,
    truncated,
    wilcoxon_test,
)

if TYPE_CHECKING:
    from maps_rag.metrics.drift import (
        cumulative_offset,
        drift_flags,
        fit_momentum,
        monitors,
        similarity_by_round,
        stopping,
    )

__all__ = [
    "METRIC_VERSION",
    "CoverEM",
    "GoldPassages",
    "Interval",
    "Matched",
    "PairedTest",
    "Prices",
    "RankTest",
    "Setting",
    "SignTest",
    "Spread",
    "answer_tokens",
    "bootstrap_interval",
    "by_group",
    "choice_accuracy",
    "choice_letter",
    "compute_matched",
    "cover_em",
    "cover_em_capped",
    "cover_em_response",
    "cover_em_substring",
    "cumulative_offset",
    "drift_flags",
    "evidence",
    "exact_match",
    "f1",
    "fit_momentum",
    "holm",
    "macro_interval",
    "mcnemar",
    "money",
    "monitors",
    "normalize",
    "paired_bootstrap",
    "proportion_interval",
    "question_cost",
    "sign_test",
    "similarity_by_round",
    "spread",
    "stopping",
    "truncated",
    "wilcoxon_test",
]

_DRIFT = frozenset({"cumulative_offset", "drift_flags", "fit_momentum", "monitors", "similarity_by_round", "stopping"})


def __getattr__(name: str) -> Any:
    if name in _DRIFT:
        return getattr(import_module("maps_rag.metrics.drift"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

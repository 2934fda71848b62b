"""From an example and a prediction to numbers."""

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

__all__ = [
    "METRIC_VERSION",
    "CoverEM",
    "GoldPassages",
    "Prices",
    "answer_tokens",
    "choice_accuracy",
    "choice_letter",
    "cover_em",
    "cover_em_capped",
    "cover_em_response",
    "cover_em_substring",
    "evidence",
    "exact_match",
    "f1",
    "money",
    "normalize",
    "question_cost",
]

"""Language models: the factory, its adapter and the weights behind the local ones."""

from maps_rag.programs.models.adapter import ReplyCutOffError, StructuredAdapter, adapter_for
from maps_rag.programs.models.factory import is_local, language_model
from maps_rag.programs.models.retry import describe_error, retry_delay
from maps_rag.programs.models.thinking import strip_think
from maps_rag.programs.models.weights import fetch_weights

__all__ = [
    "ReplyCutOffError",
    "StructuredAdapter",
    "adapter_for",
    "describe_error",
    "fetch_weights",
    "is_local",
    "language_model",
    "retry_delay",
    "strip_think",
]

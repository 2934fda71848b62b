"""What runs programs over data sets: evaluation and its report.

The names below are loaded when they are first used, so that the small parts of this package stay quick to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maps_rag.optimize.reporting import DriftReport, Report, drift, report
    from maps_rag.optimize.runner import Evaluation, Forecast, evaluate, forecast

__all__ = ["DriftReport", "Evaluation", "Forecast", "Report", "drift", "evaluate", "forecast", "report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "reporting" if name in ("DriftReport", "Report", "drift", "report") else "runner"
    return getattr(import_module(f"{__name__}.{home}"), name)

"""The evaluation runner: methods over questions, journalled, resumable, within a budget."""

from maps_rag.optimize.runner.evaluate import Evaluation, evaluate
from maps_rag.optimize.runner.forecast import Forecast, forecast

__all__ = ["Evaluation", "Forecast", "evaluate", "forecast"]

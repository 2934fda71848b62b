"""The evaluation runner: methods over questions, journalled, resumable, within a budget."""

from maps_rag.optimize.runner.evaluation import Evaluation, evaluate
from maps_rag.optimize.runner.forecasts import Forecast, forecast

__all__ = ["Evaluation", "Forecast", "evaluate", "forecast"]

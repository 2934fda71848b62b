"""Questions to evaluate on, out of the data sets of the field, by name or from a file."""

from __future__ import annotations

from maps_rag.optimize.data.load import data_hash, load_questions
from maps_rag.optimize.data.registry import DATA_SETS, DataSet

__all__ = ["DATA_SETS", "DataSet", "data_hash", "load_questions"]

"""Reports of evaluation runs: Markdown tables, one page of HTML, and the diagnostics of drift."""

from maps_rag.optimize.reporting.build import Report, report
from maps_rag.optimize.reporting.drift_report import DriftReport, drift

__all__ = ["DriftReport", "Report", "drift", "report"]

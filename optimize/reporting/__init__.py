"""Reports of evaluation runs: Markdown tables and one page of HTML."""

from maps_rag.optimize.reporting.build import Report, report

__all__ = ["Report", "report"]

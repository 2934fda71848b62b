"""Puts a report together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maps_rag.optimize.reporting.browser import entry_of
from maps_rag.optimize.reporting.comparison import ablation_section, comparison_section
from maps_rag.optimize.reporting.cost import cost_section
from maps_rag.optimize.reporting.document import Document
from maps_rag.optimize.reporting.drift_cells import CellDrift, measure_drift
from maps_rag.optimize.reporting.drift_tables import drift_section
from maps_rag.optimize.reporting.evidence import evidence_section, failures_section
from maps_rag.optimize.reporting.files import write_whole
from maps_rag.optimize.reporting.html import Browser, to_html
from maps_rag.optimize.reporting.markdown import to_markdown
from maps_rag.optimize.reporting.matched import matched_section
from maps_rag.optimize.reporting.paper import paper_section
from maps_rag.optimize.reporting.pareto import pareto_section
from maps_rag.optimize.reporting.results import Results, load_results
from maps_rag.optimize.reporting.run_dir import open_run_dirs
from maps_rag.optimize.reporting.sample import Sampler, find_trajectories
from maps_rag.optimize.reporting.scores import companions_section, scores_section, types_section
from maps_rag.optimize.reporting.setting import setting_section
from maps_rag.optimize.reporting.stopping import stopping_section
from maps_rag.optimize.reporting.uncertainty import Uncertainty
from maps_rag.programs.errors import UserError

SAMPLE = 120
"""Questions that the page shows at most."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report of run directories: tables as Markdown, and everything as one page of HTML."""

    document: Document
    _results: Results
    _sampler: Sampler

    def markdown(self) -> str:
        """Return the tables as Markdown."""
        return to_markdown(self.document)

    def html(self) -> str:
        """Return one page that needs nothing else: tables, figures and a sample of questions.

        Reads the trajectories, once and a line at a time.
        """
        shown = self._sampler.chosen(self._results)
        find_trajectories(shown, self._results)
        entries = [entry_of(item, self._results.is_choice(item.key[1])) for item in shown]
        about = (
            f"{len(entries):,} questions, chosen by a seed: as many right as wrong ones of each method where possible, "
            "and the same questions for all methods. Gold passages are marked. "
            "These are examples; the tables above count all questions."
        )
        return to_html(self.document, Browser(about, entries, self._results.methods, self._results.sets))


def report(
    dirs: Sequence[str | Path],
    *,
    markdown: str | Path | None = None,
    html: str | Path | None = None,
    against: str | None = None,
    sample: int = SAMPLE,
    seed: int = 0,
    drift: bool = False,
    index: str | Path | None = None,
) -> Report:
    """Report what run directories hold.

    :param dirs: directories that the runner has written; they may hold different sets, methods or models. Methods of
        one name with other settings, models or indexes are told apart by their label.
    :param markdown: a file to write the tables to.
    :param html: a file to write the page to.
    :param against: the method that the others are compared with; "all" compares every pair. Without it, "maps" where
        it was run, else the first.
    :param sample: how many questions the page shows at most.
    :param seed: of the sample, of the bootstrap and of the nulls of drift.
    :param drift: add a section on drift, for which the encoder that the runs name is loaded and all sub-queries are
        encoded; see :func:`~maps_rag.optimize.reporting.drift_cells.measure_drift`.
    :param index: for the drift: the index that was searched, which has the text of gold passages named by id.
    :raises UserError: when a directory is none that the runner wrote, or two cannot be reported together; see
        :func:`~maps_rag.optimize.reporting.results.load_results`.
    """
    if sample < 0:
        raise UserError(f"sample must be at least 0, but is {sample}.")
    strata = 2 * sum(len(run.methods) for run in open_run_dirs(dirs))
    sampler = Sampler(sample, strata, seed)
    results = load_results(dirs, sampler.see)
    measured = measure_drift(dirs, index=index, seed=seed) if drift else None
    made = Report(_document(results, against, seed, measured), results, sampler)
    if markdown is not None:
        write_whole(Path(markdown), made.markdown())
    if html is not None:
        write_whole(Path(html), made.html())
    return made


def _document(results: Results, against: str | None, seed: int, drift: Sequence[CellDrift] | None) -> Document:
    uncertain = Uncertainty(results, seed)
    ablation = ablation_section(results, uncertain)
    sections = (
        scores_section(results, uncertain),
        comparison_section(results, against, uncertain),
        ablation,
        paper_section(results.sets, ablation is not None),
        companions_section(results),
        types_section(results, uncertain),
        cost_section(results),
        pareto_section(results, uncertain),
        matched_section(results, against, seed),
        stopping_section(results),
        None if drift is None else drift_section(drift),
        evidence_section(results),
        failures_section(results),
        setting_section(results),
    )
    models = dict.fromkeys(run.model for run in results.runs)
    return Document(f"Evaluation with {', '.join(models)}", tuple(part for part in sections if part is not None))

"""The drift of run directories: what its tables, numbers and plots say."""

import json
import sys

import pytest
from maps_rag.optimize.reporting import drift, report
from maps_rag.programs.errors import UserError

from tests.metrics.drift_paths import TableEncoder
from tests.metrics.drift_paths import trajectory as plain
from tests.optimize.run_dirs import choice, line, trajectory, write_run
from tests.optimize.test_report import table

VECTORS = {"up": (1, 1), "right": (2, 1), "on": (2, 2), "G\ngold": (1, 0), "H\nhers": (0, 1)}
GOLD = [{"title": "G", "text": "gold"}]
OTHER = [{"title": "H", "text": "hers"}]


def evaluated(path, count=8, methods=("maps", "search_o1"), sets=("hotpotqa",)):
    """A run of methods that walk up, right and on for every question, and its encoder."""
    found = [{"id": "p1", "title": "G", "text": "gold"}]
    rounds = plain("", {"queries": ["up"], "passages": found}, ["right"], ["on"])["rounds"]
    lines, records = [], []
    for method in methods:
        for dataset in sets:
            for number in range(count):
                entry = line(method, dataset, f"q{number}", rounds=3)
                lines.append(entry)
                record = trajectory(entry, f"question {number}", GOLD if number % 2 else OTHER, rounds)
                record["trajectory"]["question"] = record["question"]
                records.append(record)
    encoder = TableEncoder(VECTORS | {f"question {number}": (1, 0) for number in range(count)})
    return write_run(path / "run", lines, records), encoder


def test_every_method_and_set_has_its_rows(tmp_path):
    run, encoder = evaluated(tmp_path, sets=("hotpotqa", "musique"))
    markdown = drift([run], encoder=encoder).markdown()
    rows = table(markdown, "Search momentum, over all questions that reach t")
    assert {(row["set"], row["method"], row["sub-queries"]) for row in rows} == {
        (name, method, what)
        for name in ("hotpotqa", "musique")
        for method in ("maps", "search_o1")
        for what in ("mean of the round", "each on its own")
    }
    assert len(rows) == 2 * 2 * 2 * 2


def test_the_numbers_of_the_tables_are_those_worked_out_by_hand(tmp_path):
    run, encoder = evaluated(tmp_path, methods=("maps",))
    markdown = drift([run], encoder=encoder).markdown()
    first, second, *_ = table(markdown, "Search momentum, over all questions that reach t")
    assert (first["t"], first["n"], first["S"].split(" ")[0], first["random walk"]) == ("1", "4", "0.707", "0.707")
    assert (second["beta"], second["S"].split(" ")[0]) == ("0.67", "1.000")
    near = table(markdown, "Cosine of the sub-queries")[0]
    assert (near["round"], near["n"], near["question"].split(" ")[0]) == ("1", "8", "0.707")
    brought = table(markdown, "What each round brought")[0]
    assert (brought["new gold passages"], brought["gold so far, %"]) == ("0.500", "50.0")
    stopped = table(markdown, "Questions that stop at a step")
    assert stopped[0]["steps 3 and 4"] == "100.0"
    assert [row["method"] for row in stopped[1:]] == ["MAPS", "Search-o1", "ParallelSearch"]


def test_all_offsets_of_a_set_take_the_beta_of_search_o1(tmp_path):
    run, encoder = evaluated(tmp_path)
    cells = drift([run], encoder=encoder).cells
    assert [cell.offset_by for cell in cells] == ["search_o1", "search_o1"]


def test_too_few_questions_leave_all_but_the_momentum(tmp_path):
    run, encoder = evaluated(tmp_path, count=2)
    made = drift([run], encoder=encoder)
    assert all(not cell.momentum and "4 or more" in cell.too_few for cell in made.cells)
    assert "Too few questions are long enough to fit a momentum: maps on hotpotqa" in made.markdown()
    assert table(made.markdown(), "Questions flagged as drifted")


def test_multiple_choice_has_only_its_stopping_steps(tmp_path):
    entry = choice(rounds=1)
    run = write_run(tmp_path / "run", [entry], [trajectory(entry, "", (), [plain("", [""])["rounds"][0]])])
    markdown = drift([run], encoder=TableEncoder({})).markdown()
    assert table(markdown, "Questions that stop at a step")[0]["step 2"] == "100.0"
    assert "Cosine of the sub-queries" not in markdown


def test_without_an_encoder_in_the_runs_one_must_be_named(tmp_path):
    entry = line()
    run = write_run(tmp_path / "run", [entry], [trajectory(entry)], index=None)
    with pytest.raises(UserError, match="no encoder"):
        drift([run])


def test_runs_without_trajectories_are_refused(tmp_path):
    with pytest.raises(UserError, match="No trajectory"):
        drift([write_run(tmp_path / "run", [line()])], encoder=TableEncoder({}))


def test_every_number_is_written_as_json(tmp_path):
    run, encoder = evaluated(tmp_path)
    drift([run], encoder=encoder, numbers=tmp_path / "out" / "drift.json", markdown=tmp_path / "drift.md")
    [cell, _] = json.loads((tmp_path / "out" / "drift.json").read_text(), parse_constant=pytest.fail)["cells"]
    assert cell["momentum"]["mean"]["all"]["nulls"]["shuffled"]["excess"][0]["n"] == 4
    assert (tmp_path / "drift.md").read_text().startswith("# Drift")


def test_the_report_has_a_section_on_drift_when_asked(tmp_path, monkeypatch):
    run, encoder = evaluated(tmp_path)
    monkeypatch.setattr("maps_rag.programs.retrieval.load_encoder", lambda name: encoder)
    assert "## Drift" not in report([run]).markdown()
    page = report([run], drift=True)
    assert "## Drift" in page.markdown()
    assert "Search momentum" in page.html()


def test_plots_are_drawn_for_each_set(tmp_path):
    pytest.importorskip("matplotlib")
    run, encoder = evaluated(tmp_path, sets=("hotpotqa", "a/b"))
    made = drift([run], encoder=encoder, plots=tmp_path / "plots")
    assert sorted(path.name for path in made.plots) == sorted(
        f"{name}-{dataset}.svg"
        for name in ("similarity", "momentum", "offset", "stopping")
        for dataset in ("hotpotqa", "a-b")
    )
    assert all(path.read_text().startswith("<?xml") for path in made.plots)


def test_plots_without_matplotlib_say_what_to_install(tmp_path, monkeypatch):
    run, encoder = evaluated(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"maps-rag\[plots\]"):
        drift([run], encoder=encoder, plots=tmp_path / "plots")


def test_a_plot_of_another_form_is_refused(tmp_path):
    run, encoder = evaluated(tmp_path)
    with pytest.raises(UserError, match="'gif'"):
        drift([run], encoder=encoder, plots=tmp_path / "plots", form="gif")

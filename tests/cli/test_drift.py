"""``maps-rag drift``: tables on the screen, files where asked, one line for a mistake."""

import json

import pytest

from tests.optimize.test_drift import evaluated


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A run directory whose encoder is a table."""
    path, encoder = evaluated(tmp_path)
    monkeypatch.setattr("maps_rag.programs.retrieval.load_encoder", lambda name: encoder)
    return path


def test_the_tables_are_shown(run, measured):
    result = run("drift", measured, "--steps", 2, "--joint")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("# Drift of the sub-queries")
    assert "Search momentum" in result.stdout
    assert result.stderr == ""


def test_tables_and_numbers_are_written_to_files(run, measured, tmp_path):
    result = run("drift", measured, "--markdown", tmp_path / "drift.md", "--json", tmp_path / "drift.json")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr.splitlines() == [f"Wrote {tmp_path / 'drift.md'}", f"Wrote {tmp_path / 'drift.json'}"]
    assert json.loads((tmp_path / "drift.json").read_text())["cells"][0]["method"] == "maps"


def test_the_report_takes_the_section_too(run, measured):
    assert "## Drift" not in run("report", measured).stdout
    assert "## Drift" in run("report", measured, "--drift").stdout


def test_mistakes_are_one_line(fails, measured, tmp_path):
    assert "no run directory" in fails("drift", tmp_path)
    assert "--steps" in fails("drift", measured, "--steps", 0)

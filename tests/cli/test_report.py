"""``maps-rag report``: tables to the terminal or a file, the page, and one line for every mistake."""

import json

import pytest

from tests.optimize.run_dirs import failed, line, trajectory, write_run


@pytest.fixture
def evaluated(tmp_path):
    """A small run of two methods, one question failed."""
    lines = [line(), line("vanilla", right=False), failed("vanilla", name="q2", error="LMError: \x1b[31mred")]
    return write_run(tmp_path / "evaluated", lines, [trajectory(entry) for entry in lines[:2]])


def test_the_tables_are_printed_as_markdown_in_one_line_a_row(run, evaluated):
    result = run("report", evaluated)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0] == "# Evaluation with local-small"
    assert any(entry.startswith("| maps ") and "100.0 [2.5, 100.0]" in entry for entry in lines)
    assert any(entry.startswith("| vanilla ") and "0.0 [0.0, 84.2]" in entry for entry in lines)
    assert "\x1b" not in result.stdout


def test_tables_and_page_are_written_to_files(run, evaluated, tmp_path):
    markdown, html = tmp_path / "out" / "tables.md", tmp_path / "out" / "page.html"
    result = run("report", evaluated, "--markdown", markdown, "--html", html)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr.splitlines() == [f"Wrote {markdown}", f"Wrote {html}"]
    assert "## Scores" in markdown.read_text()
    assert html.read_text().startswith("<!DOCTYPE html>")


def test_the_page_alone_leaves_the_tables_on_the_screen(run, evaluated, tmp_path):
    result = run("report", evaluated, "--html", tmp_path / "page.html", "--sample", 1)
    assert "## Scores" in result.stdout
    assert (tmp_path / "page.html").read_text().count('<details class="question"') == 2


def test_several_runs_make_one_report(run, evaluated, tmp_path):
    other = write_run(tmp_path / "other", [line("direct")])
    shown = run("report", evaluated, other, "--against", "direct").stdout
    assert "direct vs maps" in shown
    assert "direct vs vanilla" in shown


def test_mistakes_are_one_line(fails, evaluated, tmp_path):
    assert "is no run directory" in fails("report", tmp_path / "nowhere")
    assert "There is no method 'mapz'" in fails("report", evaluated, "--against", "mapz")
    assert "'DIR...'" in fails("report")
    manifest = evaluated / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"format": 7}))
    assert "has format 7" in fails("report", evaluated)

"""What is shown while an evaluation runs."""

from __future__ import annotations

import io

import pytest
from maps_rag.optimize.runner.progress import Bars, speed_text
from maps_rag.optimize.runner.tally import Tally
from rich.console import Console


def line(number, method="maps", right=True, **more):
    usage = {"billed_tokens": 1000, "calls": 5}
    key = {"method": method, "dataset": "d", "id": str(number), "run": 0}
    return {**key, "usage": usage, "scores": {"cover_em": float(right)}, "cost": {}, **more}


def failure(number, method="maps"):
    key = {"method": method, "dataset": "d", "id": str(number), "run": 0}
    return {**key, "error": "LMTimeoutError: too slow", "usage": {"billed_tokens": 10}}


def shown(terminal, lines, before=()):
    """Return what is written for lines that come one by one, after those that were there before."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=200, markup=False, highlight=False)
    tally = Tally.read(before, {"maps": 10, "direct": 10})
    with Bars(console) as bars:
        bars.show(tally)
        for item in lines:
            tally.add(item)
            bars.show(tally)
        bars._bars.refresh()
    return file.getvalue()


def test_where_nothing_moves_each_tenth_is_a_line():
    written = shown(False, [line(number, right=number < 3) for number in range(6)])
    rows = written.splitlines()
    assert [row.split(" questions")[0] for row in rows] == ["2 of 20", "4 of 20", "6 of 20"]
    assert "maps Cover-EM 50.0" in rows[-1]
    assert "6,000 tokens" in rows[-1]
    assert "min left" in rows[-1]
    assert "\x1b" not in written


def test_going_on_does_not_repeat_the_lines_of_what_was_done():
    before = [line(number) for number in range(9)]
    (row,) = shown(False, [line(9)], before).splitlines()
    assert row.startswith("10 of 20 questions")


def test_on_a_terminal_every_method_has_a_bar_with_its_score():
    written = shown(True, [line(1), line(2, right=False), line(1, "direct"), failure(3)])
    for text in ("maps", "3/10", "Cover-EM 50.0", "direct", "1/10", "Cover-EM 100.0", "4/20", "3,010 tokens"):
        assert text in written
    assert "1 failed (LMTimeoutError: too slow)" in written


@pytest.mark.parametrize(("speed", "text"), [(12.34, "12.3 questions/s"), (0.05, "3.0 questions/min")])
def test_a_slow_speed_is_told_by_the_minute(speed, text):
    assert speed_text(speed) == text


def test_a_tally_counts_a_question_once_and_what_it_took_each_time():
    tally = Tally.read([failure(1), failure(1), line(1), failure(2)], {"maps": 3})
    row = tally.rows["maps"]
    assert (row.finished, row.failed, row.cover_em, tally.tokens) == (1, 1, 1.0, 1030)
    assert row.usage["calls"] == 5
    assert tally.is_finished(("maps", "d", "1", 0))
    assert not tally.is_finished(("maps", "d", "2", 0))

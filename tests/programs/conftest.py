"""Shared by the tests of programs."""

from __future__ import annotations

import pytest
from maps_rag.programs.effects import Pause


@pytest.fixture
def pauses(monkeypatch):
    """Record pauses, in seconds, instead of waiting."""
    seconds: list[float] = []

    async def arun(pause):
        seconds.append(pause.seconds)

    monkeypatch.setattr(Pause, "run", lambda pause: seconds.append(pause.seconds))
    monkeypatch.setattr(Pause, "arun", arun)
    return seconds

"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Preset(StrEnum):
    """The presets that every method has."""

    paper = "paper"
    original = "original"


class Refine(StrEnum):
    """The kinds of refinement."""

    distil = "distil"
    select = "select"


Model = Annotated[
    str, typer.Option(help="local, local-small, a .gguf file, or a model as DSPy names it.", metavar="MODEL")
]
ApiBase = Annotated[
    str | None, typer.Option(help="Address of an OpenAI-compatible server; its key: OPENAI_API_KEY.", metavar="URL")
]
Cache = Annotated[
    bool,
    typer.Option(
        "--cache/--no-cache",
        help="Take replies that the same model gave to the same prompt before, at whatever address.",
    ),
]

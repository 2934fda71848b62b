"""``maps-rag ask``: answer one question over an index."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from maps_rag.cli.console import Screen, Spinner
from maps_rag.cli.defaults import LOCAL_MODELS, choose_knobs, runs_here
from maps_rag.cli.errors import CommandError
from maps_rag.cli.index_build import unpack_encoder
from maps_rag.cli.options import ApiBase, Cache, Model, Preset, Refine
from maps_rag.cli.quiet import after_imports
from maps_rag.cli.rounds import answer_question

if TYPE_CHECKING:
    import dspy


def ask(
    question: Annotated[str, typer.Argument(help="The question, in quotes.", show_default=False)],
    index: Annotated[Path, typer.Option(metavar="DIR", help="The index directory to search.", show_default=False)],
    lm: Model = "local",
    api_base: ApiBase = None,
    method: Annotated[
        str, typer.Option(help="How to search and answer; see maps-rag methods.", metavar="NAME")
    ] = "maps",
    preset: Annotated[
        Preset | None,
        typer.Option(
            help="Knobs of the MAPS paper's comparison, or of the method's own paper, whatever the model is "
            "(paper; local models the smaller values below).",
            show_default=False,
        ),
    ] = None,
    directions: Annotated[int | None, typer.Option(help="Sub-queries a round (3).")] = None,
    passages: Annotated[
        int | None, typer.Option(help="Passages a sub-query (5; local models 3).", show_default=False)
    ] = None,
    max_rounds: Annotated[
        int | None, typer.Option(help="Most retrieval rounds (10; local models 3).", show_default=False)
    ] = None,
    min_rounds: Annotated[int | None, typer.Option(help="Fewest retrieval rounds (0; local models 1).")] = None,
    refine: Annotated[
        Refine | None,
        typer.Option(
            help="distil: the model writes what it learned; select: it picks passages and cites them "
            "(distil; local models select).",
            show_default=False,
        ),
    ] = None,
    cache: Cache = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object to standard output, progress to standard error.")
    ] = False,
) -> None:
    """Answer a question over an index, round by round."""
    given = {
        "directions": directions,
        "passages": passages,
        "max_rounds": max_rounds,
        "min_rounds": min_rounds,
        "refine": refine.value if refine else None,
    }
    question = checked_question(question)
    screen = Screen(quiet_stdout=as_json)
    with Spinner(screen.live, "Opening the index"):
        from maps_rag.programs import METHODS, create
        from maps_rag.programs.retrieval import E5Retriever, Manifest

        after_imports()
        has = METHODS[method].knobs() if method in METHODS and preset is None else ()
        knobs = choose_knobs(lm, api_base, has, **given)
        values = (preset or Preset.paper).value
        program = create(method, None, values, **knobs)  # what cannot be is found before anything is loaded
    unpack_encoder(Manifest.read(index).encoder)
    model = None if runs_here(lm, api_base) else open_model(lm, api_base, screen, cache)
    with Spinner(screen.live, "Opening the index"):
        program = create(method, E5Retriever(index), values, **knobs)
        after_imports()
    program.set_lm(model or open_model(lm, api_base, screen, cache))
    prediction = answer_question(program, question, screen)
    if as_json:
        print_json({"question": question, "method": method, "lm": lm, "index": str(index), **prediction.toDict()})
    if not prediction.answer:
        what = ", ".join(prediction.failures) or "its replies had no answer"
        raise CommandError(f"Error: the model {lm} gave no answer ({what}); try again, or another model with --lm.")


def checked_question(question: str) -> str:
    """Return a question without outer spaces; refuse one that is empty or no text."""
    if not question.strip():
        raise CommandError("Error: the question is empty; give it as text in quotes.")
    try:
        question.encode()
    except UnicodeEncodeError:
        raise CommandError("Error: the question is not UTF-8 text; check the encoding of the terminal.") from None
    return question.strip()


def open_model(lm: str, api_base: str | None, screen: Screen, cache: bool = True, **options: Any) -> dspy.LM:
    """Return the language model of a name, fetching its weights with a progress bar where they are not here yet.

    :param cache: False: no reply is read from DSPy's cache or written to it.
    :param options: further ones of ``language_model``.
    """
    from maps_rag.programs import fetch_weights, language_model

    if runs_here(lm, api_base) and lm in LOCAL_MODELS:
        fetch_weights(lm)
    if not cache:
        options["cache"] = False
    if api_base is not None and (key := os.environ.get("OPENAI_API_KEY")):
        options["api_key"] = key
    with Spinner(screen.live, f"Starting the language model {lm}"):
        return language_model(lm, api_base, **options)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object; characters that standard output cannot show are escaped."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(content, ensure_ascii=plain, indent=1) + "\n")
    sys.stdout.flush()

"""``maps-rag demo``: the whole way from a fresh machine to answered questions."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from maps_rag.cli.ask import open_model
from maps_rag.cli.console import Screen, Spinner, count
from maps_rag.cli.defaults import LOCAL_MODELS, choose_knobs
from maps_rag.cli.errors import CommandError
from maps_rag.cli.index_build import build_with_bar
from maps_rag.cli.quiet import after_imports
from maps_rag.cli.rounds import answer_question

if TYPE_CHECKING:
    import dspy
    from maps_rag.programs import MAPS, E5Retriever

# With llama.cpp on two cores.
SPEED = {"local": "about a minute", "local-small": "about half a minute"}
# Of our own data set: two that need a second passage found by the first, one of them a third.
QUESTIONS = ("colossus-designer-birthplace", "night-watch-museum-architect-birthplace")


def demo(
    lm: Annotated[
        str, typer.Option(help="local (1.5B parameters) or local-small (0.5B, faster and weaker).", metavar="MODEL")
    ] = "local",
) -> None:
    """Answer two multi-hop questions over a small corpus, with a language model on this machine."""
    if lm not in LOCAL_MODELS:
        raise CommandError(f"Error: --lm must be one of {', '.join(LOCAL_MODELS)} for the demo, but got {lm!r}.")
    screen = Screen()
    with Spinner(screen.live, "Loading"):
        from maps_rag.optimize.mini import load_questions
        from maps_rag.programs import MAPS
        from maps_rag.programs.cache import cache_dir

        after_imports()
    announce(lm, screen)
    model = open_model(lm, None, screen)
    program = MAPS(demo_retriever(screen), **choose_knobs(lm))
    program.set_lm(model)
    examples = {example.id: example for example in load_questions()}
    scores = []
    for number, name in enumerate(QUESTIONS, 1):
        screen.say()
        screen.say(f"Question {number} of {len(QUESTIONS)}: {examples[name].question}", style="bold")
        scores.append(answer_example(program, examples[name], screen))
    screen.say()
    screen.say(f"{sum(scores):.0f} of {len(scores)} answers contain a gold answer.")
    screen.say(f"Ask your own: maps-rag ask QUESTION --index {demo_index()} --lm {lm}")
    screen.say(f"Everything fetched and built lies in {cache_dir()}.")


def announce(lm: str, screen: Screen) -> None:
    """Say what is about to happen and how long it takes; what is there already is not made again."""
    from maps_rag.programs.models.registry import WEIGHTS
    from maps_rag.programs.models.weights import weights_path

    weights = WEIGHTS[lm]
    screen.say(f"{len(QUESTIONS)} questions that need several passages, with {weights.title} on this machine.")
    if not weights_path(lm).is_file():
        screen.field("once", [f"fetch the model: {weights.size / 1e9:.1f} GB, one to three minutes on a fast line"])
    if not demo_index().is_dir():
        screen.field("once", ["unpack the encoder and build the index: well under a minute"])
    screen.field("each time", [f"{SPEED[lm]} a question on two idle cores, seconds where it was answered before"])


def demo_index() -> Path:
    """Return where the index over our own data set lies; other passages have another place."""
    from maps_rag.optimize.mini import passages_path
    from maps_rag.programs.cache import cache_dir

    return cache_dir() / "demo" / hashlib.sha256(passages_path().read_bytes()).hexdigest()[:12]


def demo_retriever(screen: Screen) -> E5Retriever:
    """Open the index over our own data set; build it where it is missing, damaged or of other passages."""
    from maps_rag.optimize.mini import passages_path
    from maps_rag.programs import E5Retriever, UserError
    from maps_rag.programs.retrieval import Index

    target = demo_index()
    try:
        Index(target)
    except UserError:
        shutil.rmtree(target, ignore_errors=True)
        build_with_bar(str(passages_path()), target)
        for old in target.parent.iterdir():
            if old.is_dir() and old != target:
                shutil.rmtree(old, ignore_errors=True)
    with Spinner(screen.live, "Opening the index"):
        return E5Retriever(target)


def answer_example(program: MAPS, example: dspy.Example, screen: Screen) -> float:
    """Answer a question of the data set and show the gold answer and the score beside it."""
    from maps_rag.metrics import cover_em

    prediction = answer_question(program, example.question, screen)
    score = cover_em(example, prediction)
    needed, found = set(example.supporting), {passage["id"] for passage in prediction.passages}
    screen.field("gold", [f"{example.answers[0]}; {len(needed & found)} of its {count(len(needed), 'passage')} found"])
    screen.field("Cover-EM", [f"{score:.0f}"], style="bold green" if score else "bold red")
    return score

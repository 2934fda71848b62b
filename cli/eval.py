"""``maps-rag eval``: methods over a data set, journalled in a directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from maps_rag.cli.ask import open_model
from maps_rag.cli.console import Screen, Spinner, count
from maps_rag.cli.defaults import runs_here
from maps_rag.cli.entry import INTERRUPTED
from maps_rag.cli.errors import UNEXPECTED, CommandError
from maps_rag.cli.forecasts import show_forecasts
from maps_rag.cli.options import ApiBase, Cache, Model, Preset, Refine
from maps_rag.cli.quiet import after_imports

if TYPE_CHECKING:
    import dspy
    from maps_rag.metrics.cost import Prices
    from maps_rag.optimize.runner import Evaluation
    from maps_rag.programs import SearchProgram

LOCAL_THREADS = 4  # the slots of the local models
SERVER_THREADS = 16


def evaluate_methods(
    method: Annotated[
        str, typer.Option(help="Methods, separated by commas, or all; see maps-rag methods.", metavar="NAMES")
    ],
    dataset: Annotated[
        str,
        typer.Option(help="Data sets by name or files of questions, separated by commas.", metavar="NAMES"),
    ],
    out: Annotated[
        Path, typer.Option(help="Directory for the results; one that has some is gone on with.", metavar="DIR")
    ],
    index: Annotated[Path | None, typer.Option(metavar="DIR", help="The index directory to search.")] = None,
    lm: Model = "local",
    api_base: ApiBase = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Questions of each data set, drawn at random (all).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    runs: Annotated[
        int, typer.Option(min=1, help="Times each question is answered; more than 1 needs --temperature.")
    ] = 1,
    temperature: Annotated[float, typer.Option(min=0.0, help="Sampling temperature of the model.")] = 0.0,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Questions side by side (16; models on this machine 4).", show_default=False),
    ] = None,
    cache: Cache = True,
    preset: Annotated[
        Preset, typer.Option(help="Knobs of the MAPS paper's comparison, or of each method's own paper.")
    ] = Preset.paper,
    directions: Annotated[int | None, typer.Option(help="Sub-queries a round, of methods with this knob.")] = None,
    passages: Annotated[int | None, typer.Option(help="Passages a sub-query, of methods with this knob.")] = None,
    max_rounds: Annotated[int | None, typer.Option(help="Most retrieval rounds, of methods with this knob.")] = None,
    min_rounds: Annotated[int | None, typer.Option(help="Fewest retrieval rounds, of methods with this knob.")] = None,
    refine: Annotated[Refine | None, typer.Option(help="Kind of refinement, of methods with this knob.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many calls and tokens are ahead, and run nothing.")
    ] = False,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Stop, to go on later, after so many billed tokens.")
    ] = None,
    max_cost: Annotated[float | None, typer.Option(help="The same in money, by the prices.")] = None,
    price_in: Annotated[float | None, typer.Option(min=0.0, help="Price of a million prompt tokens.")] = None,
    price_out: Annotated[float | None, typer.Option(min=0.0, help="Price of a million written tokens.")] = None,
) -> None:
    """Answer a data set's questions with every method named, and record what each scored and took.

    Every answer is written as it comes: after an interruption the same command goes on. Questions that failed are
    asked again.
    """
    given = {
        "directions": directions,
        "passages": passages,
        "max_rounds": max_rounds,
        "min_rounds": min_rounds,
        "refine": refine.value if refine else None,
    }
    screen = Screen()
    with Spinner(screen.live, "Loading"):
        from maps_rag.optimize.runner import evaluate
        from maps_rag.optimize.runner.plan import check_budget, plan_evaluation
        from maps_rag.optimize.runner.progress import Bars

        after_imports()
        prices = _prices(price_in, price_out)
        check_budget(max_tokens, max_cost, prices)
        names = method_names(method)
        create_all(names, None, preset.value, given)  # what cannot be is found before anything is loaded
        questions = load_all(dataset, n, seed)
        methods = create_all(names, _retriever(index, names), preset.value, given)
        after_imports()
    model = open_model(lm, api_base, screen, cache, temperature=temperature)
    about: dict[str, Any] = {"lm": model, "runs": runs, "seed": seed if n is not None else None}
    if dry_run:
        from maps_rag.optimize.runner.forecasts import forecast

        show_forecasts(forecast(plan_evaluation(methods, questions, **about), out), prices, screen)
        return
    about |= {"max_tokens": max_tokens, "max_cost": max_cost, "prices": prices}
    about["threads"] = threads or (LOCAL_THREADS if runs_here(lm, api_base) else SERVER_THREADS)
    try:
        result = evaluate(methods, questions, out, watch=Bars(screen.live), **about)
    except KeyboardInterrupt:
        message = f"Stopped: what is done is in {out}, and the same command goes on from there."
        raise CommandError(message, INTERRUPTED) from None
    show_result(result, out, screen)
    if result.failed and not result.stopped:
        raise CommandError(
            f"Error: {count(result.failed, 'question')} ended in an error, recorded in {out}; the same command asks "
            "them again.",
            UNEXPECTED,
        )


def method_names(given: str) -> list[str]:
    """Return the names of methods in a list with commas; "all" is every one."""
    from maps_rag.programs import METHODS

    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    names = list(METHODS) if names == ["all"] else names
    if not names:
        raise CommandError(f"Error: --method names none; there are: {', '.join(METHODS)}.")
    if unknown := [name for name in names if name not in METHODS]:
        raise CommandError(f"Error: there is no method {unknown[0]!r}; there are: {', '.join(METHODS)}.")
    return names


def create_all(names: Sequence[str], retriever: Any, preset: str, given: dict[str, Any]) -> dict[str, SearchProgram]:
    """Construct methods on one retriever; each takes of the knobs given those that it has."""
    from maps_rag.programs import METHODS, create

    wanted = {knob: value for knob, value in given.items() if value is not None}
    for knob in wanted:
        if not any(knob in METHODS[name].knobs() for name in names):
            option = "--" + knob.replace("_", "-")
            raise CommandError(f"Error: {option} fits none of the methods {', '.join(names)}; leave it out.")
    return {
        name: create(
            name, retriever, preset, **{knob: value for knob, value in wanted.items() if knob in METHODS[name].knobs()}
        )
        for name in names
    }


def load_all(datasets: str, n: int | None, seed: int) -> list[dspy.Example]:
    """Load the questions of several data sets."""
    from maps_rag.optimize.data import load_questions

    names = list(dict.fromkeys(name.strip() for name in datasets.split(",") if name.strip()))
    if not names:
        raise CommandError("Error: --dataset names none; give a data set or a file of questions.")
    return [question for name in names for question in load_questions(name, n=n, seed=seed)]


def show_result(result: Evaluation, out: Path, screen: Screen) -> None:
    """Show the scores and what they took."""
    for name, score in result.scores.items():
        screen.field("Cover-EM", [f"{name}: {'nothing answered' if score is None else f'{100 * score:.1f}'}"])
    cost = f", cost {result.cost:,.2f}" if result.cost else ""
    screen.field("took", [f"{count(result.tokens, 'billed token')}{cost}"])
    screen.field("answered", [f"{result.finished:,} of {result.total:,}"])
    if result.stopped:
        option = "--" + result.stopped.replace("_", "-")
        screen.field("stopped", [f"the budget of {option} is used up; a larger one goes on"], style="yellow")
    screen.field("results", [f"{out}: maps-rag report {out}"])


def _retriever(index: Path | None, names: Sequence[str]) -> Any:
    from maps_rag.programs import METHODS
    from maps_rag.programs.retrieval import E5Retriever

    if index is not None:
        return E5Retriever(index)
    if searching := [name for name in names if METHODS[name].retrievals != "0"]:
        raise CommandError(f"Error: {searching[0]} searches; name an index with --index.")
    return None


def _prices(price_in: float | None, price_out: float | None) -> Prices | None:
    from maps_rag.metrics.cost import Prices

    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        raise CommandError("Error: --price-in and --price-out belong together; give both.")
    return Prices(price_in, price_out)

"""The commands of ``maps-rag`` and how they end. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from maps_rag.cli.ask import ask
from maps_rag.cli.demo import demo
from maps_rag.cli.drift import measure_runs
from maps_rag.cli.entry import INTERRUPTED
from maps_rag.cli.errors import explain, report
from maps_rag.cli.eval import evaluate_methods
from maps_rag.cli.index_build import build
from maps_rag.cli.index_info import info
from maps_rag.cli.methods import methods
from maps_rag.cli.quiet import before_imports
from maps_rag.cli.report import report_runs
from typer.core import TyperGroup


class Commands(TyperGroup):
    """The root of the commands: every error ends in one line on standard error and an exit code."""

    debug = False

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command; in standalone mode, exit with its code."""
        given = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:
            return super().main(*given, **extra)
        try:
            code = super().main(*given, **extra) or 0
        except Exception as error:
            code = report(error, self.debug)
        else:
            if code == INTERRUPTED:  # Typer turns Ctrl-C into this exit code
                sys.stderr.write(explain(KeyboardInterrupt())[0] + "\n")
        sys.exit(code)


app = typer.Typer(
    cls=Commands,
    help="Answer multi-hop questions over a corpus: plan directions, search in parallel, distil, repeat.",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    add_completion=False,
)
index = typer.Typer(help="Build an index from a corpus, or look at one.")
index.command("build")(build)
index.command("info")(info)
app.command("demo")(demo)
app.add_typer(index, name="index")
app.command("ask")(ask)
app.command("eval")(evaluate_methods)
app.command("report")(report_runs)
app.command("drift")(measure_runs)
app.command("methods")(methods)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"maps-rag {version('maps-rag')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def set_up(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and log lines.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    context.command.debug = debug  # type: ignore[attr-defined]
    before_imports(debug)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())

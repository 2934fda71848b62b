"""From an exception to one line on standard error and an exit code."""

from __future__ import annotations

import sys
import traceback

from maps_rag.cli.console import one_line
from maps_rag.cli.entry import INTERRUPTED

BAD_INPUT = 2
UNEXPECTED = 1


class CommandError(Exception):
    """Ends a command with a message of its own and an exit code."""

    def __init__(self, message: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.code = code


def report(error: BaseException, debug: bool = False) -> int:
    """Write what went wrong to standard error, with its traceback only where ``debug``, and return the exit code."""
    if debug:
        traceback.print_exception(error)
    message, code = explain(error)
    sys.stderr.write(one_line(message) + "\n")
    return code


def explain(error: BaseException) -> tuple[str, int]:
    """Return the message for an error and the exit code it ends in."""
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, KeyboardInterrupt):
        return "Stopped.", INTERRUPTED
    if (usage := _usage_error(error)) is not None:
        return usage, BAD_INPUT
    if isinstance(error, _loaded("maps_rag.programs.errors", "UserError")):
        return f"Error: {error}", BAD_INPUT
    if isinstance(error, _loaded("dspy.utils.exceptions", "DSPyError")):
        from maps_rag.programs.models import describe_error

        return f"Error: {describe_error(error)}", BAD_INPUT
    if isinstance(error, OSError) and error.strerror:
        about = f"{error.filename}: " if error.filename else ""
        return f"Error: {about}{error.strerror}", BAD_INPUT
    if isinstance(error, MemoryError):
        return "Error: there is not enough memory for this.", BAD_INPUT
    return f"Unexpected error: {type(error).__name__}: {error} (maps-rag --debug shows where)", UNEXPECTED


def _loaded(module: str, name: str) -> type[BaseException] | tuple[()]:
    # Whoever raised the error has imported its class; importing it here would load everything for a typing mistake.
    found = getattr(sys.modules.get(module), name, None)
    return found if isinstance(found, type) else ()


def _usage_error(error: BaseException) -> str | None:
    """Return the line for a mistake in the arguments, which Typer finds; None for any other error."""
    # Typer carries its own copy of Click in some releases, so the class cannot be named.
    if not hasattr(error, "format_message") or not hasattr(error, "exit_code"):
        return None
    context = getattr(error, "ctx", None)
    hint = f" See: {context.command_path} --help" if context is not None else ""
    return f"Error: {error.format_message().rstrip('.')}.{hint}"

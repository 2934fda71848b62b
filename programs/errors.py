"""The one error family that a user can cause and mend."""

from __future__ import annotations


class UserError(ValueError):
    """A mistake in what was given: the message says what was given, what is allowed and what to do.

    The command line prints the message on one line and exits with 2; no traceback is shown.
    """

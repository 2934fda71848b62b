"""When a failed request is worth trying again, and what to tell a person about one that is not."""

from __future__ import annotations

from dspy.utils.exceptions import is_retryable_lm_error


def retry_delay(error: BaseException, attempt: int) -> float | None:
    """Return how many seconds to wait before trying again, or None where trying again cannot help."""
    if not is_retryable_lm_error(error):
        return None
    hint = getattr(error, "retry_after", None)
    return float(hint) if hint else float(min(2**attempt, 60))

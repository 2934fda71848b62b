"""When a failed request is worth repeating, and what to tell a person about one that failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dspy.utils.exceptions import (
    AdapterParseError,
    ContextWindowExceededError,
    DSPyError,
    LMAuthError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMNotConfiguredError,
    LMProviderError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
    is_retryable_lm_error,
)
from maps_rag.programs.errors import UserError

LONGEST_BACKOFF = 60.0
LONGEST_WAIT = 600.0
DETAIL = 200
SENTENCE_END = re.compile(r"[.;] ")


def retry_delay(error: BaseException, attempt: int) -> float | None:
    """Return how many seconds to wait before a request is repeated, or None where repeating it cannot help.

    Rate limits, time-outs, failures of the server and broken connections are worth repeating, and so are replies of
    status 200 that are no JSON, which come from gateways. The server's ``Retry-After`` is honoured; without one the
    wait is 1, 2, 4 ... at most 60 seconds. A server that asks for more than 10 minutes is not waited for (ours).

    :param error: What the request raised.
    :param attempt: How many times the request was repeated before, from 0.
    """
    if not (is_retryable_lm_error(error) or _is_broken_reply(error)):
        return None
    hint = getattr(error, "retry_after", None)
    if hint:
        return float(hint) if hint <= LONGEST_WAIT else None
    return min(2.0 ** min(attempt, 6), LONGEST_BACKOFF)


def describe_error(error: BaseException) -> str:
    """Return one line for a person: what failed at which server, and what to check."""
    for link in _causes(error):
        if isinstance(link, UserError):
            return str(link)
    if isinstance(error, AdapterParseError):
        return f"The model's reply is not what was asked for ({_detail(error)}): try again or use another model."
    if not isinstance(error, LMError):
        return _first_line(str(error)) or type(error).__name__
    where = _where(error)
    # The native client reports a read time-out as a broken connection.
    kind_of = LMTimeoutError if "read timed out" in str(error) else type(error)
    for kind, text in _EXPLANATIONS:
        if issubclass(kind_of, kind):
            return text.format(
                where=where,
                status=error.status,
                detail=_detail(error),
                model=_model(error),
                wait=_wait(error),
                keys=_keys(error),
            )
    return f"{where} failed ({_detail(error)})."


# The most specific first, as DSPy derives them from each other.
_EXPLANATIONS: tuple[tuple[type[LMError], str], ...] = (
    (
        ContextWindowExceededError,
        "The prompt is longer than the context of {model}: ask for fewer or shorter passages.",
    ),
    (LMAuthError, "{where} refused the key (HTTP {status}): check the API key and what it may be used for."),
    (LMBillingError, "{where} refused to bill the request ({detail}): check the account's balance and limits."),
    (LMRateLimitError, "{where} takes no more requests for now (HTTP 429{wait}): try later or with fewer at a time."),
    (
        LMUnsupportedModelError,
        "{where} knows no model {model} ({detail}): check its name against the server's /models.",
    ),
    (
        LMInvalidRequestError,
        "{where} refused the request (HTTP {status}: {detail}): check the model's name and that the address is right "
        "(it usually ends in /v1).",
    ),
    (LMTimeoutError, "{where} did not answer in time: raise the timeout or send fewer requests at a time."),
    (LMServerError, "{where} failed (HTTP {status}: {detail}): try again later; the server's log says why."),
    (LMTransportError, "{where} cannot be reached or broke off ({detail}): check that it runs and its address."),
    (LMNotConfiguredError, "No API key for {model}: set {keys} or give the key itself."),
    (LMProviderError, "{where} sent no valid reply (HTTP {status}: {detail}): check what answers at this address."),
)


def _is_broken_reply(error: BaseException) -> bool:
    # DSPy has no class of its own for a reply that came with a good status and was no JSON.
    return isinstance(error, LMProviderError) and type(error) is LMProviderError and (error.status or 500) < 400


def _causes(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__


def _where(error: LMError) -> str:
    urls = [url for link in _causes(error) if (url := getattr(link, "server_url", None))]
    return f"The model server at {urls[0]}" if urls else f"The provider of {_model(error)}"


def _model(error: DSPyError) -> str:
    return error.model or "the model"


def _wait(error: DSPyError) -> str:
    return f", wait {error.retry_after:g} s" if error.retry_after else ""


def _keys(error: DSPyError) -> str:
    return " or ".join(getattr(error, "env_keys", ())) or "the provider's key variable"


def _detail(error: DSPyError) -> str:
    """Return the first line of a message, where servers put the reason; DSPy and lm15 add advice below it."""
    line = _first_line(error.message or str(error)).removesuffix(f"({error.status})").strip()
    return SENTENCE_END.split(line)[0].rstrip(".")[:DETAIL] or type(error).__name__


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")

"""One LM request through a predictor: made once, measured, with nothing taken from the user's own LM or adapter."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.clients.legacy_outputs import value
from dspy.utils.exceptions import AdapterParseError, LMConfigurationError, LMError
from maps_rag.programs.errors import UserError
from maps_rag.programs.models import ReplyCutOffError, adapter_for, strip_think
from maps_rag.programs.models.replies import is_cut

_DEFAULT_ADAPTER = dspy.ChatAdapter()


def language_model_of(predictor: dspy.Module) -> dspy.LM:
    """Return the LM that a predictor would use: its own, else the configured one.

    :raises UserError: Where there is none.
    """
    lm = inner_predict(predictor).lm or dspy.settings.lm
    if lm is None:
        raise UserError(
            "No language model is set: call dspy.configure(lm=...) with a dspy.LM or with "
            "maps_rag.programs.language_model('local') before running a program."
        )
    return lm


def inner_predict(predictor: dspy.Module) -> dspy.Predict:
    """Return the ``dspy.Predict`` that holds signature, demos and LM of a Predict or ChainOfThought."""
    return predictor if isinstance(predictor, dspy.Predict) else predictor.predict


@dataclass(slots=True)
class Request:
    """What one request to the model cost; zero tokens where none were reported.

    DSPy's cache keeps the token counts of its native engines, not those of LiteLLM.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    cache_hit: bool = False
    cut_off: bool = False
    end_known: bool = True
    empty: bool = False


@dataclass(slots=True)
class LMCall:
    """An effect: run a predictor once. After it ran, ``requests`` and ``seconds`` say what it took.

    DSPy's own retries are off for the call, so that every request is seen here; the driver retries.
    """

    predictor: dspy.Module
    arguments: dict[str, Any]
    requests: list[Request] = field(default_factory=list)
    seconds: float = 0.0

    def run(self) -> dspy.Prediction:
        with self._measured() as lm:
            return self.predictor(lm=lm, **self.arguments)

    async def arun(self) -> dspy.Prediction:
        with self._measured() as lm:
            return await self.predictor.acall(lm=lm, **self.arguments)

    @contextmanager
    def _measured(self) -> Iterator[dspy.LM]:
        lm = language_model_of(self.predictor)
        quiet = dspy.settings.disable_history
        adapter = dspy.settings.adapter or adapter_for(lm) or _DEFAULT_ADAPTER
        settings: dict[str, Any] = {"adapter": _reading(adapter, self.requests)}
        if quiet:  # the measuring hook below is the only one who sees the entry
            settings["disable_history"] = False
        start = time.perf_counter()
        try:
            with dspy.context(**settings):
                yield _watched(lm, self.requests.append, quiet)
        except LMError as error:
            if not isinstance(error, LMConfigurationError):
                self.requests.append(Request())
            raise
        except (AdapterParseError, _CutOff) as error:
            if not self.requests or not self.requests[-1].cut_off:
                raise
            raise ReplyCutOffError(
                adapter_name=type(adapter).__name__,
                signature=inner_predict(self.predictor).signature,
                lm_response=str(getattr(error, "lm_response", error)),
                message="The reply was cut off: raise the model's max_tokens.",
            ) from None
        finally:
            self.seconds = time.perf_counter() - start


def _watched(lm: dspy.LM, report: Callable[[Request], None], quiet: bool) -> dspy.LM:
    """Return a copy of an LM that makes one attempt per call and reports what each reply cost.

    A shallow copy, unlike ``lm.copy()``: it shares the history of its original, which ``lm.inspect_history()`` shows.
    """
    watched = copy.copy(lm)
    watched.num_retries = 0
    record = watched.update_history

    def update_history(entry: dict[str, Any]) -> None:
        report(_request_of(entry))
        if not quiet:
            record(entry)

    watched.update_history = update_history
    return watched


def _request_of(entry: dict[str, Any]) -> Request:
    response, billed = entry["response"], entry["usage"] or {}
    usage = value(response, "usage")
    if hasattr(usage, "input_tokens"):
        tokens = (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)
        finish = response.finish_reason
    else:  # a reply in the shape of the OpenAI client, by way of LiteLLM or a custom LM
        usage = usage or {}
        details = value(usage, "prompt_tokens_details") or {}
        tokens = (value(usage, "prompt_tokens"), value(usage, "completion_tokens"), value(details, "cached_tokens"))
        choices = value(response, "choices") or []
        finish = value(choices[0], "finish_reason") if choices else None
    prompt, completion, cached = (int(count or 0) for count in tokens)
    return Request(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_prompt_tokens=cached,
        cache_hit=bool(getattr(response, "cache_hit", False)) or (not billed and prompt + completion > 0),
        cut_off=finish == "length",
        end_known=bool(finish),
        empty=not any(output.get("text") if isinstance(output, dict) else output for output in entry["outputs"] or []),
    )


class _CutOff(Exception):  # noqa: N818 - leaves this module as a ReplyCutOffError
    """Raised while a reply is read; not a parse error, for which DSPy would ask again and which it would record."""


def _whole(value: Any, deepest: int = 50) -> Any:
    """Return what a model wrote without half characters (lone surrogates), which no file, encoder or server takes.

    :raises RecursionError: Where lists or objects are nested deeper than ``deepest``.
    """
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    if not isinstance(value, list | dict):
        return value
    if not deepest:
        raise RecursionError
    if isinstance(value, list):
        return [_whole(item, deepest - 1) for item in value]
    return {_whole(key): _whole(item, deepest - 1) for key, item in value.items()}


def _reading(adapter: dspy.Adapter, requests: list[Request]) -> dspy.Adapter:
    """Return a copy of an adapter that reads replies as every method needs it.

    It refuses a reply that was cut off (by its brackets, where the server does not say how it ended) or is nested too
    deeply, drops ``<think>`` text before it parses, and half characters after.
    """

    def parse(signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        text = strip_think(completion)
        if requests and not requests[-1].end_known and text.startswith("{") and is_cut(text, None):
            requests[-1].cut_off = True
        if requests and requests[-1].cut_off:
            raise _CutOff(completion)
        try:
            return {name: _whole(value) for name, value in adapter.parse(signature, text).items()}
        except RecursionError:
            raise AdapterParseError(
                adapter_name=type(adapter).__name__,
                signature=signature,
                lm_response=completion,
                message="The reply is nested too deeply.",
            ) from None

    reading = copy.copy(adapter)
    reading.parse = parse
    if hasattr(adapter, "_make_json_adapter_fallback"):
        reading._make_json_adapter_fallback = lambda: _reading(adapter._make_json_adapter_fallback(), requests)
    return reading

"""One factory for every language model the programs run on."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dspy
from dspy import lm15
from dspy.clients.engines.lm15_engine import LM15Engine
from maps_rag.programs.errors import UserError
from maps_rag.programs.models.engine import AsyncServerEngine, ServerEngine
from maps_rag.programs.models.llama import (
    SLOTS,
    AsyncLlamaEngine,
    LlamaEngine,
    LlamaSettings,
    check_gguf,
    default_threads,
    running_server,
)
from maps_rag.programs.models.registry import WEIGHTS
from maps_rag.programs.models.weights import fetch_weights

LOCAL_MAX_TOKENS = 1024
REMOTE_MAX_TOKENS = 4096
LOCAL_TIMEOUT = 1800.0
LONGEST_TIMEOUT = 86_400.0
REMOTE_TIMEOUT = 300.0
# OpenAI's reasoning models take no temperature and count their thinking as output; DSPy checks the same families.
FIXED_SAMPLING = re.compile(r"^openai/(o[1345]|gpt-5)(?!.*-chat)")


def language_model(
    name: str = "local",
    api_base: str | None = None,
    *,
    api_key: str | None = None,
    temperature: float | None = 0.0,
    max_tokens: int | None = None,
    slots: int = SLOTS,
    threads: int | None = None,
    timeout: float | None = None,
    thinking: bool | None = None,
    cache: bool = True,
    progress: bool = True,
    **kwargs: Any,
) -> dspy.LM:
    """Return a language model: a local one that runs in this process, one behind a server, or a hosted one.

    - ``"local"`` and ``"local-small"``: Qwen2.5-Coder-Instruct of 1.5B and 0.5B parameters on llama.cpp. The weights
      are fetched into the cache once.
    - a path that ends in ``.gguf``: weights of your own on llama.cpp.
    - any name with ``api_base``: a model behind an OpenAI-compatible server such as vLLM; a leading ``openai/`` is
      dropped on the wire. JSON schemas are sent to the server, which DSPy by itself does not do.
    - any other name as DSPy spells it (``openai/gpt-4o-mini``, ``anthropic/...``).

    :param name: Which model.
    :param api_base: Address of an OpenAI-compatible server, usually ending in ``/v1``.
    :param api_key: Key of the server or provider.
    :param temperature: Sampling temperature; 0 is greedy.
    :param max_tokens: Longest reply; by default 1,024 for local models, 4,096 behind a server (ours).
    :param slots: Local models: requests decoded side by side, each with the context and prefix of its own.
    :param threads: Local models: threads of llama.cpp; by default ``$MAPS_RAG_THREADS`` or every core.
    :param timeout: Seconds without a byte from the server after which a request fails.
    :param thinking: Behind a server: False switches the thinking of models such as Qwen3 off
        (``chat_template_kwargs``); None sends nothing.
    :param cache: Use DSPy's cache of replies.
    :param progress: Show a progress bar while weights are fetched.
    :param kwargs: Further arguments of ``dspy.LM``.
    :raises UserError: When the name is unknown, a file or llama.cpp is missing, or an argument makes no sense.
    """
    if not isinstance(name, str):
        raise UserError(f"A model is given by its name, got {name!r}.")
    if max_tokens is not None:
        _positive("max_tokens", max_tokens)
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout <= LONGEST_TIMEOUT):
        raise UserError(f"timeout must be a number of seconds above 0 and up to {LONGEST_TIMEOUT:,}, got {timeout!r}.")
    sampling = {"temperature": temperature, "cache": cache, **kwargs}
    if api_base is not None:
        return _server_model(name, api_base, api_key, max_tokens, timeout, thinking, sampling)
    if thinking is not None:
        raise UserError(f"thinking={thinking} needs a server that takes the switch: give api_base as well.")
    if name in WEIGHTS or name.endswith(".gguf"):
        path = fetch_weights(name, progress=progress) if name in WEIGHTS else Path(name).expanduser().resolve()
        check_gguf(path)
        settings = LlamaSettings(
            str(path),
            slots=_positive("slots", slots),
            threads=default_threads() if threads is None else _positive("threads", threads),
        )
        running_server(settings)
        engine = LlamaEngine(settings, timeout=timeout or LOCAL_TIMEOUT)
        model = f"local/{_identity(name, path)}"
        return _marked(
            dspy.LM(
                model,
                engine=engine,
                async_engine=AsyncLlamaEngine(engine),
                max_tokens=max_tokens or LOCAL_MAX_TOKENS,
                **sampling,
            )
        )
    if not _is_hosted(name):
        raise UserError(
            f"Unknown model {name!r}: give 'local', 'local-small', a path ending in .gguf, a provider's model such as "
            "'openai/gpt-4o-mini', or any name together with api_base."
        )
    if FIXED_SAMPLING.match(name):
        sampling["temperature"] = None if temperature == 0.0 else temperature
    else:
        max_tokens = max_tokens or REMOTE_MAX_TOKENS
    if api_key is not None:
        sampling["api_key"] = api_key
    return _marked(dspy.LM(name, max_tokens=max_tokens, timeout=timeout or REMOTE_TIMEOUT, **sampling))


def _server_model(
    name: str,
    api_base: str,
    api_key: str | None,
    max_tokens: int | None,
    timeout: float | None,
    thinking: bool | None,
    sampling: dict[str, Any],
) -> dspy.LM:
    check_address(api_base)
    if not name.removeprefix("openai/"):
        raise UserError(f"Model {name!r} names no model: give the name the server knows, as in openai/Qwen/Qwen3-32B.")
    if thinking:
        raise UserError("thinking=True is what such servers do by themselves: leave it out, or give False.")
    if thinking is False:
        sampling["reasoning_effort"] = "none"
    engine = ServerEngine(
        api_base.rstrip("/"),
        api_key=api_key,
        timeout=timeout or REMOTE_TIMEOUT,
        wire_model=name.removeprefix("openai/"),
    )
    return _marked(
        dspy.LM(
            name,
            engine=engine,
            async_engine=AsyncServerEngine(engine),
            max_tokens=max_tokens or REMOTE_MAX_TOKENS,
            **sampling,
        )
    )


def check_address(api_base: str) -> None:
    """Refuse what is no address of a server, or carries a password, which errors and records would show."""
    try:
        parts = urlsplit(api_base)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        is_address = False
    if not is_address:
        raise UserError(f"api_base {api_base!r} is no address: give one such as http://localhost:8000/v1.")
    if parts.username or parts.password:
        raise UserError("api_base carries a name or password: leave it out and give the key as api_key.")


def _is_hosted(name: str) -> bool:
    """Return whether DSPy knows the provider a model name begins with."""
    provider, slash, model = name.partition("/")
    if not slash or not model:
        return False
    declared = tuple(entry.definition for entry in lm15.registered_providers())
    try:
        LM15Engine(lm15.RouterConfig(env={}, providers=declared)).resolve(name)
    except lm15.LM15Error:
        pass
    else:
        return True
    import litellm  # slow to import, so only for providers that DSPy itself would import it for

    return provider in litellm.provider_list


def _marked(lm: dspy.LM) -> dspy.LM:
    lm.from_maps_rag = True
    return lm


def made_here(lm: object) -> bool:
    """Return whether a language model came from this factory (copies and reloaded ones count)."""
    return getattr(lm, "from_maps_rag", False) or isinstance(getattr(lm, "engine", None), ServerEngine)


def is_local(lm: object) -> bool:
    """Return whether a language model runs on llama.cpp in this process."""
    return isinstance(getattr(lm, "engine", None), LlamaEngine)


def _identity(name: str, path: Path) -> str:
    """Name the weights for the cache of replies: two files of one name must not share replies."""
    if name in WEIGHTS:
        return path.stem
    stat = path.stat()
    with path.open("rb") as stream:
        digest = hashlib.sha256(stream.read(1 << 20) + str(stat.st_size).encode()).hexdigest()
    return f"{path.stem}-{digest[:8]}"


def _positive(what: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{what} must be a whole number of at least 1, got {value!r}.")
    return value

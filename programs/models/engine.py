"""DSPy engines that speak to one OpenAI-compatible server and say truthfully that it honours JSON schemas.

DSPy decides from a catalogue of hosted models whether a schema may be sent, so for a server of one's own it sends
none and says nothing. An engine object states its own abilities, keeps the model name the user wrote, and carries the
address outside of the request (so that neither address nor key is ever cached or logged).
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from dspy import lm15
from dspy._vendor.lm15.transports import StdlibAsyncTransport, StdlibTransport
from dspy.clients.engines.lm15_engine import AsyncLM15Engine, LM15Engine

PROVIDER = "maps-rag-server"
MAX_CONNECTIONS = 512
LOOPBACK = re.compile(r"localhost$|127\.|::1$")
TOO_LONG = re.compile(r"maximum context length|context (size|window|length) .{0,40}exceed|exceed.{0,60}context", re.I)
SUPPORTED_PARAMS = (
    "temperature",
    "max_tokens",
    "top_p",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "response_format",
    "reasoning_effort",
    "stream",
)


def router_config(url: str, api_key: str | None, transport: Any) -> lm15.RouterConfig:
    """Return the routing for one server: its address, its key and the connections to it."""
    access = lm15.AccessPolicy(
        provider=PROVIDER,
        auth_modes=("bearer",),
        base_url=url,
        supports=lm15.EndpointSupport(complete=True, stream=True, models=True),
    )
    compat = lm15.OpenAIChatCompat(
        instruction_role="system",
        max_tokens_field="max_tokens",
        stream_usage="include",
        thinking_format="qwen_chat_template",
        strict_tools="omit",
        cache_control="none",
    )
    return lm15.RouterConfig(
        env={},
        providers=(lm15.ProviderDefinition.chat(access, compat=compat),),
        api_keys={PROVIDER: api_key or "none"},
        base_urls={PROVIDER: url},
        transport=transport,
    )


def transport_options(url: str, timeout: float) -> dict[str, Any]:
    """Return how to connect to a server: a proxy of the environment is for other machines than this one."""
    return {
        "read_timeout": timeout,
        "write_timeout": timeout,
        "pool_timeout": None,
        "max_connections": MAX_CONNECTIONS,
        "trust_env": not LOOPBACK.match(urlsplit(url).hostname or ""),
    }


class ServerEngine:
    """A synchronous engine for one OpenAI-compatible server.

    Shared by every copy of the LM that holds it: a deep copy is the same object, and a pickle holds the settings only.

    :param url: Base address, up to and including ``/v1``.
    :param api_key: Sent as a bearer token; never dumped.
    :param timeout: Seconds without a byte after which a request fails.
    :param wire_model: The model name the server knows; by default what follows the first ``/`` of the LM's name.
    """

    supports_function_calling = False
    supports_reasoning = True
    supports_response_schema = True
    supported_params = SUPPORTED_PARAMS

    def __init__(
        self, url: str, *, api_key: str | None = None, timeout: float = 300.0, wire_model: str | None = None
    ) -> None:
        self._url = url
        self._api_key = api_key
        self.timeout = timeout
        self.wire_model = wire_model
        self._lock = threading.Lock()
        self._inner: LM15Engine | None = None
        self._inner_key: tuple[int, str] | None = None

    @property
    def url(self) -> str:
        """Where requests go."""
        return self._url

    def config(self, transport: Callable[..., Any]) -> lm15.RouterConfig:
        """Return the routing, over new connections of the given kind."""
        url = self.url
        return router_config(url, self._api_key, transport(**transport_options(url, self.timeout)))

    def route(self, request: lm15.Request) -> lm15.Request:
        """Return the request under the name the server knows."""
        wire = self.wire_model or request.model.partition("/")[2] or request.model
        return replace(request, model=f"{PROVIDER}:{wire}")

    def _engine(self) -> LM15Engine:
        # A connection shared with a forked process would mix up replies, and a restarted server has a new address.
        key = (os.getpid(), self.url)
        with self._lock:
            if self._inner is None or self._inner_key != key:
                self._inner, self._inner_key = LM15Engine(self.config(StdlibTransport)), key
            return self._inner

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request and return its reply; one attempt, errors as ``dspy.lm15`` raises them."""
        with self.named_errors():
            return self._engine().complete(self.route(request))

    def stream(self, request: lm15.Request) -> Iterator[lm15.StreamEvent]:
        """Send one request and yield its reply as it comes."""
        with self.named_errors():
            yield from self._engine().stream(self.route(request))

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Add the server's address to errors, and recognise a prompt that is too long.

        vLLM and llama.cpp report the latter as an ordinary bad request, by its wording alone.
        """
        try:
            yield
        except lm15.InvalidRequestError as exc:
            too_long = TOO_LONG.search(exc.message) and not isinstance(exc, lm15.ContextLengthError)
            error = lm15.ContextLengthError(exc.message, status=exc.status, provider=exc.provider) if too_long else exc
            error.server_url = self.url
            raise error from (exc if too_long else exc.__cause__)
        except lm15.LM15Error as exc:
            exc.server_url = self.url
            raise

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        with self._lock:
            inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()
            inner.config.transport.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> ServerEngine:
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_inner", "_inner_key")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._inner = None
        self._inner_key = None

    def dump_state(self) -> dict[str, Any]:
        """Return what a saved program needs to reach the server again: everything but the key."""
        return {"url": self._url, "timeout": self.timeout, "wire_model": self.wire_model}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> ServerEngine:
        """Return the engine that ``dump_state`` described; the key comes from ``OPENAI_API_KEY``, if set."""
        return cls(**state)


class AsyncServerEngine:
    """The asynchronous side of a :class:`ServerEngine`: one connection pool per event loop."""

    engine_class: type[ServerEngine] = ServerEngine
    supports_function_calling = False
    supports_reasoning = True
    supports_response_schema = True
    supported_params = SUPPORTED_PARAMS

    def __init__(self, engine: ServerEngine) -> None:
        self.engine = engine
        self._lock = threading.Lock()
        self._pools: dict[tuple[asyncio.AbstractEventLoop, str], AsyncLM15Engine] = {}

    def _pool(self) -> AsyncLM15Engine:
        loop, url = asyncio.get_running_loop(), self.engine.url
        with self._lock:
            # A pool whose loop has closed can never be used again: letting go of it closes its sockets.
            for dead in [known for known in self._pools if known[0].is_closed()]:
                del self._pools[dead]
            if (loop, url) not in self._pools:
                self._pools[loop, url] = AsyncLM15Engine(self.engine.config(StdlibAsyncTransport))
            return self._pools[loop, url]

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request and return its reply; one attempt."""
        with self.engine.named_errors():
            return await self._pool().complete(self.engine.route(request))

    async def stream(self, request: lm15.Request) -> AsyncIterator[lm15.StreamEvent]:
        """Send one request and yield its reply as it comes."""
        with self.engine.named_errors():
            async for event in self._pool().stream(self.engine.route(request)):
                yield event

    def __deepcopy__(self, memo: dict[int, Any]) -> AsyncServerEngine:
        return self

    def __reduce__(self) -> tuple[type[AsyncServerEngine], tuple[ServerEngine]]:
        return type(self), (self.engine,)

    def dump_state(self) -> dict[str, Any]:
        """Return the state of the engine it belongs to."""
        return self.engine.dump_state()

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> AsyncServerEngine:
        """Return the asynchronous side of the engine that ``dump_state`` described."""
        return cls(cls.engine_class.load_state(state))

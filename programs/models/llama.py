"""llama.cpp inside this process: one server per weights file and settings, shared by all who ask for it."""

from __future__ import annotations

import atexit
import logging
import os
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from maps_rag.programs.errors import UserError
from maps_rag.programs.models.engine import AsyncServerEngine, ServerEngine

logger = logging.getLogger(__name__)

GGUF_MAGIC = b"GGUF"
CONTEXT = 16_384
SLOT_CONTEXT = 8_192
SLOTS = 4
PREFIX_CACHE_MIB = 1_024


def default_threads() -> int:
    """Return ``$MAPS_RAG_THREADS``, else the number of cores this process may run on.

    :raises UserError: When the variable is no positive whole number.
    """
    given = os.environ.get("MAPS_RAG_THREADS")
    if given is not None:
        if not given.isdecimal() or int(given) < 1:
            raise UserError(f"MAPS_RAG_THREADS is {given!r}: give a whole number of at least 1, or unset it.")
        return int(given)
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@dataclass(frozen=True)
class LlamaSettings:
    """What one server is started with; two LMs with equal settings share a server.

    :param path: The weights, a GGUF file.
    :param slots: Requests decoded side by side; further ones wait. A request goes to the slot whose last prompt
        begins most alike, so with a slot per role each role's instructions and demos are read once.
    :param threads: Threads of llama.cpp.
    """

    path: str
    slots: int = SLOTS
    threads: int = 1

    @property
    def context(self) -> int:
        """Tokens of prompt and reply over all slots, shared equally: at least 16,384, and 8,192 a slot (ours)."""
        return max(CONTEXT, SLOT_CONTEXT * self.slots)


def check_gguf(path: Path) -> None:
    """Check that a weights file is there and is a GGUF file.

    :raises UserError: When it is not.
    """
    if not path.is_file():
        raise UserError(f"Weights file {path} does not exist: give the path of a .gguf file, 'local' or 'local-small'.")
    with path.open("rb") as stream:
        if stream.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise UserError(f"{path} is no GGUF file (it does not start with 'GGUF'): give weights in GGUF format.")


def _start(settings: LlamaSettings) -> Any:
    # With as many threads as cores, OpenMP's busy waiting stalls for minutes as soon as anything else wants a core.
    # Read once, when the OpenMP library is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as exc:
        raise UserError(
            "Local models need llama.cpp, which is not installed: run pip install 'maps-rag[local]', "
            "or give another model with --lm and --api-base."
        ) from exc
    check_gguf(Path(settings.path))
    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.n_parallel = settings.slots
    params.n_ctx = settings.context
    # Prompts that lost their slot to another are kept here and come back without being read again.
    params.cache_ram_mib = PREFIX_CACHE_MIB
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    params.verbosity = 0
    params.ui = False
    try:
        server = xllamacpp.Server(params)
    except Exception as exc:
        raise UserError(
            f"llama.cpp could not load {settings.path} ({exc}): check the file, the free memory and 'slots'."
        ) from exc
    logger.info("llama.cpp serves %s on %s", settings.path, server.listening_address)
    return server


_servers: dict[LlamaSettings, Any] = {}
_servers_lock = threading.Lock()
atexit.register(_servers.clear)


def running_server(settings: LlamaSettings) -> Any:
    """Return this process's server for these settings, started on first use and kept until the process ends.

    :raises UserError: When llama.cpp is missing or cannot load the weights.
    """
    with _servers_lock:
        if settings not in _servers:
            _servers[settings] = _start(settings)
        return _servers[settings]


def stop_servers() -> None:
    """Stop every llama.cpp server of this process and free its memory; LMs in use start theirs again."""
    with _servers_lock:
        _servers.clear()


class LlamaEngine(ServerEngine):
    """An engine over a llama.cpp server of this process; the server starts on first use, also after a pickle.

    :param settings: What to start it with.
    :param timeout: Seconds without a byte after which a request fails, queueing behind others included.
    """

    def __init__(self, settings: LlamaSettings, *, timeout: float = 1800.0) -> None:
        super().__init__("", timeout=timeout)
        self.settings = settings

    @property
    def url(self) -> str:
        """Where the server listens; starts it where it is not running."""
        return f"{running_server(self.settings).listening_address}/v1"

    def dump_state(self) -> dict[str, Any]:
        """Return the settings."""
        return {"settings": asdict(self.settings), "timeout": self.timeout}

    @classmethod
    def load_state(cls, state: dict[str, Any]) -> LlamaEngine:
        """Return the engine that ``dump_state`` described."""
        return cls(LlamaSettings(**state["settings"]), timeout=state["timeout"])


class AsyncLlamaEngine(AsyncServerEngine):
    """The asynchronous side of a :class:`LlamaEngine`."""

    engine_class = LlamaEngine

"""A scripted OpenAI-compatible server on the loopback device, for tests of what happens on the wire."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

MODEL = "scripted"


@dataclass(frozen=True)
class Reply:
    """What the server answers to one request.

    :param content: The assistant's text; a dict or list is sent as JSON text. Ignored where ``body`` is given.
    :param status: The HTTP status.
    :param headers: Further headers, such as ``{"Retry-After": "7"}``.
    :param finish_reason: ``"length"`` for a reply cut off at ``max_tokens``.
    :param body: The whole body as sent, for malformed replies.
    :param hang: Send nothing until the server stops, so that the client's time-out strikes.
    :param drop: Close the connection without an answer.
    :param reasoning: Text of ``reasoning_content``, as servers with a reasoning parser send it.
    """

    content: Any = "ok"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    body: str | None = None
    hang: bool = False
    drop: bool = False
    reasoning: str | None = None


Script = Callable[[dict[str, Any]], Reply]


class Endpoint:
    """A server that answers from a script and records every request body.

    Use as a context manager: ``with Endpoint(Reply("a"), Reply("b")) as endpoint: ... endpoint.url``.

    :param replies: One reply per request in order, the last one for ever after; or one function from the request
        body to its reply.
    """

    def __init__(self, *replies: Reply | Script) -> None:
        self.replies = replies or (Reply(),)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                endpoint._answer(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing: the requests are recorded."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The address to give as ``api_base``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def prompts(self) -> list[str]:
        """Return the messages of each request as one text, in the order of arrival."""
        return ["\n\n".join(message["content"] for message in request["messages"]) for request in self.requests]

    def __enter__(self) -> Endpoint:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append(dict(handler.headers))
            self.paths.append(handler.path)
        entry = self.replies[min(number, len(self.replies) - 1)]
        reply = entry if isinstance(entry, Reply) else entry(body)
        if reply.hang:
            self._stopped.wait()
        if reply.hang or reply.drop:
            handler.close_connection = True
            return
        payload = (reply.body if reply.body is not None else json.dumps(_completion(reply))).encode()
        handler.send_response(reply.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(payload)))
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(payload)


def error(status: int, message: str = "scripted failure", headers: dict[str, str] | None = None) -> Reply:
    """Return a failure in the shape of OpenAI-compatible servers."""
    text = json.dumps({"error": {"message": message, "type": "scripted", "code": status}})
    return Reply(status=status, headers=headers or {}, body=text)


def _completion(reply: Reply) -> dict[str, Any]:
    content = reply.content if isinstance(reply.content, str) or reply.content is None else json.dumps(reply.content)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    return {
        "id": "scripted-1",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }

"""A local server for the chat completions protocol that gives scripted answers.

The tests use the client library over real HTTP. Each request receives the next answer of the script and is recorded in
``asked``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]

LONG_S = 30.0
"""Maximum time to wait for an action of a test, in seconds; it is exceeded only if the test has failed."""


@dataclass
class Exchange:
    """A request and the connection for its response."""

    handler: BaseHTTPRequestHandler
    body: Json
    server: ModelServer

    def status(self, code: int, body: Any = None, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        self.handler.send_response(code)
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("content-type", "application/json")
        self.handler.send_header("content-length", str(len(data)))
        self.handler.end_headers()
        self.handler.wfile.write(data)

    def begin(self, *, framed: bool = True) -> None:
        """Begin a streamed response; without framing, the response ends when the connection is closed."""
        self.handler.send_response(200)
        self.handler.send_header("content-type", "text/event-stream")
        self.handler.send_header(*(("transfer-encoding", "chunked") if framed else ("connection", "close")))
        self.framed = framed
        self.handler.end_headers()

    def send(self, data: bytes) -> None:
        if self.framed:
            data = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def event(self, delta: Json | None, finish: str | None = None, usage: Json | None = None) -> None:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        chunk = {
            "id": "chat-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": f"{self.body['model']}-2024-08-06",  # a dated name, as providers do
            "choices": choices,
        }
        if usage:
            chunk["usage"] = usage
        self.send(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def end(self, finish: str = "stop", tokens: tuple[int, int] | None = (10, 5)) -> None:
        self.event({}, finish)
        if tokens:
            used = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
            self.event(None, usage=used)
        self.send(b"data: [DONE]\n\n")
        if self.framed:
            self.handler.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection, so that a framed stream remains incomplete."""
        self.handler.close_connection = True


Answer = Callable[[Exchange], None]


def says(*pieces: str, finish: str = "stop", tokens: tuple[int, int] | None = (10, 5)) -> Answer:
    """Return an answer that streams text in the specified pieces."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"role": "assistant", "content": ""})
        for piece in pieces:
            exchange.event({"content": piece})
        exchange.end(finish, tokens)

    return answer


def calls(*wanted: tuple[str, Any], said: str = "", ids: Sequence[str] | None = None) -> Answer:
    """Return an answer with tool calls as (name, arguments); arguments that are strings are sent unchanged."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        if said:
            exchange.event({"content": said})
        for place, (name, args) in enumerate(wanted):
            text = args if isinstance(args, str) else json.dumps(args)
            number = ids[place] if ids else f"call-{len(exchange.server.asked)}-{place + 1}"
            about = {"index": place, "id": number, "type": "function"}
            exchange.event({"tool_calls": [{**about, "function": {"name": name, "arguments": ""}}]})
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                exchange.event({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        exchange.end("tool_calls")

    return answer


def refuses(code: int, message: str, *, error: str | None = None, **headers: str) -> Answer:
    """Return an answer with an HTTP error status and an error body."""
    body = {"error": {"message": message, "type": "error", "param": None, "code": error}}
    return lambda exchange: exchange.status(code, body, **headers)


def unstreamed_answer(body: Json) -> Answer:
    """Return an unstreamed answer with status 200 and one JSON object."""
    return lambda exchange: exchange.status(200, body)


def completion(message: Json, finish: str = "stop") -> Json:
    """Return the unstreamed reply of a chat completions server."""
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "tiny",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def declined_answer(text: str) -> Answer:
    """Return an answer in which the model refuses the request."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        exchange.event({"role": "assistant", "refusal": text})
        exchange.end()

    return answer


def interrupted_answer(*pieces: str, framed: bool = True) -> Answer:
    """Return an answer during which the server closes the connection."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(framed=framed)
        for piece in pieces:
            exchange.event({"content": piece})
        exchange.cut()

    return answer


@dataclass
class Slow:
    """An answer that continues only when the test permits it; ``gone`` is set when the client disconnects."""

    pieces: tuple[str, ...] = ("so far",)
    begun: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    gone: threading.Event = field(default_factory=threading.Event)

    def __call__(self, exchange: Exchange) -> None:
        exchange.begin()
        for piece in self.pieces:
            exchange.event({"content": piece})
        self.begun.set()
        exchange.handler.connection.settimeout(LONG_S)
        if not self.go_on.is_set():
            # Watch until the client closes the connection or the test permits the answer to continue.
            watcher = threading.Thread(target=self._watch, args=(exchange,), daemon=True)
            watcher.start()
        assert self.go_on.wait(LONG_S)
        if not self.gone.is_set():
            exchange.end()

    def _watch(self, exchange: Exchange) -> None:
        with suppress(OSError):
            exchange.handler.connection.recv(1)
        if not self.go_on.is_set():
            self.gone.set()
            self.go_on.set()


class LoopbackServer:
    """An HTTP server that responds in a thread within a ``with`` block; ``url`` is its address without a path."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class ModelServer(LoopbackServer):
    """The scripted model server. ``url`` is its base URL."""

    def __init__(self, *script: Answer) -> None:
        self.script = list(script)
        self.asked: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with server._lock:
                    server.asked.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    answer = server.script.pop(0) if server.script else refuses(400, "the script is over")
                try:
                    answer(Exchange(self, body, server))
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(Handler)
        self.url += "/v1"

    def messages(self, place: int = -1) -> list[Json]:
        """Return the conversation contained in a request."""
        return self.asked[place]["messages"]


@contextmanager
def serving(*script: Answer) -> Iterator[ModelServer]:
    with ModelServer(*script) as server:
        yield server

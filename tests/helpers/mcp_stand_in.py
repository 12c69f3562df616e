"""A minimal MCP server for tests that starts quickly, over stdio or over HTTP in the process of the test."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]
counted = 0


def count(by: int = 1) -> str:
    """Add to a counter in the server and return it."""
    global counted  # noqa: PLW0603 - what the server keeps
    counted += by
    return f"now {counted}"


def append(path: str, text: str) -> str:
    """Append a line to a file."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")
    return "appended"


def environment(name: str) -> str:
    """Return an environment variable and the server's working directory."""
    return f"{os.environ.get(name)} in {Path.cwd()}"


def much() -> str:
    """Return a very long text that contains control characters."""
    return "\x1b[31m" + "x" * 100_000 + "end"


def picture() -> Json:
    """Return an image."""
    return {"type": "image", "data": "QUJD", "mimeType": "image/png"}


def fail() -> str:
    """Raise an error."""
    raise ValueError("no such thing")


def leave() -> str:
    """Exit the server process during the call."""
    os._exit(3)


def wait(path: str) -> str:
    """Create a file and then wait for a long time."""
    Path(path).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(60)
    return "waited"


TOOLS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (count, append, environment, much, picture, fail, leave, wait)
}
OPEN: Json = {"type": "object", "properties": {}, "additionalProperties": True}
OFFERED: list[Json] = [{"name": name, "description": one.__doc__, "inputSchema": OPEN} for name, one in TOOLS.items()]
UNFIT = {"name": "two words", "description": "No name.", "inputSchema": OPEN}


def called(params: Json) -> Json:
    try:
        made = TOOLS[params["name"]](**params.get("arguments", {}))
    except Exception as error:  # noqa: BLE001 - told to the client
        return {"content": [{"type": "text", "text": f"{type(error).__name__}: {error}"}], "isError": True}
    return {"content": [made if isinstance(made, dict) else {"type": "text", "text": made}]}


def reply(message: Json) -> Json | None:
    """Return the response to a client message, or None for a notification."""
    match message.get("method"):
        case "initialize":
            about = {"name": "stand-in", "version": "1"}
            version = message["params"]["protocolVersion"]
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            result = {"tools": [*OFFERED, UNFIT]}
        case "tools/call":
            result = called(message["params"])
        case _ if "id" not in message:
            return None
        case _:
            no = {"code": -32601, "message": "no such method"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": no}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


@contextmanager
def over_http() -> Iterator[tuple[str, list[str | None]]]:
    """Serve over HTTP in a thread; yield the URL and the list of X-Word headers of the requests."""
    words: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            words.append(self.headers["x-word"])
            body = reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            data = b"" if body is None else json.dumps(body).encode()
            self.send_response(202 if body is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp", words
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    for line in sys.stdin:
        if (answer := reply(json.loads(line))) is not None:
            print(json.dumps(answer), flush=True)

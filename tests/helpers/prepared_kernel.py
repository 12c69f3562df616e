"""Fork test kernels from a process that has already imported all modules, so that kernels start quickly.

:func:`serve` is that process. :func:`start` is the program that Jupyter runs as the kernel. It requests a fork, passes
signals to the fork, and ends when the fork ends. This works only on Linux. The oldest supported ipykernel also runs
this file, so the file must not import other test modules.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

IMPORTED = (
    "ipykernel.kernelapp",
    "jedi",
    "materia_nb.loadout.rules",
    "materia_nb.magics.magic",
    "materia_nb.widgets.cast_panel",
)
MOST_BYTES = 1 << 20


class PreparedKernels:
    """The process from which the kernels of one Python interpreter are forked.

    Args:
        python: the interpreter.
        address: the path of its socket.
        environ: its environment variables; a kernel gets its own variables from Jupyter.
    """

    def __init__(self, python: Path, address: Path, environ: dict[str, str]) -> None:
        self.address = address
        self.command = [str(python), "-I", "-S", __file__, "start", str(address)]
        # A client that connects before all modules are imported waits until they are.
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(address))
            listening.listen()
            number = listening.fileno()
            self._process = subprocess.Popen(
                [str(python), __file__, "serve", str(number)],
                env=environ,
                pass_fds=[number],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Stop the process; its kernels end with the processes that Jupyter started for them."""
        self._process.communicate()


def serve(number: int) -> None:
    """Fork a process for each request on the socket until the input ends; each fork returns and becomes the kernel."""
    for name in IMPORTED:
        __import__(name)
    gc.freeze()  # else each kernel would search the imported modules for garbage, and copy their memory
    listening = socket.socket(fileno=number)
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        asking, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            become(asking)
            return
        asking.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    os._exit(0)


def become(asking: socket.socket) -> None:
    """Take over the folder, environment and output of the requesting process, and end when that process ends."""
    os.setsid()
    sent, files, *_ = socket.recv_fds(asking, MOST_BYTES, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    request = json.loads(sent)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = ["ipykernel_launcher.py", *request["arguments"]]
    asking.send(str(os.getpid()).encode())

    def end_with_it() -> None:
        asking.recv(1)
        os._exit(1)

    threading.Thread(target=end_with_it, daemon=True).start()


def start(address: str, arguments: list[str]) -> None:
    """Run as a kernel for Jupyter."""
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    asking.connect(address)
    request = {"cwd": str(Path.cwd()), "environ": dict(os.environ), "arguments": arguments}
    socket.send_fds(asking, [json.dumps(request).encode()], [0, 1, 2])
    kernel = int(asking.recv(MOST_BYTES))

    def pass_on(number: int, _: object) -> None:
        os.killpg(kernel, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    asking.recv(1)


if __name__ == "__main__":
    verb, where, *rest = sys.argv[1:]
    if verb == "start":
        start(where, rest)
    else:
        del sys.path[0]
        serve(int(where))
        from ipykernel import kernelapp

        kernelapp.launch_new_instance()
        atexit._run_exitfuncs()
        os._exit(0)  # a regular exit is slow, because it deletes every module

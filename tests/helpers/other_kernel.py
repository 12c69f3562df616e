"""A program that runs a cast of three sockets and reads commands from its standard input.

``step`` runs one socket; the third socket fails. ``retry`` repairs the agent, retries the step and runs to the end.
After each command, the program prints the status of the cast.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import cast_helpers as h

broken = True


def answer(turn):
    if turn.socket_id == "Socket-3" and broken:
        raise RuntimeError("no paper")
    return f"by {turn.socket_id}"


class OtherKernel:
    """A process that runs a cast and is controlled by lines of text."""

    def __init__(self, root: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(root)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        self.run_dir = Path(self.process.stdout.readline().strip())

    def does(self, command: str) -> str:
        """Send a command and return the resulting status of the cast."""
        self.process.stdin.write(f"{command}\n")
        return self.process.stdout.readline().strip()

    def ends(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(30) == 0


if __name__ == "__main__":
    cast = h.start(Path(sys.argv[1]), h.chain_config(3), {"M": answer})
    print(cast.run_dir, flush=True)
    for command in sys.stdin:
        if command.strip() == "step":
            cast.step()
        else:
            broken = False
            cast.retry()
            cast.run()
        print(cast.status, flush=True)

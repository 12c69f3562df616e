"""Start test kernels quickly, which communicate through socket files instead of TCP ports.

A kernel of another test worker can take a TCP port that is reserved but not used yet. JupyterLab and nbval do not
recover from this conflict.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from jupyter_client.manager import AsyncKernelManager, KernelManager
from traitlets import default

from prepared_kernel import PreparedKernels

TRANSPORT_OPTION: Final = "--KernelManager.transport=ipc"
"""Option that makes the kernels of a Jupyter server use socket files in its runtime directory."""


@functools.cache
def prepared_kernels() -> PreparedKernels:
    """Return the process from which all kernels of this test worker are forked."""
    folder = Path(tempfile.mkdtemp(prefix="prepared-"))
    return PreparedKernels(Path(sys.executable), folder / "socket", dict(os.environ))


def stop_prepared_kernels() -> None:
    """Stop that process if it was started."""
    if prepared_kernels.cache_info().currsize:
        prepared_kernels().stop()
        shutil.rmtree(prepared_kernels().address.parent)
        prepared_kernels.cache_clear()


class FileKernelManager(KernelManager):
    """A kernel manager with its own folder for socket files, whose paths may have at most 107 characters.

    On Linux, its kernels are forked from a prepared process.
    """

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        command = super().format_kernel_cmd(extra_arguments)
        if sys.platform != "linux":
            return command
        return [*prepared_kernels().command, *command[command.index("-f") :]]

    @default("transport")
    def _files(self) -> str:
        return "ipc"

    @default("ip")
    def _folder(self) -> str:
        return os.path.join(tempfile.mkdtemp(prefix="kernel-"), "socket")  # noqa: PTH118 - a traitlet of text

    def cleanup_ipc_files(self) -> None:
        super().cleanup_ipc_files()
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(self.ip))  # noqa: PTH106, PTH120


class AsyncFileKernelManager(FileKernelManager, AsyncKernelManager):
    """The asynchronous variant of the kernel manager, for nbclient and papermill."""

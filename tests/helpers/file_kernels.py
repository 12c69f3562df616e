"""Start test kernels that communicate through socket files instead of TCP ports.

A kernel of another test worker can take a TCP port that is reserved but not used yet. JupyterLab and nbval do not
recover from this conflict.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Final

from jupyter_client.manager import AsyncKernelManager, KernelManager
from traitlets import default

TRANSPORT_OPTION: Final = "--KernelManager.transport=ipc"
"""Option that makes the kernels of a Jupyter server use socket files in its runtime directory."""


class FileKernelManager(KernelManager):
    """A kernel manager with its own folder for socket files, whose paths may have at most 107 characters."""

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

"""Kernels that are reached through socket files.

A kernel that is reached over TCP is told ports that were free a moment before. The kernel of another test worker may have
taken one of them by then, and neither JupyterLab nor nbval recovers from that.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Final

from jupyter_client.manager import AsyncKernelManager, KernelManager
from traitlets import default

TRANSPORT_OPTION: Final = "--KernelManager.transport=ipc"
"""What makes the kernels of a Jupyter server use files in its runtime directory."""


class FileKernelManager(KernelManager):
    """The manager of a kernel that has a folder of its own for its sockets, whose paths may have 107 characters."""

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
    """The same for nbclient and papermill."""

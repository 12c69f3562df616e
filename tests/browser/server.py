"""Start a JupyterLab server for the tests without user settings, news and extension manager."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from browser.kernels import NEWEST
from file_kernels import TRANSPORT_OPTION
from prepared_kernel import PreparedKernels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

START_SECONDS: Final = 90
STOP_SECONDS: Final = 15

SETTINGS: Final = {
    # Every cell is in the page, also those scrolled out of view.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
    # The usual 1 s drops the answer of a kernel that is completing for the first time on a busy machine.
    "@jupyterlab/completer-extension/manager": {"providerTimeout": 30_000},
}


class LabServer:
    """A JupyterLab server on a free port.

    Args:
        folder: the folder for the server root (``work``), the settings and the log.
        kernels: the Python interpreter of each kernel, by kernel name. Each kernel is forked from a prepared process.
        If it is empty, the server offers only the kernel of this interpreter, which starts when a notebook is opened.
    """

    def __init__(self, folder: Path, kernels: Mapping[str, Path] = MappingProxyType({})) -> None:
        self.root = folder / "work"
        self._kernels = kernels
        self.log = folder / "jupyterlab.log"
        self.token = secrets.token_hex(16)
        self.url = ""
        self._folder = folder
        # Not in that folder: the path of a socket may have 107 characters.
        self._runtime = tempfile.mkdtemp(prefix="lab-")
        self._prepared: list[PreparedKernels] = []
        self._listening = threading.Event()
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the server and wait until it listens; raise RuntimeError with the server log if it does not."""
        self.root.mkdir(parents=True)
        settings = self._folder / "settings"
        for plugin, values in SETTINGS.items():
            path = settings / f"{plugin}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(values))
        for name, python in self._kernels.items():
            path = self._folder / "jupyter_data_dir" / "kernels" / name / "kernel.json"
            path.parent.mkdir(parents=True)
            command = [str(python), "-m", "ipykernel_launcher"]
            if sys.platform == "linux":
                self._prepared.append(PreparedKernels(python, self._folder / name, self._environment()))
                command = self._prepared[-1].command
            argv = [*command, "-f", "{connection_file}"]
            # A notebook counts as changed that is opened with a kernel of another name to show.
            shown = "Python 3 (ipykernel)" if name == NEWEST else name
            path.write_text(json.dumps({"argv": argv, "display_name": shown, "language": "python"}))
        command = [
            *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
            *("--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={self.root}"),
            *("--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True"),
            "--LabApp.extension_manager=readonly",
            *("--LabApp.news_url=", f"--LabApp.user_settings_dir={settings}"),
            f"--LabApp.workspaces_dir={self._folder / 'workspaces'}",
            "--LanguageServerManager.autodetect=False",
            TRANSPORT_OPTION,
        ]
        # Its own process group, so that everything it starts can be ended with it.
        self._process = subprocess.Popen(
            command,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        threading.Thread(target=self._read_log, daemon=True).start()
        if not self._listening.wait(START_SECONDS) or not self.url:
            self.stop()
            message = f"JupyterLab did not start within {START_SECONDS} s. Its log:\n{self.log.read_text()}"
            raise RuntimeError(message)
        # The server logs its address before it accepts connections.
        host, port = self.url.removeprefix("http://").split(":")
        while self._process.poll() is None:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection((host, int(port)), START_SECONDS).close()
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.05)
        raise RuntimeError(f"JupyterLab ended before it accepted connections. Its log:\n{self.log.read_text()}")

    def stop(self) -> None:
        """Stop the server and its kernels."""
        process = self._process
        if process is None:
            return
        # Asked politely it shuts its kernels down; a kernel whose server is gone ends by itself.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
                break
        self._process = None
        for prepared in self._prepared:
            prepared.stop()
        shutil.rmtree(self._runtime, ignore_errors=True)

    def _environment(self) -> dict[str, str]:
        # The file-based settings of whoever runs the tests must not reach the server.
        places = {
            name: str(self._folder / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")
        }
        profile = {"MATERIA_PROFILE_DIR": str(self._folder / "profile")}
        profile["JUPYTER_RUNTIME_DIR"] = self._runtime
        # Before the kernel that is installed beside JupyterLab.
        profile["JUPYTER_PATH"] = places["JUPYTER_DATA_DIR"]
        # The token goes by the environment: a command line is there for every user to read.
        return {**os.environ, **places, **profile, "JUPYTER_TOKEN": self.token, "PYTHONUNBUFFERED": "1"}

    def _read_log(self) -> None:
        """Copy the server output to the log file until it contains the address of the server."""
        assert self._process is not None
        assert self._process.stdout is not None
        with self.log.open("w") as copy:
            for line in self._process.stdout:
                copy.write(line)
                copy.flush()
                if not self.url and (match := re.search(r"http://127\.0\.0\.1:\d+(?=/lab)", line)):
                    self.url = match[0]
                    self._listening.set()
        self._listening.set()

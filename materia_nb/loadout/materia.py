"""Definitions of materia, parsed as far as they are well formed, and the scripts that come with the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from materia_nb.jsonvalue import JSON, Object, as_object, is_text

SHIPPED_SCRIPTS: Final = (
    "blackbelt-bootstrap.py",
    "blackbelt-maintain.py",
    "commit-sigil.py",
    "detect-vcs.py",
    "echo.py",
    "ensure-ignored.py",
    "git-worktrees.py",
    "mime-bootstrap.py",
    "mime-maintain.py",
)
"""The utility scripts that come with the package (R25)."""
BUILT_IN: Final = {
    "echo": "echo.py",
    "project.ensureIgnored": "ensure-ignored.py",
    "vcs.detect": "detect-vcs.py",
}
"""The scripts under the names of the utilities that are built into the reference engine (R61)."""
LANE_UTILITIES: Final = ("vcs.spawnJjWorkspace", "vcs.integrateJjWorkspaces", "vcs.finalizeJjWorkspace")
"""Utilities of the reference engine for its streams; no shipped script does their work."""
TOOL_SCOPES: Final = ("none", "readOnly", "coding")
_RENAMED: Final = {
    "ensureartifactsignored": "Ignore-Artifacts",
    "currentutilityprojectensureignored": "Ignore-Artifacts",
    "detectvcs": "Detect-VCS",
    "currentutilityvcsdetect": "Detect-VCS",
}
_SCRIPT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\.(?:py|mjs)")


@dataclass(frozen=True, slots=True)
class MateriaFacts:
    """A definition of a materia.

    Attributes:
        id: its id; "" for a materia that does not exist.
        raw: the definition as written, empty for a materia that does not exist.
        is_utility: True if a process answers, False for an agent.
        generator: True if it produces work items.
        parallel: True if it is a generator whose items go to parallel streams.
        prompt: the prompt of an agent, "" without one.
    """

    id: str
    raw: Object
    is_utility: bool
    generator: bool
    parallel: bool
    prompt: str

    @property
    def variables(self) -> list[str]:
        """The names of the ``{{name}}`` variables of the prompt of an agent, each once."""
        return [] if self.is_utility else list(dict.fromkeys(name for _, _, name in variables(self.prompt)))


def parse_materia(id_: str, raw: JSON) -> MateriaFacts:
    """Return a definition, parsed as far as it is well formed."""
    raw = as_object(raw)
    prompt, generator = raw.get("prompt"), raw.get("generator") is True
    return MateriaFacts(
        id=id_,
        raw=raw,
        is_utility=materia_kind(raw) == "utility",
        generator=generator,
        parallel=generator and (raw.get("parallel") is True or raw.get("parallelPlanner") is True),
        prompt=prompt if isinstance(prompt, str) else "",
    )


NO_MATERIA: Final = MateriaFacts("", {}, is_utility=False, generator=False, parallel=False, prompt="")


def materia_kind(raw: Object) -> Literal["agent", "utility"]:
    """Return the kind of a materia; without ``type``, something to run makes a utility."""
    kind = raw.get("type")
    if kind is None:
        return "utility" if "command" in raw or "script" in raw else "agent"
    return "utility" if kind == "utility" else "agent"


def materia_group(raw: Object) -> str:
    """Return the heading under which an editor lists a materia; left out, Utility for a utility, else ""."""
    group = raw.get("group")
    if is_text(group):
        return group.strip()
    return "Utility" if materia_kind(raw) == "utility" else ""


def script_file(name: JSON) -> str | None:
    """Return the file name of a shipped script, ``.mjs`` read as ``.py``; None if it is not a name (R25)."""
    if not isinstance(name, str) or not _SCRIPT_NAME.fullmatch(name):
        return None
    return name.removesuffix(".mjs") + ".py" if name.endswith(".mjs") else name


def renamed_materia(name: JSON) -> str | None:
    """Return the bundled materia that replaces an id of the reference engine, or None."""
    folded = name.casefold() if isinstance(name, str) else ""
    if folded.startswith("currentutility"):  # the reference engine generated such ids, with a suffix
        return next((id_ for old, id_ in _RENAMED.items() if folded.startswith(old)), None)
    return _RENAMED.get(folded)


def variables(prompt: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the name of each ``{{name}}`` of a prompt; the name may be blank (R31).

    Each character is read once. The first closing brace decides: unless it is doubled, nothing that was opened before it
    is a variable.
    """
    position = 0
    while (start := prompt.find("{{", position)) >= 0 and (close := prompt.find("}", start + 2)) >= 0:
        position = close + 1
        if close > start + 2 and prompt.startswith("}", position):
            position += 1
            yield start, position, prompt[start + 2 : close].strip()

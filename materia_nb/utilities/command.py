"""Which program a utility materia names, and where it lies (R24, R25)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import script_file
from materia_nb.loadout.graph import Materia
from materia_nb.utilities.scripts import find_script, script_names

INTERPRETERS: Final = frozenset({"python", "python3", "node", "bash", "sh", "ruby", "perl", "deno", "bun"})
"""Programs whose first argument is a script (R24)."""

SHIPPED_KIND: Final = "shippedUtility"

# After one of these the next argument is no script file but code, a module or a mode.
_CODE_FOLLOWS: Final = frozenset({"-", "-c", "-e", "-m", "-p", "-s", "--eval", "--print", "eval"})


def resolve_command(materia: Materia, *, utilities: Sequence[Path] = ()) -> list[str]:
    """Say what to run for a utility materia: its command, or the shipped script that it names.

    A relative program, or a relative script after an interpreter name (options between them are
    passed over), that exists beside the owning config file is made absolute; everything else is
    left as written (R24). ``command`` wins over ``script``.

    Args:
        materia: the utility; ``materia.owner`` is the directory of its config file.
        utilities: directories to look for a shipped script in before the package, see
            :func:`~materia_nb.utilities.scripts.find_script` (R25).

    Raises:
        MateriaError: kind ``utility_not_started``: neither command nor script, or no such script.
    """
    if materia.command:
        return _beside_config(materia.command, materia.owner)
    if materia.script is not None:
        return _shipped(materia, utilities)
    raise _refused(
        materia, "has neither a command nor a script", 'give it "command": ["program", "argument"]'
    )


def moved(definition: Mapping[str, JSON], owner: Path | None, folder: Path) -> dict[str, JSON]:
    """Return the definition of a utility so that a config in ``folder`` runs the same as one in ``owner`` (R24)."""
    command = definition.get("command")
    if owner == folder or not isinstance(command, list) or not all(isinstance(one, str) for one in command):
        return dict(definition)
    found = _beside_config(command, owner) if command else []
    places = zip(command, found, strict=True)
    argv = [os.path.relpath(now, folder.absolute()) if now != was else was for was, now in places]
    return {**definition, "command": argv}


def beside_config(definition: Mapping[str, JSON], owner: Path | None) -> dict[str, JSON]:
    """Return the definition of a utility with what lies beside its config named by whole paths (R24)."""
    command = definition.get("command")
    if not isinstance(command, list) or not all(isinstance(one, str) for one in command) or not command:
        return dict(definition)
    argv: list[JSON] = [*_beside_config([str(one) for one in command], owner)]
    return {**definition, "command": argv}


def lacking(definition: Mapping[str, JSON], owner: Path | None, project: Path) -> str | None:
    """Return the program or script that a utility names and that is not on this machine; None when all is there.

    Args:
        definition: the materia as written.
        owner: the directory of its config file, where they are looked for first (R24).
        project: the directory that the utility works in.
    """
    command = beside_config(definition, owner).get("command")
    if not isinstance(command, list) or not command or not all(isinstance(one, str) for one in command):
        return None
    argv = [str(one) for one in command]
    program = argv[0]
    try:
        there = (project / program).is_file() if os.sep in program else shutil.which(program) is not None
        if not there:
            return program
        place = _script_place(argv) if PurePath(program).name in INTERPRETERS else None
        if place is not None and PurePath(argv[place]).suffix and not (project / argv[place]).exists():
            return argv[place]
    except (OSError, ValueError):  # what can be the name of no file is left to the run to tell
        return None
    return None


def _beside_config(command: Sequence[str], owner: Path | None) -> list[str]:
    argv = list(command)
    if owner is None:
        return argv
    place = _script_place(argv) if PurePath(argv[0]).name in INTERPRETERS else None
    for index in (0, place):
        if index is not None and (found := _file_beside(owner, argv[index])):
            argv[index] = str(found)
    return argv


def _script_place(argv: Sequence[str]) -> int | None:
    """Find the argument that an interpreter would run as a script."""
    for index, argument in enumerate(argv[1:], start=1):
        if argument in _CODE_FOLLOWS:
            return None
        if not argument.startswith("-") and argument != "run":  # deno run x.ts
            return index
    return None


def _file_beside(owner: Path, name: str) -> Path | None:
    if not name or PurePath(name).is_absolute():
        return None
    path = owner.absolute() / name
    try:
        return path if path.is_file() else None
    except (OSError, ValueError):  # code given as an argument is seldom a possible file name
        return None


def _shipped(materia: Materia, utilities: Sequence[Path]) -> list[str]:
    script = materia.script or {}
    kind, name = script.get("kind"), script.get("name")
    if kind != SHIPPED_KIND:
        raise _refused(
            materia, f"has a script of the unknown kind {kind!r}", f'the one kind there is: "{SHIPPED_KIND}"'
        )
    # A name, never a path: a config cannot reach out of the directories of scripts.
    wanted = script_file(name)
    if wanted is None:
        raise _refused(
            materia,
            f"names the script {name!r}",
            'a shipped script is named by its file name, as "detect-vcs.py"',
        )
    found = find_script(wanted, utilities)
    if found is None:
        raise _refused(
            materia,
            f"names the shipped script {wanted!r}, which does not exist",
            did_you_mean(wanted, script_names(utilities)),
        )
    return [sys.executable or "python3", str(found)]


def _refused(materia: Materia, what: str, hint: str) -> MateriaError:
    return MateriaError(
        f"Utility {materia.id!r} {what}", where=f"materia.{materia.id}", hint=hint, kind="utility_not_started"
    )

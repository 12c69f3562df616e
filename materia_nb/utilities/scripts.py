"""Which program a utility materia names, and where it lies (R24, R25); the scripts that come with the package.

Those are copied into the user's profile. A person can read and change a copy. A manifest beside the copies says which
file is the copy of which script, and the hash of the packaged script that it was made from.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final, Literal, NamedTuple

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.file_io import read_plain, replace_file
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import read_config, write_config
from materia_nb.loadout.facts import SHIPPED_SCRIPTS, Object, as_list, as_object, script_file
from materia_nb.loadout.graph import Materia

PACKAGED: Final = Path(__file__).with_name("shipped")
FOLDER: Final = "utilities"
"""The name of the directory of copies in a profile."""

MANIFEST: Final = ".materia-shipped-utilities.json"

PI_MANIFEST: Final = ".pi-materia-shipped-utilities.json"
"""What the reference engine keeps beside its own copies, which are scripts for Node."""

_HASH_SHOWN: Final = 8


class Copy(NamedTuple):
    """The copy of a shipped script in a profile: where it is, and how it stands."""

    script: str
    path: Path
    stands: Literal["as shipped", "changed", "of another version", "not there", "set aside"]
    """``set aside``: a person changed it, and since an update the new script is run from a file beside it."""


def find_script(name: str, folders: Sequence[Path] = ()) -> Path | None:
    """Find the file to run for a shipped script, None when there is none.

    The first folder that has it provides it: a folder with a manifest by its copy, if that was made
    from the script of this package, a folder without one by the file of that name. Else the
    packaged script itself is run, so an outdated copy that could not be replaced never is.
    """
    for folder in folders:
        path: Path | None = folder / name
        if name in SHIPPED_SCRIPTS and (folder / MANIFEST).exists():
            path = _copy(folder, _manifest(folder).get(name), _hash(_packaged(name)))
        if path is not None and path.is_file():
            return path.absolute()
    return PACKAGED / name if name in SHIPPED_SCRIPTS else None


def script_names(folders: Sequence[Path] = ()) -> list[str]:
    """List the scripts that can be named."""
    own = {path.name for folder in folders if folder.is_dir() for path in folder.glob("*.py")}
    return sorted({*SHIPPED_SCRIPTS, *own})


def copies(folder: Path) -> list[Copy]:
    """Tell how the copies of the shipped scripts in ``folder`` stand; nothing is changed."""
    entries = _manifest(folder)
    return [_stands(folder, name, entries.get(name)) for name in SHIPPED_SCRIPTS]


def _stands(folder: Path, name: str, entry: JSON) -> Copy:
    new = _hash(_packaged(name))
    made_from = as_object(entry).get("sha256")
    path = _copy(folder, entry, made_from) if isinstance(made_from, str) else None
    path = path or folder / name
    try:
        now = _hash(read_plain(path, follow=True))
    except OSError:
        return Copy(name, path, "not there")
    if now == new:
        aside = path.name != name and (folder / name).is_file()
        return Copy(name, folder / name, "set aside") if aside else Copy(name, path, "as shipped")
    return Copy(name, path, "of another version" if now == made_from else "changed")


def foreign_scripts(folder: Path) -> list[str]:
    """List the scripts that a profile of the reference engine has copies of."""
    try:
        document = as_object(read_config(folder / FOLDER / PI_MANIFEST))
    except MateriaError:
        return []
    listed = document.get("scripts", document)
    return sorted(listed) if isinstance(listed, dict) else []


def synchronize(folder: Path) -> bool:
    """Bring the copies of the shipped scripts in ``folder`` up to date; whether that was possible.

    A copy that is as it was made is replaced. One that a person changed stays as it is, and the new
    script is written beside it with a part of its hash in its name. Every file is replaced as a whole, so
    kernels that do this at the same time come to the same result. Where the folder cannot be
    written nothing is raised: :func:`find_script` then gives the packaged scripts.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        before = _manifest(folder)
        after = {**before, **{name: _place(folder, name, before.get(name)) for name in SHIPPED_SCRIPTS}}
        if after != before:
            write_config(folder / MANIFEST, {"scripts": after})
    except (OSError, MateriaError):
        return False
    return True


def _place(folder: Path, name: str, entry: JSON) -> JSON:
    """Make sure that there is a copy of a packaged script, and return its entry in the manifest."""
    content = _packaged(name)
    new = _hash(content)
    copy = _copy(folder, entry, new)
    if copy is not None and copy.is_file():
        return entry
    path = folder / name
    if path.exists() and _hash(read_plain(path, follow=True)) not in {new, as_object(entry).get("sha256")}:
        path = folder / f"{PurePath(name).stem}.{new[:_HASH_SHOWN]}.py"
    # A file that has the hash of this script in its name was made from it, and may have been changed since.
    if path.name == name or not path.exists():
        replace_file(path, content)
    return {"file": path.name, "sha256": new}


def _copy(folder: Path, entry: JSON, current: str) -> Path | None:
    """Return the copy that an entry of the manifest names, None when it is of another script than ``current``."""
    fields = as_object(entry)
    name = fields.get("file")
    if not isinstance(name, str) or PurePath(name).name != name or fields.get("sha256") != current:
        return None
    return folder / name


def _manifest(folder: Path) -> Object:
    """Read which copies there are; nothing is known when the manifest is missing or damaged."""
    try:
        return as_object(as_object(read_config(folder / MANIFEST)).get("scripts"))
    except MateriaError:
        return {}


def _packaged(name: str) -> bytes:
    return read_plain(PACKAGED / name, follow=True)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
    command = _argv(definition)
    if owner == folder or not command:
        return dict(definition)
    places = zip(command, _beside_config(command, owner), strict=True)
    argv = [os.path.relpath(now, folder.absolute()) if now != was else was for was, now in places]
    return {**definition, "command": argv}


def beside_config(definition: Mapping[str, JSON], owner: Path | None) -> dict[str, JSON]:
    """Return the definition of a utility with what lies beside its config named by whole paths (R24)."""
    command = _argv(definition)
    return {**definition, "command": _beside_config(command, owner)} if command else dict(definition)


def lacking(definition: Mapping[str, JSON], owner: Path | None, project: Path) -> str | None:
    """Return the program or script that a utility names and that is not on this machine; None when all is there.

    Args:
        definition: the materia as written.
        owner: the directory of its config file, where they are looked for first (R24).
        project: the directory that the utility works in.
    """
    argv = _argv(beside_config(definition, owner))
    if not argv:
        return None
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


def _argv(definition: Mapping[str, JSON]) -> list[str]:
    """The command of a definition; empty when there is none, or none that could be run."""
    command = as_list(definition.get("command"))
    return command if all(isinstance(one, str) for one in command) else []


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

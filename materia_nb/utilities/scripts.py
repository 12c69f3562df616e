"""The utility scripts that come with the package, and their copies in the user's profile (R25).

A person can read and change a copy. A manifest beside the copies says which file is the copy of
which script, and the hash of the packaged script that it was made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Final, Literal, NamedTuple

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import read_config, replace_bytes, write_config
from materia_nb.loadout.facts import SHIPPED_SCRIPTS, Object, as_object

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
    stands: Literal["as shipped", "changed", "of another version", "not there"]


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
        now = _hash(path.read_bytes())
    except OSError:
        return Copy(name, path, "not there")
    if now == new:
        return Copy(name, path, "as shipped")
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
    if path.exists() and _hash(path.read_bytes()) not in {new, as_object(entry).get("sha256")}:
        path = folder / f"{PurePath(name).stem}.{new[:_HASH_SHOWN]}.py"
    # A file that has the hash of this script in its name was made from it, and may have been changed since.
    if path.name == name or not path.exists():
        replace_bytes(path, content)
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
    return (PACKAGED / name).read_bytes()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""Adding definitions to a config file that a person keeps, so that nothing that is in it is lost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import KIND, read_config, write_config
from materia_nb.loadout.facts import Object, as_object, is_object
from materia_nb.loadout.layers import LayeredConfig
from materia_nb.loadout.report import shown


def add_definitions(path: Path, loadouts: Mapping[str, JSON], materia: Mapping[str, JSON]) -> None:
    """Add loadouts and materia to a config file, which is made when it is missing.

    Everything else in the file stays as it is, and so does a materia that it defines already. The file is
    written whole or not at all.

    Raises:
        MateriaError: the file cannot be read or written, is no config, or has a loadout of one of the names.
    """
    document = read_config(path) if path.exists() else {}
    if not is_object(document):
        raise _no_config(str(path), "the config", document)
    there = {group: _group(document, group, path) for group in ("loadouts", "materia")}
    for name in loadouts:
        if name in there["loadouts"]:
            raise MateriaError(
                f"the file has a loadout {name!r} already",
                where=f"{path}: loadouts",
                hint="choose another name, or edit that one",
                kind=KIND,
            )
    merged: Object = {**document, "loadouts": {**there["loadouts"], **loadouts}}
    if materia:
        merged["materia"] = {**materia, **there["materia"]}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MateriaError(
            f"the directory cannot be made: {error.strerror or error}",
            where=str(path.parent),
            hint="make the project writable",
            kind=KIND,
        ) from error
    write_config(path, merged)


def placed_materia(config: LayeredConfig, loadout: str) -> dict[str, Object]:
    """Return the definitions of the materia that the sockets of a loadout name, as far as there are any."""
    document = config.document
    defined = as_object(document.get("materia"))
    sockets = as_object(as_object(as_object(document.get("loadouts")).get(loadout)).get("sockets"))
    named = (as_object(socket).get("materia") for socket in sockets.values())
    return {name: raw for name in named if isinstance(name, str) and is_object(raw := defined.get(name))}


def _group(document: Object, group: str, path: Path) -> Object:
    value = document.get(group)
    if value is None:
        return {}
    if not is_object(value):
        raise _no_config(f"{path}: {group}", group, value)
    return value


def _no_config(where: str, what: str, value: JSON) -> MateriaError:
    return MateriaError(
        f"{what} is {shown(value)}, not an object", where=where, hint="correct the file", kind=KIND
    )

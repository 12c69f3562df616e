"""Saving a design into a config file: as little of the file changes as can be, and all of it or nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from materia_nb.errors import MateriaError, counted
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import ENDINGS, dumps, expanded, read_text, text_of, write_text
from materia_nb.loadout.design.document import DESIGN_KIND, exact, refused
from materia_nb.loadout.design.draft import NOTEBOOK, Design, Home
from materia_nb.loadout.design.rewriting import lost_comments, rewrite_json, rewrite_yaml
from materia_nb.loadout.facts import Object, as_object, is_object
from materia_nb.loadout.layers import PROJECT_FILE, LayeredConfig, LayerName, whole_over
from materia_nb.loadout.report import brief

_WRITTEN: Final = ("given", "environment", "project")
"""The layers whose files a person edits; what comes from others is saved as a copy in the project's file."""
_MOST_COMMENTS: Final = 5


def open_design(config: LayeredConfig, name: str, project: Path) -> Design:
    """Begin to edit a loadout of ``config``, which has just been read.

    Raises:
        MateriaError: its file was changed at this very moment.
    """
    document = config.document["loadouts"][name]
    if not is_object(document):
        what = f"The loadout is {brief(document)}, not an object."
        raise refused(what, name, "mend it in its file, or begin a new one")
    layer = config.origin("loadout", name)
    below = config.below("loadout", name, layer.name)
    if layer.path is None:
        home = NOTEBOOK
    elif layer.name in _WRITTEN:
        home = home_at(layer.path)
        kept = as_object(as_object(_read(layer.path, home.seen or "{}")).get("loadouts")).get(name)
        if exact(kept) != exact(as_object(layer.document.get("loadouts")).get(name)):
            raise _changed(layer.path)
    else:
        home = project_home(project, f"a copy, since {layer.name} loadouts are not written to")
        below = document
    at: LayerName = layer.name if layer.path is None or layer.name in _WRITTEN else "project"
    return Design(name, document, config.document, replace(home, below=below, materia=_below(config, at)))


def _below(config: LayeredConfig, layer: LayerName) -> Object:
    """Return the materia as they would be without a layer and those above it; all as they are without such a layer."""
    known = as_object(config.document.get("materia"))
    return {id_: raw for id_ in known if (raw := config.below("materia", id_, layer))}


def new_design(config: LayeredConfig, name: str, project: Path) -> Design:
    """Begin an empty loadout for the project's file; raises MateriaError when there is one of that name."""
    if name in config.loadout_names:
        raise MateriaError(
            f"There is a loadout {name!r} already.",
            hint="edit that one, or choose another name",
            kind=DESIGN_KIND,
        )
    home = replace(project_home(project), materia=_below(config, "project"))
    return Design(name, {}, config.document, home)


def project_home(project: Path, why: str = "") -> Home:
    """Return the project's config file as the place to save to."""
    return home_at(project / PROJECT_FILE, why)


def home_at(path: Path, why: str = "") -> Home:
    """Return a file, there or not, as the place to save to; raises MateriaError when it cannot be read."""
    if path.suffix.lower() not in ENDINGS:
        raise refused(f"a config file ends with one of {', '.join(ENDINGS)}", str(path), "choose such a name")
    return Home(path, text_of(path) if path.exists() else None, why)


def save(design: Design, to: str | Path | None = None, *, anyway: bool = False) -> Path:
    """Save a design into its file, or a copy into another one, which then holds it beside what it held.

    Args:
        design: what to save; after it was saved at home, :attr:`Design.began` is what it is now.
        to: another file than its own; a new one must end with ``.json``.
        anyway: save it with its problems, let comments of a YAML file go with what they stand at, and replace
            a loadout of that name in another file.

    Raises:
        MateriaError: something of that would happen and ``anyway`` is not set; the file was changed by someone
            else since it was read; it holds comments that would be lost; it cannot be written. Nothing was
            written then.
    """
    refuse_problems(design, anyway=anyway)
    path = design.home.path if to is None else expanded(to)
    if path is None:
        raise MateriaError("This design has no file.", hint="name one that ends with .json", kind=DESIGN_KIND)
    copied = path != design.home.path
    home = home_at(path) if copied else design.home
    now = text_of(path) if path.exists() else None
    if now != home.seen:
        raise _changed(path)
    whole = replace(home, below=design.home.below, materia={} if copied else design.home.materia)
    text = _text_with(path, now, design, whole, again=anyway or not copied, lose_comments=anyway)
    write_text(path, text)
    if not copied:
        design.saved(replace(home, seen=text, why=""))
    return path


def left_behind(config: LayeredConfig, design: Design) -> list[str]:
    """Return the materia that a saved design uses and that no file holds: other notebooks will not have them."""
    used = {as_object(one).get("materia") for one in as_object(design.document.get("sockets")).values()}
    known = as_object(config.document.get("materia"))
    return [name for name in known if name in used and config.origin("materia", name).path is None]


def refuse_problems(design: Design, *, anyway: bool) -> None:
    """Raise MateriaError when the loadout has problems, unless it is to be saved ``anyway``."""
    problems = design.report.problems
    if problems and not anyway:
        raise MateriaError(
            f"The loadout has {counted(len(problems), 'problem')}: {problems[0].message}.",
            where=problems[0].source,
            hint=f"{problems[0].hint}; or save it anyway and go on later",
            kind="refused",
        )


def _text_with(
    path: Path, text: str | None, design: Design, home: Home, *, again: bool, lose_comments: bool
) -> str:
    """Return what the file is to hold."""
    format_ = ENDINGS[path.suffix.lower()]
    if text is None:
        if format_ == "yaml":
            raise refused(
                "New config files are written as JSON.", str(path), f"choose {path.with_suffix('.json').name}"
            )
        return dumps(_with_materia({"loadouts": _own(design)}, design, home), indent=2) + "\n"
    whole = _with_loadout(_read_strictly(path, text), path, design, again=again)
    whole = _with_materia(whole, design, home)
    if format_ == "yaml":
        made = rewrite_yaml(text, whole, str(path))
        lost = lost_comments(text, made)
        if lost and not lose_comments:
            raise MateriaError(
                f"{counted(len(lost), 'comment')} would be lost: {'; '.join(lost[:_MOST_COMMENTS])}",
                where=str(path),
                hint="save anyway if that is right, or save under another name",
                kind="comments",
            )
        return made
    return rewrite_json(text, whole)


def _read(path: Path, text: str) -> JSON:
    return read_text(text, ENDINGS[path.suffix.lower()], where=str(path))


def _read_strictly(path: Path, text: str) -> JSON:
    """Read a file that is to be written: JSON must be strict, since nothing else in it could be kept."""
    document = _read(path, text)
    if ENDINGS[path.suffix.lower()] == "jsonc":
        try:
            return read_text(text, "json", where=str(path))
        except MateriaError as error:
            raise MateriaError(
                "The file has comments, or what else strict JSON has not, and they would be lost.",
                where=str(path),
                hint="save under a name that ends with .json, or put the changes shown into it by hand",
                kind="comments",
            ) from error
    return document


def _with_loadout(document: JSON, path: Path, design: Design, *, again: bool) -> Object:
    loadouts = as_object(document).get("loadouts", {})
    if not is_object(document) or not is_object(loadouts):
        raise refused("The file holds no config with loadouts.", str(path), "choose another file")
    if design.name in loadouts and not again:
        raise refused(
            f"The file has a loadout {design.name!r} already.",
            str(path),
            "choose another file, load that one to edit it, or save anyway to replace it",
        )
    return {**document, "loadouts": {**loadouts, **_own(design)}}


def _own(design: Design) -> Object:
    return {design.name: whole_over(design.document, design.home.below)}


def _with_materia(document: Object, design: Design, home: Home) -> Object:
    """Put the changed materia in: of each what the layers below do not say already, in the order that it had."""
    changed = design.changed_materia
    if not changed:
        return document
    written_ = dict(as_object(document.get("materia")))
    for id_, raw in changed.items():
        below = as_object(home.materia.get(id_))
        kept = None if raw is None else materia_over(raw, below, as_object(written_.get(id_)))
        if kept or (raw is None and below):
            written_[id_] = kept
        else:
            written_.pop(id_, None)
    if not written_ and "materia" not in document:
        return document
    return {**document, "materia": written_}


def materia_over(raw: Object, below: Object, before: Object) -> Object:
    """Return what a layer has to say so that a materia is ``raw``: what it said before, as far as it still holds, first.

    Args:
        raw: the definition, whole.
        below: what the layers below say of it (R33).
        before: what the layer said of it.
    """
    kept = {key: raw.get(key) for key in before if key in raw or key in below}
    differs = {
        key: value for key, value in raw.items() if key not in below or exact(below[key]) != exact(value)
    }
    gone = dict.fromkeys(key for key in below if key not in raw)
    return {**kept, **differs, **gone}


def _changed(path: Path) -> MateriaError:
    return MateriaError(
        "The file was changed on disk since it was read, so it is not written.",
        where=str(path),
        hint="reload to edit what is there now, or save under another name",
        kind="changed",
    )

"""Open designs from config files, and save them atomically without reformatting the unchanged parts of a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from materia_nb.errors import MateriaError, counted, join_with_or
from materia_nb.jsonvalue import JSON, Object, as_object, is_object
from materia_nb.loadout.config_files import EXTENSIONS, config_text, dumps, expand_path, read_text, write_text
from materia_nb.loadout.design import NOTEBOOK, Design, Home
from materia_nb.loadout.design.document import DESIGN_KIND, design_error, exact_text
from materia_nb.loadout.items import with_advances
from materia_nb.loadout.layers import BUNDLED, PROJECT_FILE, LayeredConfig, LayerName, with_removed_fields
from materia_nb.loadout.report import brief
from materia_nb.loadout.topology import parse_loadout

_WHITESPACE: Final = re.compile(r"[ \t\n\r]*")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_MAX_LINE_CHARS: Final = 100
_decoder: Final = json.JSONDecoder()


@dataclass(slots=True)
class _Node:
    """A JSON value and its position in the source text.

    Attributes:
        value: the parsed value.
        start: the index of the first character.
        end: the index after the last character.
        parts: the nodes of the members of an object or of the entries of a list.
        starts: the index at which each part begins; for a member of an object, this is the start of the key.
    """

    value: JSON
    start: int
    end: int
    parts: list[_Node] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def walk(self) -> Iterator[_Node]:
        """Yield the node itself and all nodes inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()


def rewrite_json(text: str, new: JSON) -> str:
    """Serialize ``new`` in the formatting style of ``text``, and copy unchanged values verbatim.

    New values are formatted like their neighbours, with the same indentation and on one line or several lines.

    Args:
        text: the old text, which must be strict JSON.
        new: the new value.
    """
    try:
        root = _parse_node(text, _skip_whitespace(text, 0))
        new_text = text[: root.start] + _Writer(text, root).value(root, new, "") + text[root.end :]
    except RecursionError:
        new_text = "null"
    if exact_text(json.loads(new_text)) == exact_text(new):
        return new_text
    # A text that is nested too deeply or was scanned wrongly is formatted from scratch, so that the file is correct.
    return dumps(new, indent=2) + "\n"


def _skip_whitespace(text: str, position: int) -> int:
    spaces = _WHITESPACE.match(text, position)
    return spaces.end() if spaces else position


def _parse_node(text: str, at: int) -> _Node:
    """Parse the JSON value at index ``at`` and return its node."""
    opening = text[at]
    if opening not in "{[":
        value, end = _decoder.raw_decode(text, at)
        return _Node(value, at, end)
    node, names = _Node(None, at, at), []
    position = _skip_whitespace(text, at + 1)
    while text[position] not in "}]":
        node.starts.append(position)
        if opening == "{":
            name, position = _decoder.raw_decode(text, position)
            names.append(name)
            position = _skip_whitespace(text, _skip_whitespace(text, position) + 1)
        node.parts.append(_parse_node(text, position))
        position = _skip_whitespace(text, node.parts[-1].end)
        if text[position] == ",":
            position = _skip_whitespace(text, position + 1)
    values = [part.value for part in node.parts]
    node.value = dict(zip(names, values, strict=True)) if opening == "{" else values
    node.end = position + 1
    return node


def _corresponding_keys(old: Object, new: Object) -> dict[str, str | None]:
    """Return the key in ``old`` that corresponds to each key in ``new``, or None for an added key.

    A key that does not exist in ``old`` corresponds to the key at the same position if that key has been removed.
    """
    old_keys = list(old)
    old_names: dict[str, str | None] = {}
    for position, key in enumerate(new):
        before = old_keys[position] if position < len(old_keys) else key
        old_names[key] = key if key in old else before if before not in new and before in old else None
    return old_names


class _Writer:
    """Serializes JSON values in the formatting style of an existing text."""

    def __init__(self, text: str, root: _Node) -> None:
        self.text = text
        unit = _INDENT.search(text)
        self.unit = unit.group(1) if unit else "  "
        self.eol = "\r\n" if "\r\n" in text else "\n"
        self.pad = " " if '{ "' in text else ""
        self.single = "\n" not in text.strip()
        self.compact = self.single or any(node.parts and self._is_inline(node) for node in root.walk())

    def value(self, node: _Node, new: JSON, indent: str) -> str:
        """Return the text of ``new``, which replaces ``node`` on a line that is indented by ``indent``."""
        if exact_text(node.value) == exact_text(new):
            return self.text[node.start : node.end]
        if not node.parts or not new or not isinstance(new, type(node.value)):
            return self._new_value(new, indent)
        space = self.text[node.start + 1 : node.starts[0]]
        inner = space.rpartition("\n")[2] if "\n" in space else indent + self.unit
        parts = self._member_texts(node, new, inner) if isinstance(new, dict) else self._entry_texts(node, new, inner)
        if len(parts) == len(node.parts):  # the text between the parts stays
            pieces, position = list[str](), node.start
            for start, part, written in zip(node.starts, node.parts, parts, strict=True):
                pieces += [self.text[position:start], written]
                position = part.end
            return "".join([*pieces, self.text[position : node.end]])
        opening, closing = self.text[node.start], self.text[node.end - 1]
        pad = " " if self.text[node.start + 1] == " " else ""
        line = f"{opening}{pad}{', '.join(parts)}{pad}{closing}"
        if self._is_inline(node) and (self.single or ("\n" not in line and self._fits(line, indent))):
            return line
        return self._one_per_line(opening, parts, closing, inner, indent)

    def _member_texts(self, node: _Node, new: Object, inner_indent: str) -> list[str]:
        known_texts = dict(zip(node.value, zip(node.starts, node.parts, strict=True), strict=True))
        members = []
        for key, before in _corresponding_keys(node.value, new).items():
            if before is None:
                members.append(f"{dumps(key)}: {self._new_value(new[key], inner_indent, self._children_inline(node))}")
                continue
            start, part = known_texts[before]
            name = self.text[start : part.start]
            if before != key:
                name = dumps(key) + name[_decoder.raw_decode(name)[1] :]
            members.append(name + self.value(part, new[key], inner_indent))
        return members

    def _entry_texts(self, node: _Node, new: list[JSON], inner_indent: str) -> list[str]:
        known_texts = {exact_text(part.value): self.text[part.start : part.end] for part in node.parts}
        entries = []
        for position, value in enumerate(new):
            if (unchanged_text := known_texts.get(exact_text(value))) is not None:
                entries.append(unchanged_text)
            elif position < len(node.parts):
                entries.append(self.value(node.parts[position], value, inner_indent))
            else:
                entries.append(self._new_value(value, inner_indent, self._children_inline(node)))
        return entries

    def _is_inline(self, node: _Node) -> bool:
        return "\n" not in self.text[node.start : node.end]

    def _fits(self, line: str, indent: str) -> bool:
        return self.single or len(indent) + len(line) <= _MAX_LINE_CHARS

    def _one_per_line(self, first_line: str, parts: list[str], closing: str, inner_indent: str, indent: str) -> str:
        lines = f",{self.eol}".join(inner_indent + part for part in parts)
        return f"{first_line}{self.eol}{lines}{self.eol}{indent}{closing}"

    def _children_inline(self, node: _Node) -> bool:
        """Return True if new parts of a node should be on one line, like its other parts or like most of the text."""
        inline = [self._is_inline(part) for part in node.parts if part.value and isinstance(part.value, dict | list)]
        return all(inline) if inline else self.compact

    def _new_value(self, value: JSON, indent: str, inline: bool | None = None) -> str:
        """Return the text of a new value.

        Args:
            value: the value.
            indent: the indentation of the line.
            inline: True to write an object or list on one line if it fits; None follows the style of the whole text.
        """
        line = self._one_line(value)
        one_line = self.compact if inline is None else inline
        if not value or not isinstance(value, dict | list) or (one_line and self._fits(line, indent)):
            return line
        inner = indent + self.unit
        if isinstance(value, list):
            return self._one_per_line("[", [self._new_value(entry, inner) for entry in value], "]", inner, indent)
        members = [f"{dumps(key)}: {self._new_value(entry, inner)}" for key, entry in value.items()]
        return self._one_per_line("{", members, "}", inner, indent)

    def _one_line(self, value: JSON) -> str:
        if is_object(value) and value:
            members = ", ".join(f"{dumps(key)}: {self._one_line(entry)}" for key, entry in value.items())
            return f"{{{self.pad}{members}{self.pad}}}"
        return f"[{', '.join(map(self._one_line, value))}]" if isinstance(value, list) else dumps(value)


# -- designs and their files -------------------------------------------------------------------

_EDITABLE_LAYERS: Final = ("given", "environment", "project")
"""The layers whose files can be edited. A loadout from another layer is saved as a copy in the project file."""


def open_design(config: LayeredConfig, name: str, project: Path) -> Design:
    """Open an existing loadout as a design.

    Args:
        config: the config, which must be up to date with its files.
        name: the name of the loadout.
        project: the project directory.

    Raises:
        MateriaError: the loadout is not an object, or its file has changed since ``config`` was read.
    """
    document = config.document["loadouts"][name]
    if not is_object(document):
        message = f"The loadout is {brief(document)}, not an object."
        raise design_error(message, name, "correct the file, or start a new design")
    layer = config.origin("loadout", name)
    below = config.definition_below("loadout", name, layer.name)
    if layer.path is None:
        home = NOTEBOOK
    elif layer.name in _EDITABLE_LAYERS:
        home = _config_home(layer.path)
        written_loadout = as_object(as_object(_read(layer.path, home.text_read or "{}")).get("loadouts")).get(name)
        if exact_text(written_loadout) != exact_text(as_object(layer.document.get("loadouts")).get(name)):
            raise _changed_on_disk(layer.path)
    else:
        home = _config_home(project / PROJECT_FILE, f"saved as a copy, since {layer.name} loadouts are read-only")
        below = document
    at: LayerName = layer.name if layer.path is None or layer.name in _EDITABLE_LAYERS else "project"
    return Design(name, document, config.document, replace(home, below=below, materia=_materia_below(config, at)))


def _materia_below(config: LayeredConfig, layer: LayerName) -> Object:
    """Return the materia definitions below ``layer``, or all materia definitions if there is no such layer."""
    known_materia = as_object(config.document.get("materia"))
    return {id_: raw for id_ in known_materia if (raw := config.definition_below("materia", id_, layer))}


def new_design(config: LayeredConfig, name: str, project: Path) -> Design:
    """Return a design for a new loadout, which will be saved in the project file.

    Raises:
        MateriaError: a loadout of this name already exists.
    """
    if name in config.loadout_names:
        advice = "choose another name, or edit the existing loadout"
        raise MateriaError(f"The loadout {name!r} already exists.", hint=advice, kind=DESIGN_KIND)
    home = replace(_config_home(project / PROJECT_FILE), materia=_materia_below(config, "project"))
    return Design(name, {}, config.document, home)


def _config_home(path: Path, reason: str = "") -> Home:
    """Return the :class:`Home` of a design that is saved in a config file, which need not exist yet.

    Args:
        path: the path of the config file.
        reason: a note that explains the choice of the file to the user; "" if no explanation is needed.

    Raises:
        MateriaError: the file name has an unknown extension, or the file exists but cannot be read.
    """
    if path.suffix.lower() not in EXTENSIONS:
        message = "The name of a config file has an unknown extension."
        raise design_error(message, str(path), f"use {join_with_or(EXTENSIONS)}")
    return Home(path, config_text(path) if path.exists() else None, reason)


def save_design(
    design: Design,
    to: str | Path | None = None,
    *,
    copied_materia: Mapping[str, Object] = MappingProxyType({}),
    anyway: bool = False,
) -> Path:
    """Save a design in its own file, or save a copy in another file. Return the path of the file.

    Args:
        design: the design.
        to: the path of another file for a copy, whose extension must be ``.json`` if the file is new; None saves the
            design in its own file.
        copied_materia: the definitions of the materia that the copy needs, by id. Definitions that are identical to bundled
            definitions are not written.
        anyway: True to save a loadout that has problems or is locked, and to replace loadouts and materia of the same name in
            another file.

    Raises:
        MateriaError: nothing has been saved, because ``anyway`` is required, the file has changed since it was read, the
            file is not strict JSON, or the file cannot be written.
    """
    reject_problems(design, anyway=anyway)
    path = design.home.path if to is None else expand_path(to)
    if path is None:
        raise MateriaError("The design has no file.", hint="choose a file name that ends with .json", kind=DESIGN_KIND)
    is_copy = path != design.home.path
    if not (anyway or is_copy):
        reject_locked(design)
    home = _config_home(path) if is_copy else design.home
    current_text = config_text(path) if path.exists() else None
    if current_text != home.text_read:
        raise _changed_on_disk(path)
    bundled = as_object(as_object(_read(BUNDLED, config_text(BUNDLED))).get("materia"))
    below = bundled if is_copy else design.home.materia
    materia = (design.changed_materia | dict(copied_materia) if is_copy else design.changed_materia, below)
    text = _updated_file_text(path, current_text, design, materia, replace_existing=anyway or not is_copy)
    write_text(path, text)
    if not is_copy:
        design.mark_saved(replace(home, text_read=text, reason=""))
    return path


def add_loadout(path: Path, name: str, loadout: Object, materia: Object) -> None:
    """Add a loadout and its materia to a config file, which is created if it does not exist.

    Materia that the file already defines are not changed.

    Raises:
        MateriaError: the file cannot be read or written, is not a config in strict JSON, or already contains a loadout
            of this name.
    """
    text = config_text(path) if path.exists() else None
    document = {"activeLoadout": name} if text is None else _read_strictly(path, text)
    document = _with_loadout(document, path, {name: loadout}, replace_existing=False)
    if materia:
        document["materia"] = {**materia, **as_object(document.get("materia"))}
    write_text(path, dumps(document, indent=2) + "\n" if text is None else rewrite_json(text, document))


def materia_without_file(config: LayeredConfig, design: Design) -> list[str]:
    """Return the ids of the materia that a design uses but no file defines; other notebooks do not have them."""
    used_ids = {as_object(socket).get("materia") for socket in as_object(design.document.get("sockets")).values()}
    known_materia = as_object(config.document.get("materia"))
    return [name for name in known_materia if name in used_ids and config.origin("materia", name).path is None]


def reject_problems(design: Design, *, anyway: bool) -> None:
    """Raise MateriaError if the loadout has problems, unless ``anyway`` is True."""
    problems = design.report.problems
    if problems and not anyway:
        raise MateriaError(
            f"The loadout has {counted(len(problems), 'problem')}: {problems[0].message}.",
            where=problems[0].source,
            hint=f"{problems[0].hint}; or save anyway to finish the loadout later",
            kind="refused",
        )


def reject_locked(design: Design) -> None:
    """Raise MateriaError (``locked``) if the loadout is locked. Changing ``lockState`` unlocks the loadout."""
    if design.document.get("lockState") == "locked":
        message = f"The loadout {design.name} is locked to prevent accidental changes."
        advice = "save a copy in another file, or save anyway in the designer"
        raise MateriaError(message, hint=advice, kind="locked")


def _updated_file_text(
    path: Path,
    text: str | None,
    design: Design,
    materia: tuple[Mapping[str, Object | None], Object],
    *,
    replace_existing: bool,
) -> str:
    """Return the text of a config file after a design has been saved in the file.

    Args:
        path: the path of the file.
        text: the old text; None if the file is new.
        design: the design.
        materia: the definitions of changed materia, and the definitions in the lower config layers, both by id.
        replace_existing: True to replace a loadout or materia of the same name.

    Raises:
        MateriaError: the file is not a config in strict JSON, or contains a definition that must not be replaced.
    """
    if EXTENSIONS[path.suffix.lower()] == "yaml":
        hint = f"save under a name that ends with .json, such as {path.with_suffix('.json').name}"
        raise design_error("A YAML file can be read, but not saved.", str(path), hint)
    if text is None:
        document = {"activeLoadout": design.name, "loadouts": _saved_form(design)}
        return dumps(_with_materia(document, *materia), indent=2) + "\n"
    document = _with_loadout(_read_strictly(path, text), path, _saved_form(design), replace_existing=replace_existing)
    changed_document = _with_materia(document, *materia)
    before, after = as_object(document.get("materia")), as_object(changed_document.get("materia"))
    if not replace_existing and (
        conflicts := [name for name in before if exact_text(before[name]) != exact_text(after.get(name))]
    ):
        advice = "choose another file, or save anyway to replace the definition"
        raise design_error(f"The file defines the materia {conflicts[0]!r} differently.", str(path), advice)
    return rewrite_json(text, changed_document)


def _read(path: Path, text: str) -> JSON:
    return read_text(text, EXTENSIONS[path.suffix.lower()], where=str(path))


def _read_strictly(path: Path, text: str) -> JSON:
    """Parse a file that will be overwritten; raise MateriaError if it is invalid or has comments, which would be lost."""
    try:
        return read_text(text, "json", where=str(path))
    except MateriaError as error:
        _read(path, text)  # raises the actual error of a file that has no comments, or worse faults
        message = "The file has comments or trailing commas, which would be lost."
        advice = "save under a name that ends with .json, or apply the displayed changes to the file by hand"
        raise design_error(message, str(path), advice) from error


def _with_loadout(document: JSON, path: Path, own_loadout: Object, *, replace_existing: bool) -> Object:
    """Return a copy of a config with a loadout added or replaced.

    Args:
        document: the config.
        path: the path of the config file, for errors.
        own_loadout: an object with the loadout as its only member.
        replace_existing: True to replace a loadout of the same name.

    Raises:
        MateriaError: the document is not a config, or contains a loadout that must not be replaced.
    """
    loadouts, materia = (as_object(document).get(group) for group in ("loadouts", "materia"))
    if not is_object(document) or not (isinstance(loadouts, dict | None) and isinstance(materia, dict | None)):
        message = "The file is not a config: loadouts and materia must be objects."
        raise design_error(message, str(path), "choose another file")
    (name,) = own_loadout
    if name in as_object(loadouts) and not replace_existing:
        advice = "choose another file, load the file to edit its loadout, or save anyway to replace the loadout"
        raise design_error(f"The file already has a loadout {name!r}.", str(path), advice)
    return {**document, "loadouts": {**as_object(loadouts), **own_loadout}}


def _saved_form(design: Design) -> Object:
    """Return an object whose only member is the loadout of a design, with explicit advances (R74)."""
    facts = parse_loadout(design.name, design.document, design.definitions)
    return {design.name: with_removed_fields(with_advances(facts), design.home.below)}


def _with_materia(document: Object, changed_materia: Mapping[str, Object | None], below: Object) -> Object:
    """Return a copy of a config with changed materia definitions.

    A materia or field is omitted if the lower layers already define it with the same value.
    """
    if not changed_materia:
        return document
    definitions = dict(as_object(document.get("materia")))
    for id_, raw in changed_materia.items():
        lower = as_object(below.get(id_))
        own_fields = None if raw is None else _fields_to_save(raw, lower, as_object(definitions.get(id_)))
        if own_fields or (raw is None and lower):
            definitions[id_] = own_fields
        else:
            definitions.pop(id_, None)
    if not definitions and "materia" not in document:
        return document
    return {**document, "materia": definitions}


def _fields_to_save(raw: Object, below: Object, before: Object) -> Object:
    """Return the part of a materia definition that a layer must contain so that the merged definition is ``raw``.

    Args:
        raw: the complete definition.
        below: the definition in the lower layers (R33).
        before: the previous definition in this layer, whose fields keep their order.
    """
    ordered_fields = {key: raw.get(key) for key in before if key in raw or key in below}
    changed_fields = {
        key: value for key, value in raw.items() if key not in below or exact_text(below[key]) != exact_text(value)
    }
    removed_fields = dict.fromkeys(key for key in below if key not in raw)
    return {**ordered_fields, **changed_fields, **removed_fields}


def _changed_on_disk(path: Path) -> MateriaError:
    return MateriaError(
        "The file changed on disk after it was read, so it was not overwritten.",
        where=str(path),
        hint="reload the loadout to edit its current version, or save under another name",
        kind="changed",
    )

"""Saving of designs into config files, atomically and with minimal changes of the text.

Unchanged parts of the JSON or YAML text stay as they were written.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from materia_nb.errors import MateriaError, counted
from materia_nb.jsonvalue import JSON, Object, as_object, is_object
from materia_nb.loadout.config_files import (
    ENDINGS,
    ParseError,
    config_text,
    dumps,
    expanded,
    parse_yaml,
    read_text,
    write_text,
)
from materia_nb.loadout.design.document import DESIGN_KIND, design_error, exact
from materia_nb.loadout.design.draft import NOTEBOOK, Design, Home
from materia_nb.loadout.layers import BUNDLED, PROJECT_FILE, LayeredConfig, LayerName, whole_over
from materia_nb.loadout.report import brief

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_UNIT: Final = re.compile(r"\n([ \t]+)\S")
_LONGEST_LINE: Final = 100
_decoder: Final = json.JSONDecoder()


@dataclass(slots=True)
class _Node:
    """A value in a JSON text, with its position and inner values. ``keys`` are the positions of member names."""

    value: JSON
    start: int
    end: int
    parts: list[_Node] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def walk(self) -> Iterator[_Node]:
        """Yield the node and all nodes inside it."""
        yield self
        for part in self.parts:
            yield from part.walk()


def rewrite_json(text: str, new: JSON) -> str:
    """Return a strict JSON ``text`` changed to the value ``new``; unchanged values stay verbatim.

    New parts follow the style of their neighbours: the indentation, and one line or several.
    """
    try:
        root = _scan(text, _skip(text, 0))
        rewritten = text[: root.start] + _Writer(text, root).value(root, new, "") + text[root.end :]
    except RecursionError:
        rewritten = "null"
    if exact(json.loads(rewritten)) == exact(new):
        return rewritten
    # A text that is nested too deeply or was scanned wrongly is formatted from scratch, so that the file is correct.
    return dumps(new, indent=2) + "\n"


def _skip(text: str, at: int) -> int:
    spaces = _SPACE.match(text, at)
    return spaces.end() if spaces else at


def _scan(text: str, at: int) -> _Node:
    """Return the node of the value at index ``at``; the text must be JSON."""
    opening = text[at]
    if opening not in "{[":
        value, end = _decoder.raw_decode(text, at)
        return _Node(value, at, end)
    parts: list[_Node] = []
    keys: list[int] = []
    names: list[str] = []
    closing = "}" if opening == "{" else "]"
    position = _skip(text, at + 1)
    while text[position] != closing:
        if opening == "{":
            keys.append(position)
            name, position = _decoder.raw_decode(text, position)
            names.append(name)
            position = _skip(text, _skip(text, position) + 1)
        parts.append(_scan(text, position))
        position = _skip(text, parts[-1].end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    values = [part.value for part in parts]
    value = dict(zip(names, values, strict=True)) if opening == "{" else values
    return _Node(value, at, position + 1, parts, keys)


def _alignment(old: list[JSON], new: list[JSON]) -> list[tuple[int, int, int, int]]:
    """Return the bounds of paired slices of two lists, in order: equal slices, or a slice and its replacement."""
    matcher = SequenceMatcher(None, [exact(entry) for entry in old], [exact(entry) for entry in new], autojunk=False)
    return [(first, last, start, end) for _, first, last, start, end in matcher.get_opcodes()]


def _old_names(old: Object, new: Object) -> dict[str, str | None]:
    """Return for each key of ``new`` the same key of ``old``, else the renamed key at its position, else None."""
    old_keys = list(old)
    old_names: dict[str, str | None] = {}
    for position, key in enumerate(new):
        before = old_keys[position] if position < len(old_keys) else key
        old_names[key] = key if key in old else before if before not in new and before in old else None
    return old_names


class _Writer:
    """Writes values in the style of a text."""

    def __init__(self, text: str, root: _Node) -> None:
        self.text = text
        unit = _UNIT.search(text)
        self.unit = unit.group(1) if unit else "  "
        self.eol = "\r\n" if "\r\n" in text else "\n"
        self.padded = '{ "' in text
        self.single = "\n" not in text.strip()
        self.compact = self.single or any(node.parts and self._inline(node) for node in root.walk())

    def value(self, node: _Node, new: JSON, indent: str) -> str:
        """Return the text of ``new`` that replaces ``node``, for a line indented by ``indent``."""
        if exact(node.value) == exact(new):
            return self.text[node.start : node.end]
        if node.parts and new and is_object(node.value) and is_object(new):
            return self._object(node, node.value, new, indent)
        if node.parts and new and isinstance(node.value, list) and isinstance(new, list):
            return self._list(node, new, indent)
        return self._fresh(new, indent)

    # -- objects ------------------------------------------------------------------------

    def _object(self, node: _Node, old: Object, new: Object, indent: str) -> str:
        inner, inline = self._inner(node, indent), self._children_inline(node)
        known = dict(zip(old, zip(node.keys, node.parts, strict=True), strict=True))
        names = _old_names(old, new)
        members = []
        for key, value in new.items():
            before = names[key]
            if before is None:
                members.append(f"{dumps(key)}: {self._fresh(value, inner, inline)}")
                continue
            start, part = known[before]
            name = self.text[start : part.start]
            if before != key:
                name = dumps(key) + name[_decoder.raw_decode(name)[1] :]
            members.append(name + self.value(part, value, inner))
        if list(old) == list(names.values()):
            return self._in_place(node, node.keys, members)
        return self._laid_out(node, members, indent)

    # -- lists ----------------------------------------------------------------------------

    def _list(self, node: _Node, new: list[JSON], indent: str) -> str:
        inner, inline = self._inner(node, indent), self._children_inline(node)
        old = [part.value for part in node.parts]
        known = {exact(part.value): self.text[part.start : part.end] for part in node.parts}
        entries = []
        for first, last, start, end in _alignment(old, new):
            for position, value in enumerate(new[start:end], first):
                if (same := known.get(exact(value))) is not None:
                    entries.append(same)
                elif position < last:
                    entries.append(self.value(node.parts[position], value, inner))
                else:
                    entries.append(self._fresh(value, inner, inline))
        if len(old) == len(new):
            return self._in_place(node, [part.start for part in node.parts], entries)
        return self._laid_out(node, entries, indent)

    # -- formatting ------------------------------------------------------------------------

    def _inline(self, node: _Node) -> bool:
        return "\n" not in self.text[node.start : node.end]

    def _inner(self, node: _Node, indent: str) -> str:
        """Return the indentation of the parts of a node."""
        first = (node.keys or [part.start for part in node.parts])[0]
        space = self.text[node.start + 1 : first]
        return space.rpartition("\n")[2] if "\n" in space else indent + self.unit

    def _in_place(self, node: _Node, starts: list[int], parts: list[str]) -> str:
        """Return the text with replaced parts and unchanged text between them."""
        pieces, following = [self.text[node.start : starts[0]]], [*starts[1:], node.end]
        for piece, part, after in zip(parts, node.parts, following, strict=True):
            pieces += [piece, self.text[part.end : after]]
        return "".join(pieces)

    def _laid_out(self, node: _Node, parts: list[str], indent: str) -> str:
        """Return the parts on one line if the node was on one line and they fit, else one part per line."""
        opening, closing = self.text[node.start], self.text[node.end - 1]
        if self._inline(node):
            pad = " " if self.text[node.start + 1] == " " else ""
            line = f"{opening}{pad}{', '.join(parts)}{pad}{closing}"
            if self.single or (len(indent) + len(line) <= _LONGEST_LINE and "\n" not in line):
                return line
        inner = self._inner(node, indent)
        lines = f",{self.eol}".join(inner + part for part in parts)
        return f"{opening}{self.eol}{lines}{self.eol}{indent}{closing}"

    def _children_inline(self, node: _Node) -> bool | None:
        """Return True if each object and list in a node is on one line; None if the node contains neither."""
        inline = [self._inline(part) for part in node.parts if part.value and isinstance(part.value, dict | list)]
        return all(inline) if inline else None

    def _fresh(self, value: JSON, indent: str, inline: bool | None = None) -> str:
        """Return the text of a new value, on one line if it fits and ``inline`` or the text's style requires it."""
        line = self._line(value)
        if not value or not isinstance(value, dict | list):
            return line
        fits = self.single or len(indent) + len(line) <= _LONGEST_LINE
        if fits and (self.compact if inline is None else inline):
            return line
        inner = indent + self.unit
        if isinstance(value, dict):
            parts = [f"{dumps(key)}: {self._fresh(entry, inner)}" for key, entry in value.items()]
        else:
            parts = [self._fresh(entry, inner) for entry in value]
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        lines = f",{self.eol}".join(inner + entry for entry in parts)
        return f"{opening}{self.eol}{lines}{self.eol}{indent}{closing}"

    def _line(self, value: JSON) -> str:
        if is_object(value) and value:
            pad = " " if self.padded else ""
            return f"{{{pad}{', '.join(f'{dumps(key)}: {self._line(entry)}' for key, entry in value.items())}{pad}}}"
        return f"[{', '.join(map(self._line, value))}]" if isinstance(value, list) else dumps(value)


# -- YAML ------------------------------------------------------------------------------------

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)


def _rewrite_yaml(text: str, new: JSON, where: str) -> str:
    """Return the YAML ``text`` changed to the value ``new``.

    Raises:
        MateriaError: the YAML cannot be changed in place.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes, yaml.width = True, 10_000
    _, sequence, offset = load_yaml_guess_indent(text)
    if sequence is not None:
        yaml.indent(mapping=2, sequence=sequence, offset=offset or 0)
    document = yaml.load(text)
    _change_in_place(document, new)
    out = io.StringIO()
    yaml.dump(document, out)
    rewritten = out.getvalue()
    if not _says(rewritten, new):
        message = "the YAML is written in a way that cannot be changed in place, with anchors or unusual comments"
        raise design_error(message, where, "save under another name, or put the shown changes in by hand")
    return rewritten


def _says(text: str, value: JSON) -> bool:
    try:
        return exact(parse_yaml(text)) == exact(value)
    except ParseError:
        return False


def _change_in_place(document: Any, new: JSON) -> None:
    """Change a YAML document to the value ``new`` by small operations that keep the format of unchanged parts."""
    import jsonpatch

    operations = jsonpatch.make_patch(document, new).patch
    fresh = [{**step, "value": _fresh(step["value"])} if "value" in step else step for step in operations]
    jsonpatch.apply_patch(document, fresh, in_place=True)
    _set_order(document, new)


def _set_order(document: Any, new: JSON) -> None:
    """Sort the keys of all mappings as in ``new``."""
    if is_object(new) and list(document) != list(new):
        for key in new:
            document.move_to_end(key)
    entries: Any = new.items() if is_object(new) else enumerate(new)
    for key, entry in entries:
        if isinstance(entry, dict | list):
            _set_order(document[key], entry)


def _fresh(value: JSON) -> Any:
    """Return a value to insert; an object of scalars is written on one line, so that surrounding comments stay."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, list):
        return CommentedSeq([_fresh(entry) for entry in value])
    if not is_object(value):
        return value
    mapping = CommentedMap({key: _fresh(entry) for key, entry in value.items()})
    if not any(isinstance(entry, dict | list) for entry in value.values()):
        mapping.fa.set_flow_style()
    return mapping


_WRITTEN: Final = ("given", "environment", "project")
"""The layers whose files a person edits; loadouts of other layers are saved as a copy in the project's file."""
_MOST_COMMENTS: Final = 5


def open_design(config: LayeredConfig, name: str, project: Path) -> Design:
    """Return a design of a loadout of ``config``, which has just been read.

    Raises:
        MateriaError: the loadout is not an object, or its file was changed after ``config`` was read.
    """
    document = config.document["loadouts"][name]
    if not is_object(document):
        message = f"The loadout is {brief(document)}, not an object."
        raise design_error(message, name, "correct it in its file, or begin a new one")
    layer = config.origin("loadout", name)
    below = config.below("loadout", name, layer.name)
    if layer.path is None:
        home = NOTEBOOK
    elif layer.name in _WRITTEN:
        home = _home_at(layer.path)
        written = as_object(as_object(_read(layer.path, home.seen or "{}")).get("loadouts")).get(name)
        if exact(written) != exact(as_object(layer.document.get("loadouts")).get(name)):
            raise _changed(layer.path)
    else:
        home = _home_at(project / PROJECT_FILE, f"a copy, since {layer.name} loadouts are not written to")
        below = document
    at: LayerName = layer.name if layer.path is None or layer.name in _WRITTEN else "project"
    return Design(name, document, config.document, replace(home, below=below, materia=_below(config, at)))


def _below(config: LayeredConfig, layer: LayerName) -> Object:
    """Return the materia as defined without a layer and the layers above; all materia if the layer does not exist."""
    known = as_object(config.document.get("materia"))
    return {id_: raw for id_ in known if (raw := config.below("materia", id_, layer))}


def new_design(config: LayeredConfig, name: str, project: Path) -> Design:
    """Return a design of an empty loadout for the project's file; raises MateriaError if the name is taken."""
    if name in config.loadout_names:
        raise MateriaError(
            f"There is a loadout {name!r} already.",
            hint="edit that one, or choose another name",
            kind=DESIGN_KIND,
        )
    home = replace(_home_at(project / PROJECT_FILE), materia=_below(config, "project"))
    return Design(name, {}, config.document, home)


def _home_at(path: Path, why: str = "") -> Home:
    """Return the home for a file, existing or not; raises MateriaError for a wrong ending or an unreadable file."""
    if path.suffix.lower() not in ENDINGS:
        raise design_error(f"a config file ends with one of {', '.join(ENDINGS)}", str(path), "choose such a name")
    return Home(path, config_text(path) if path.exists() else None, why)


def save_design(
    design: Design,
    to: str | Path | None = None,
    *,
    used: Mapping[str, Object] = MappingProxyType({}),
    anyway: bool = False,
) -> Path:
    """Save a design into its file, or add a copy to another file.

    Args:
        design: the design to save; after saving into its own file, :attr:`Design.began` is the saved loadout.
        to: another file for a copy; the name of a new file must end with ``.json``.
        used: definitions of the materia that a copy needs, by id; unchanged bundled definitions are not written.
        anyway: save despite problems, allow the loss of YAML comments next to changed parts, and replace a loadout
            or materia of the same name in another file.

    Raises:
        MateriaError: saving needs ``anyway``; the file was changed after it was read; comments would be lost; or the
            file cannot be written. In each case, nothing was written.
    """
    refuse_problems(design, anyway=anyway)
    path = design.home.path if to is None else expanded(to)
    if path is None:
        raise MateriaError("This design has no file.", hint="name one that ends with .json", kind=DESIGN_KIND)
    copied = path != design.home.path
    home = _home_at(path) if copied else design.home
    text_now = config_text(path) if path.exists() else None
    if text_now != home.seen:
        raise _changed(path)
    bundled = as_object(as_object(_read(BUNDLED, config_text(BUNDLED))).get("materia"))
    below = bundled if copied else design.home.materia
    materia = (design.changed_materia | dict(used) if copied else design.changed_materia, below)
    text = _text_with(path, text_now, design, materia, replace_existing=anyway or not copied, lose_comments=anyway)
    write_text(path, text)
    if not copied:
        design.saved(replace(home, seen=text, why=""))
    return path


def left_behind(config: LayeredConfig, design: Design) -> list[str]:
    """Return the ids of the materia of a saved design that no file defines, so that other notebooks lack them."""
    used = {as_object(socket).get("materia") for socket in as_object(design.document.get("sockets")).values()}
    known = as_object(config.document.get("materia"))
    return [name for name in known if name in used and config.origin("materia", name).path is None]


def refuse_problems(design: Design, *, anyway: bool) -> None:
    """Raise MateriaError if the loadout has problems and ``anyway`` is not set."""
    problems = design.report.problems
    if problems and not anyway:
        raise MateriaError(
            f"The loadout has {counted(len(problems), 'problem')}: {problems[0].message}.",
            where=problems[0].source,
            hint=f"{problems[0].hint}; or save it anyway and go on later",
            kind="refused",
        )


def _text_with(
    path: Path,
    text: str | None,
    design: Design,
    materia: tuple[Mapping[str, Object | None], Object],
    *,
    replace_existing: bool,
    lose_comments: bool,
) -> str:
    """Return the new text of the file; ``materia`` are the definitions to write and those of the lower layers."""
    format_ = ENDINGS[path.suffix.lower()]
    if text is None:
        if format_ == "yaml":
            raise design_error(
                "New config files are written as JSON.", str(path), f"choose {path.with_suffix('.json').name}"
            )
        return dumps(_with_materia({"loadouts": _own(design)}, *materia), indent=2) + "\n"
    document = _with_loadout(_read_strictly(path, text), path, design, replace_existing=replace_existing)
    changed = _with_materia(document, *materia)
    before, after = as_object(document.get("materia")), as_object(changed.get("materia"))
    if not replace_existing and (clash := [name for name in before if exact(before[name]) != exact(after.get(name))]):
        raise design_error(
            f"The file defines the materia {clash[0]!r} differently.",
            str(path),
            "choose another file, or save anyway to replace it",
        )
    if format_ == "yaml":
        rewritten = _rewrite_yaml(text, changed, str(path))
        lost = list((Counter(_COMMENT.findall(text)) - Counter(_COMMENT.findall(rewritten))).elements())
        if lost and not lose_comments:
            raise MateriaError(
                f"{counted(len(lost), 'comment')} would be lost: {'; '.join(lost[:_MOST_COMMENTS])}",
                where=str(path),
                hint="save anyway if that is right, or save under another name",
                kind="comments",
            )
        return rewritten
    return rewrite_json(text, changed)


def _read(path: Path, text: str) -> JSON:
    return read_text(text, ENDINGS[path.suffix.lower()], where=str(path))


def _read_strictly(path: Path, text: str) -> JSON:
    """Return the document of a file before it is rewritten; raises MateriaError if JSON comments would be lost."""
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


def _with_loadout(document: JSON, path: Path, design: Design, *, replace_existing: bool) -> Object:
    loadouts = as_object(document).get("loadouts", {})
    if not is_object(document) or not is_object(loadouts):
        raise design_error("The file holds no config with loadouts.", str(path), "choose another file")
    if design.name in loadouts and not replace_existing:
        raise design_error(
            f"The file has a loadout {design.name!r} already.",
            str(path),
            "choose another file, load that one to edit it, or save anyway to replace it",
        )
    return {**document, "loadouts": {**loadouts, **_own(design)}}


def _own(design: Design) -> Object:
    return {design.name: whole_over(design.document, design.home.below)}


def _with_materia(document: Object, changed: Mapping[str, Object | None], below: Object) -> Object:
    """Return the document with the changed materia, each without the fields that the lower layers define equally."""
    if not changed:
        return document
    definitions = dict(as_object(document.get("materia")))
    for id_, raw in changed.items():
        lower = as_object(below.get(id_))
        own = None if raw is None else _materia_over(raw, lower, as_object(definitions.get(id_)))
        if own or (raw is None and lower):
            definitions[id_] = own
        else:
            definitions.pop(id_, None)
    if not definitions and "materia" not in document:
        return document
    return {**document, "materia": definitions}


def _materia_over(raw: Object, below: Object, before: Object) -> Object:
    """Return the definition that a layer needs so that a materia becomes ``raw``; old fields keep their order.

    Args:
        raw: the complete definition.
        below: its definition in the lower layers (R33).
        before: its previous definition in this layer.
    """
    repeated = {key: raw.get(key) for key in before if key in raw or key in below}
    differs = {key: value for key, value in raw.items() if key not in below or exact(below[key]) != exact(value)}
    removed = dict.fromkeys(key for key in below if key not in raw)
    return {**repeated, **differs, **removed}


def _changed(path: Path) -> MateriaError:
    return MateriaError(
        "The file was changed on disk since it was read, so it is not written.",
        where=str(path),
        hint="reload to edit what is there now, or save under another name",
        kind="changed",
    )

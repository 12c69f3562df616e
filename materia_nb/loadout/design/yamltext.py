"""Writing a changed value into a YAML text, with its comments, quotes and order kept as far as YAML tools can."""

from __future__ import annotations

import io
import re
from typing import Any, Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.design.change import refused, written
from materia_nb.loadout.design.jsontext import alignment, old_names
from materia_nb.loadout.facts import is_object
from materia_nb.loadout.formats import ParseError, parse_yaml

_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)


def rewrite_yaml(text: str, new: JSON, where: str) -> str:
    """Return the YAML ``text`` changed to say ``new``.

    Raises:
        MateriaError: the text is written in a way that cannot be changed in place.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.util import load_yaml_guess_indent

    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes, yaml.width = True, 10_000
    _, sequence, offset = load_yaml_guess_indent(text)
    if sequence is not None:
        yaml.indent(mapping=2, sequence=sequence, offset=offset or 0)
    document = yaml.load(text)
    _merge(document, new)
    out = io.StringIO()
    yaml.dump(document, out)
    made = out.getvalue()
    if not _says(made, new):
        raise refused(
            "the YAML is written in a way that cannot be changed in place, with anchors or unusual comments",
            where,
            "save under another name, or put the shown changes in by hand",
        )
    return made


def _says(text: str, value: JSON) -> bool:
    try:
        return written(parse_yaml(text)) == written(value)
    except ParseError:
        return False


def lost_comments(before: str, after: str) -> list[str]:
    """Return the comments of ``before`` that ``after`` has no more."""
    left = _COMMENT.findall(after)
    lost = []
    for comment in _COMMENT.findall(before):
        if comment in left:
            left.remove(comment)
        else:
            lost.append(comment)
    return lost


def _merge(old: Any, new: JSON) -> None:
    """Change the mapping or sequence ``old`` in place until it says ``new``."""
    if is_object(new):
        _merge_mapping(old, new)
    else:
        _merge_sequence(old, new)


def _merge_mapping(old: Any, new: dict[str, JSON]) -> None:
    for key, before in old_names(dict(old), new).items():
        if before is not None and before != key:
            old.insert(list(old).index(before), key, old.pop(before))
    for key in [key for key in old if key not in new]:
        del old[key]
    for place, (key, value) in enumerate(new.items()):
        if key in old:
            _put(old, key, value)
        else:
            old.insert(place, key, _fresh(value))
    if list(old) != list(new):
        for key in new:
            old.move_to_end(key)


def _merge_sequence(old: Any, new: list[JSON]) -> None:
    # From the end, so that the places before stay what they were.
    for first, last, start, end in reversed(alignment(list(old), new)):
        both = min(last - first, end - start)
        for place in reversed(range(first + both, last)):
            del old[place]
        for place, value in enumerate(new[start + both : end], first + both):
            old.insert(place, _fresh(value))
        for place, value in enumerate(new[start : start + both], first):
            _put(old, place, value)


def _put(owner: Any, key: Any, new: JSON) -> None:
    """Set one value; a scalar that stays is left alone, since it knows how it was written."""
    old = owner[key]
    if any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, list)):
        _merge(old, new)
    elif written(old) != written(new):
        owner[key] = _fresh(new)


def _fresh(value: JSON) -> Any:
    """Make a value to be put in; an object of plain values goes on one line, where comments around it do no harm."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq

    if isinstance(value, list):
        return CommentedSeq([_fresh(one) for one in value])
    if not is_object(value):
        return value
    made = CommentedMap({key: _fresh(one) for key, one in value.items()})
    if not any(isinstance(one, dict | list) for one in value.values()):
        made.fa.set_flow_style()
    return made

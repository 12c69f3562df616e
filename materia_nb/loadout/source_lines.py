"""Where in the text of a config something stands that a finding names: its line."""

from __future__ import annotations

import re
from typing import Any, Final

from materia_nb.loadout.formats import MOST_YAML, blanked

_PLACE: Final = re.compile(r"\[(\d+)\]")


def line_of(text: str, source: str, loadout: str | None = None) -> tuple[int, int]:
    """Return the line of what a finding names, from 1, or of what it would be in; and how much of its path is not there.

    Args:
        text: a config in JSON (with comments or without) or YAML, that can be read.
        source: the path of the finding, such as ``Socket-1.edges[0].to``.
        loadout: the loadout that the path begins in; None for the config.
    """
    if len(text) > MOST_YAML:
        return 1, len(source)
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    as_json = text.lstrip().startswith(("{", "/"))
    try:  # JSON is YAML, but for comments and tabs
        root = YAML(pure=True).compose(blanked(text).replace("\t", " ") if as_json else text)
    except YAMLError:
        return 1, len(source)
    inside = [] if loadout is None else [f"loadouts.{loadout}.sockets.", f"loadouts.{loadout}."]
    walks = [_walk(root, where + source) for where in (*inside, "")]
    left, line = min((min(left, len(source)), -line) for line, left in walks)
    return -line, left


def _walk(node: Any, path: str) -> tuple[int, int]:
    """Follow a path as far as it goes; the line reached, and how much of the path is left."""
    line = 1
    while node is not None and path:
        if node.id == "sequence":
            place = _PLACE.match(path)
            if place is None or int(place[1]) >= len(node.value):
                break
            node, path = node.value[int(place[1])], path[place.end() :]
            line = node.start_mark.line + 1
        else:
            key, node, path = _longest(node, path)
            if key is None:
                break
            line = key.start_mark.line + 1
        path = path.removeprefix(".")
    return line, len(path)


def _longest(node: Any, path: str) -> tuple[Any, Any, str]:
    """Return the member that a path begins with; of several the one with the longest name, which may have dots in it."""
    members = node.value if node.id == "mapping" else ()
    fits = [(key, value) for key, value in members if re.match(re.escape(key.value) + r"(?:[.\[]|$)", path)]
    if not fits:
        return None, None, path
    key, value = max(fits, key=lambda one: len(one[0].value))
    return key, value, path[len(key.value) :]

"""What the pure packages say of many inputs, beside what was stored of it: as in ``shown_texts``, but each line once."""

from __future__ import annotations

import copy
import difflib
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from materia_nb.loadout import read_text
from shown_texts import FOLDER

ROOT = Path(__file__).parents[2]
_SECTION = re.compile(r"^### `([a-z-]+)`\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"```yaml\n# (bad|good)\n(.*?)```", re.DOTALL)
WRONG = ("", "x y", 0, -1, 1.5, True, None, [], {}, ["x"], {"x": 1}, "state.x", "end", "always", "satisfied")
_SHOWN = 20


def check_record(name: str, lines: Iterable[str]) -> None:
    """Compare lines with those that are kept, each once with how often it is said, in the order of the first time."""
    counted = Counter(line.replace("\n", "\\n") for line in lines)
    now = [f"{count} {line}" for line, count in counted.items()]
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MATERIA_SHOWN") == "write":
        path.write_text("".join(f"{line}\n" for line in now), encoding="utf-8")
    kept = path.read_text(encoding="utf-8").splitlines()
    if kept != now:  # a diff of all would take pytest minutes
        changed = [line for line in difflib.ndiff(kept[:4000], now[:4000]) if line[:2] in {"- ", "+ "}]
        raise AssertionError("\n".join([f"{path.name} says something else:", *changed[:_SHOWN]]))


def written(value: Any) -> str:
    """Write a value in one line; of a record only the fields that are not their defaults, without the raw config."""
    if is_dataclass(value):
        told = [
            f"{one.name}={written(getattr(value, one.name))}"
            for one in fields(value)
            if one.compare and one.name != "raw" and not _is_default(one, getattr(value, one.name))
        ]
        return f"{type(value).__name__}({', '.join(told)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {written(one)}" for key, one in value.items()) + "}"
    if isinstance(value, set | frozenset):
        return written(sorted(value))
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(map(written, value)) + "]"
    if hasattr(value, "_asdict"):
        usual = value._field_defaults
        told = [
            f"{key}={written(one)}"
            for key, one in value._asdict().items()
            if key not in usual or usual[key] != one
        ]
        return f"{type(value).__name__}({', '.join(told)})"
    return value if isinstance(value, str) else repr(value)


def _is_default(one: Any, value: Any) -> bool:
    if one.default is not MISSING:
        return bool(one.default == value)
    return one.default_factory is not MISSING and bool(one.default_factory() == value)


def examples(which: str = "") -> dict[str, Any]:
    """Return the configs of the examples in docs/hints.md: all, or those that are ``bad`` or ``good``."""
    page = (ROOT / "docs/hints.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n# materia\n(.*?)```", page, re.DOTALL)
    shared = read_text(block[1] if block else "", "yaml", where="hints.md")
    found = {}
    for code, body in _SECTION.findall(page):
        for kind, text in _BLOCK.findall(body):
            given = read_text(text, "yaml", where="hints.md")
            own = given.pop("materia", {})
            document = given if "loadouts" in given else {"activeLoadout": "T", "loadouts": {"T": given}}
            placed = {
                one["materia"] for each in document["loadouts"].values() for one in each["sockets"].values()
            }
            known = {id_: raw for id_, raw in shared.items() if id_ in placed}
            if which in {"", kind}:
                found[f"{code} {kind}"] = {**document, "materia": {**known, **own}}
    return found


def changed(document: Any, rng: random.Random) -> Any:
    """Return a copy with one value gone, or in its place a wrong one or another one of the document, or with a key renamed."""
    made = copy.deepcopy(document)
    known = list(places(made))
    holder, key = rng.choice(known)
    others = [of[at] for of, at in known if type(of[at]) is type(holder[key])]
    how = rng.random()
    if how < 0.2:
        del holder[key]
    elif how < 0.5:
        holder[key] = copy.deepcopy(rng.choice(WRONG))
    elif how < 0.85 or isinstance(holder, list):
        holder[key] = copy.deepcopy(rng.choice(others))
    else:
        name = rng.choice([at for _, at in known if isinstance(at, str)])
        holder[name if name not in holder else f"{name}s"] = holder.pop(key)
    return made


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each object or list in a value, with each key or index of it."""
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield value, key
        yield from places(entry)


def as_line(value: Any) -> str:
    """Write a JSON value in one line."""
    return json.dumps(value, ensure_ascii=False)

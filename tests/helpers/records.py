"""Compare lines about many inputs with a stored record, which contains each different line once with its count."""

from __future__ import annotations

import difflib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from shown_texts import FOLDER

_SHOWN = 20


def check_record(name: str, lines: Iterable[str]) -> None:
    """Compare lines with the stored record.

    The record contains each different line once with its count, in order of first occurrence.
    """
    counted = Counter(line.replace("\n", "\\n") for line in lines)
    now = [f"{count} {line}" for line, count in counted.items()]
    path = FOLDER / f"{name}.txt"
    if os.environ.get("MATERIA_SHOWN") == "write":
        path.write_text("".join(f"{line}\n" for line in now), encoding="utf-8")
    kept = path.read_text(encoding="utf-8").splitlines()
    if kept != now:  # pytest would need minutes for a diff of all lines
        changed = [line for line in difflib.ndiff(kept[:4000], now[:4000]) if line[:2] in {"- ", "+ "}]
        raise AssertionError("\n".join([f"{path.name} says something else:", *changed[:_SHOWN]]))


def format_value(value: Any) -> str:
    """Return a value on one line; a named tuple is written without the fields that have their default values."""
    if is_dataclass(value):
        told = [
            f"{field.name}={format_value(getattr(value, field.name))}"
            for field in fields(value)
            if field.compare and field.name != "raw" and not _is_default(field, getattr(value, field.name))
        ]
        return f"{type(value).__name__}({', '.join(told)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {format_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, set | frozenset):
        return format_value(sorted(value))
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(map(format_value, value)) + "]"
    if hasattr(value, "_asdict"):
        usual = value._field_defaults
        told = [
            f"{key}={format_value(one)}"
            for key, one in value._asdict().items()
            if key not in usual or usual[key] != one
        ]
        return f"{type(value).__name__}({', '.join(told)})"
    return value if isinstance(value, str) else repr(value)


def _is_default(one: Any, value: Any) -> bool:
    if one.default is not MISSING:
        return bool(one.default == value)
    return one.default_factory is not MISSING and bool(one.default_factory() == value)


def as_line(value: Any) -> str:
    """Return a JSON value on one line."""
    return json.dumps(value, ensure_ascii=False)

"""Assignments as they are written in a config: their shape, and sources that can never be read (R11)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from materia_nb.loadout.report import shown

SIMPLE: Final = re.compile(r"\$(?:\.[^.\[\]()*?@'\"\s,|]+)*")


def source_fault(source: str) -> tuple[str, str] | None:
    """Say what is wrong with a ``$`` source that is not JSONPath, and what to write; None for nothing.

    Other sources are state paths, and always readable.
    """
    if not source.startswith("$"):
        return None
    if (endless := _may_run_long(source)) is not None:
        return f"{shown(source)} {endless[0]}", endless[1]
    if (fault := jsonpath_fault(source)) is None:
        return None
    return (
        f"{shown(source)} is not a JSONPath expression ({fault})",
        "write $, a dotted path such as $.plan.name, or JSONPath such as $.items[*].title",
    )


def _may_run_long(source: str) -> tuple[str, str] | None:
    """Say what makes an expression that an output can keep busy for ever, and what to write; None for nothing."""
    if "=~" in source or "`sub(" in source:
        return (
            "holds a regular expression, which an output can keep busy for ever",
            "compare with ==, or use a utility",
        )
    if source.count("..") > 1:
        return (
            "searches all levels more than once, which takes too long in a deep output",
            "write .. once at most",
        )
    return None


@lru_cache(maxsize=1024)
def jsonpath_fault(source: str) -> str | None:
    """Say why ``source`` is not JSONPath; None when it is."""
    if SIMPLE.fullmatch(source):
        return None
    from jsonpath_ng.ext import parse

    try:
        parse(source)
    except Exception as error:  # noqa: BLE001 - the library raises several unrelated types, bare Exception among them
        text = " ".join(str(error).split())
        return text[:120] or type(error).__name__
    return None

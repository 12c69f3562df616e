"""Assignments as they are written in a config: their shape, and sources that can never be read (R11)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import is_object
from materia_nb.loadout.report import Findings, shown

SIMPLE: Final = re.compile(r"\$(?:\.[^.\[\]()*?@'\"\s,|]+)*")


def check_assign(findings: Findings, code: str, here: str, assign: JSON, *, in_effect: bool = True) -> None:
    """Note what is wrong with ``assign``; the sources only when it is ``in_effect`` (R4)."""
    if assign is None:
        return
    if not is_object(assign):
        findings.problem(
            code,
            here,
            f"assign is {shown(assign)}",
            'write an object from targets to sources: {"plan": "$.plan"}',
        )
        return
    for target, source in assign.items():
        if not isinstance(source, str) or not source.strip():
            findings.problem(
                code,
                f"{here}.{target}",
                f"the source of {target!r} is {shown(source)}",
                'write a path in quotes, such as "$.context" or "state.plan"',
            )
        elif in_effect:
            check_source(findings, code, f"{here}.{target}", source)


def check_source(findings: Findings, code: str, here: str, source: str) -> None:
    """Note a ``$`` source that is not JSONPath; other sources are state paths and always readable."""
    if not source.startswith("$"):
        return
    if (endless := _may_run_long(source)) is not None:
        findings.problem(code, here, f"{shown(source)} {endless[0]}", endless[1])
    elif (fault := jsonpath_fault(source)) is not None:
        findings.problem(
            code,
            here,
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

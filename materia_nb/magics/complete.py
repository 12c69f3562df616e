"""Tab completion of verbs, sockets, loadouts, materia, casts and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from IPython.core.completer import CompletionContext, SimpleCompletion, context_matcher

from materia_nb.agents.command_agent import PREFIX, PRESETS
from materia_nb.cast.workbench import Workbench
from materia_nb.loadout.facts import as_object
from materia_nb.magics.registry import VERBS, Argument, Verb

IDENTIFIER = "materia_nb"
_LINE = re.compile(r"(?:.*=\s*)?%{1,2}materia\s+(.*)", re.DOTALL)
CONFIG_SUFFIXES = (".json", ".jsonc", ".json5", ".yaml", ".yml")


def make_matcher(bench: Callable[[], Workbench]) -> Any:
    """Return a matcher for IPython's completer; it answers for lines of ``%materia`` only."""

    @context_matcher(identifier=IDENTIFIER)
    def materia_matcher(context: CompletionContext) -> Any:
        match = _LINE.fullmatch(context.text_until_cursor)
        if match is None:
            return {"completions": []}
        words = match.group(1).split(" ")
        typed = words[-1]
        try:
            offered = candidates(bench, words[:-1])
        except Exception:  # noqa: BLE001 - completion must never disturb typing
            offered = []
        found = sorted({name for name in offered if name.startswith(typed)})
        kind = "materia"
        return {
            "completions": [SimpleCompletion(name, type=kind) for name in found],
            "suppress": True,
            "matched_fragment": typed,
        }

    return materia_matcher


def candidates(bench: Callable[[], Workbench], before: list[str]) -> list[str]:
    """Offer what may stand behind the words ``before``."""
    before = [word for word in before if word]
    if not before:
        return list(VERBS)
    verb = VERBS.get(before[0])
    if verb is None:
        return []
    options = {argument.name: argument for argument in verb.arguments if argument.kind in ("option", "flag")}
    last = options.get(before[-1])
    if last is not None and last.kind == "option":
        return _names(bench, last)
    return [*_names(bench, _place(verb, before[1:])), *(name for name in options if name not in before)]


def _place(verb: Verb, given: list[str]) -> Argument | None:
    """The positional argument that comes next."""
    options = {argument.name: argument for argument in verb.arguments}
    places = [argument for argument in verb.arguments if argument.placed]
    taken, skip = 0, False
    for word in given:
        if skip:
            skip = False
        elif word == "--":
            taken += taken < len(places) and places[taken].kind == "words"
        elif word.startswith("--"):
            argument = options.get(word)
            skip = argument is not None and argument.kind == "option"
        elif taken < len(places) and places[taken].kind != "words":
            taken += 1
    return places[taken] if taken < len(places) else None


def _names(bench: Callable[[], Workbench], argument: Argument | None) -> list[str]:
    if argument is not None and argument.choices:
        return list(argument.choices)
    if argument is None or argument.completes is None:
        return []
    if argument.completes == "verb":
        return list(VERBS)
    return _NAMES[argument.completes](bench())


def _materia(wb: Workbench) -> list[str]:
    return [*map(_quoted, as_object(wb.config.document.get("materia"))), *_sockets(wb)]


def _parts(wb: Workbench) -> list[str]:
    """Loadouts and materia; where a name means both, the two that can be chosen."""
    groups = {
        "loadout": as_object(wb.config.document.get("loadouts")),
        "materia": as_object(wb.config.document.get("materia")),
    }
    twice = set(groups["loadout"]) & set(groups["materia"])
    return [
        _quoted(f"{kind}:{name}" if name in twice else name)
        for kind, group in groups.items()
        for name in group
    ]


def _sockets(wb: Workbench) -> list[str]:
    if wb.cast_ is not None:
        return list(wb.cast_.graph.sockets)
    return list(wb.graph().sockets)


def _files(wb: Workbench) -> list[str]:
    found = [*sorted(wb.project.glob("*")), *sorted(wb.project.glob("*/*"))]
    return [
        _quoted(str(path.relative_to(wb.project)))
        for path in found
        if path.suffix in CONFIG_SUFFIXES and path.is_file()
    ]


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _casts(wb: Workbench) -> list[str]:
    """The latest casts by id, and those that have names by these too."""
    entries = wb.casts()
    return [*(one.id for one in entries[:50]), *(_quoted(one.name) for one in entries if one.name)]


def _agents(_: Workbench) -> list[str]:
    kinds = ("person", "command", "model", "openai:", "anthropic:", "ollama:", "recorded:")
    return [*kinds, *(f"{PREFIX}{name}" for name in PRESETS)]


_NAMES: Final[Mapping[str, Callable[[Workbench], list[str]]]] = {
    "loadout": lambda wb: [_quoted(name) for name in wb.loadouts],
    "materia": _materia,
    "part": _parts,
    "socket": _sockets,
    "cast": _casts,
    "file": _files,
    "agent": _agents,
    "card": lambda wb: list(wb.gallery()),
    "pin": lambda wb: [_quoted(name) for name in {**wb.pins, **(wb.cast_.pins if wb.cast_ else {})}],
}

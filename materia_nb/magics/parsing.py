"""From the line of a magic to the arguments of a verb.

Nothing in a line is expanded, since handoffs are full of braces; ``$name`` alone
stands for the value of a variable, and an unknown one is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.magics.registry import Argument, Verb

_WORD = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\S+)""")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")
_SHELL_NAMES = frozenset({"In", "Out", "exit", "quit", "open", "get_ipython"})
_ESCAPE = re.compile(r"\\(.)")


class Split(NamedTuple):
    """A line taken apart: its verb and what follows it."""

    verb: str
    rest: str


def split_verb(line: str) -> Split:
    """Take the verb off a line; a trailing ``;``, which IPython users write, is dropped."""
    line = line.strip()
    if line.endswith(";"):
        line = line[:-1].rstrip()
    name, _, rest = line.partition(" ")
    return Split(name, rest.strip())


def is_silenced(line: str, cell: str | None) -> bool:
    """Whether a semicolon at the end of the line asks for no output; what stands in a cell is text, never asked."""
    return cell is None and line.rstrip().endswith(";")


def parse(verb: Verb, rest: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Parse what follows the verb; raises MateriaError that shows the usage."""
    given: dict[str, Any] = {}
    options = {argument.name: argument for argument in verb.arguments if argument.kind in ("option", "flag")}
    places = [argument for argument in verb.arguments if argument.placed]
    position, only_words = 0, False
    while match := _WORD.match(rest, position):
        raw = match.group(1)
        if raw == "--" and not only_words:
            position, only_words = match.end(), True
            if places and places[0].kind == "words" and places[0].key in given:
                places.pop(0)
        elif raw.startswith("--") and not only_words:
            position = _option(verb, options, rest, match, given, names)
        elif not places:
            raise _wrong(verb, f"{raw!r} is one argument too many.")
        elif places[0].kind == "words":
            given.setdefault(places[0].key, []).append(_typed(verb, places[0], _value(raw, names)))
            position = match.end()
        elif places[0].kind == "rest":
            given[places.pop(0).key] = _value(rest[position:].strip(), names)
            position = len(rest)
        else:
            argument = places.pop(0)
            given[argument.key] = _typed(verb, argument, _value(raw, names))
            position = match.end()
    missing = next((one for one in places if one.required and one.key not in given), None)
    if missing:
        raise _wrong(verb, f"{missing.name.upper()} is missing: {missing.help}.")
    return given


def _option(
    verb: Verb,
    options: Mapping[str, Argument],
    rest: str,
    match: re.Match[str],
    given: dict[str, Any],
    names: Mapping[str, Any],
) -> int:
    name, equals, inline = match.group(1).partition("=")
    argument = options.get(name)
    if argument is None:
        raise _wrong(verb, f"There is no option {name}: {did_you_mean(name, options)}")
    if argument.kind == "flag":
        given[argument.key] = True
        return match.end()
    if equals:
        given[argument.key] = _typed(verb, argument, _value(inline, names))
        return match.end()
    following = _WORD.match(rest, match.end())
    if following is None:
        raise _wrong(verb, f"{name} needs a value: {argument.help}.")
    given[argument.key] = _typed(verb, argument, _value(following.group(1), names))
    return following.end()


def _value(raw: str, names: Mapping[str, Any]) -> Any:
    variable = _VARIABLE.fullmatch(raw)
    if variable:
        name = variable.group(1)
        if name not in names:
            mine = [known for known in names if not known.startswith("_") and known not in _SHELL_NAMES]
            raise MateriaError(
                f"There is no variable {name!r}.", hint=did_you_mean(name, mine), kind="unknown_variable"
            )
        return names[name]
    if len(raw) >= 2 and raw[0] == raw[-1] and raw[0] in "\"'" and _WORD.fullmatch(raw):
        return _ESCAPE.sub(r"\1", raw[1:-1])
    return raw


def _typed(verb: Verb, argument: Argument, value: Any) -> Any:
    if argument.choices and value not in argument.choices:
        raise _wrong(
            verb, f"{argument.name} cannot be {value!r}: {did_you_mean(str(value), argument.choices)}"
        )
    if not argument.whole or isinstance(value, int):
        return value
    try:
        return int(value)
    except (TypeError, ValueError):
        raise _wrong(verb, f"{argument.name} must be a whole number, not {value!r}.") from None


def _wrong(verb: Verb, what: str) -> MateriaError:
    return MateriaError(what, hint=f"the usage is: {verb.usage}", kind="usage")

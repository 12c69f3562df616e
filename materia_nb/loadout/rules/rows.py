"""A rule about what is allowed and yet probably not meant: one row with its code, what it is about, and how it is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from materia_nb.loadout.facts import Facts
from materia_nb.loadout.report import Mend, do, mend, suggest

_Scope: TypeAlias = Literal["loadout", "socket", "loop", "materia", "config"]
"""What a rule is asked for, and given: facts; facts and the id of a socket; facts and a loop; the id of a materia and its
definition; or the document of the config, when all of it is checked."""


class Finding(NamedTuple):
    """One place where a rule holds: the path, what is odd about it, what to do, and what would mend it."""

    source: str
    message: str
    advice: str
    mend: Mend | None = None


@dataclass(frozen=True, slots=True)
class HintRule:
    """A hint: its code, what it says in the words of the documentation, what it is asked for, and how it is found."""

    code: str
    about: str
    scope: _Scope
    find: Callable[..., Iterable[Finding]]


F = TypeVar("F", bound=Callable[..., Iterable[Any]])


def rule(table: list[HintRule], scope: _Scope, code: str) -> Callable[[F], F]:
    """Put a function into a table of rules. It yields what it finds, in loadouts of any shape, and never raises.

    The first line of its docstring is what the documentation says of the code, of the first rule that has it.
    """

    def add(find: F) -> F:
        about = (find.__doc__ or "").splitlines()[0].removesuffix(".")
        table.append(HintRule(code, about, scope, find))
        return find

    return add


def read_as_json(facts: Facts, id_: str) -> Mend:
    """Let what answers in a socket answer with JSON, so that it can say satisfied."""
    if facts.is_utility(id_):  # its program has to write JSON, wherever it is placed
        materia = str(facts.sockets[id_].get("materia"))
        return suggest(f"Read the output of {materia} as JSON", do("set_materia", materia, "parse", "json"))
    return mend(f"Read the output of {id_} as JSON", do("set_socket", id_, "parse", "json"))


def advance_when(facts: Facts, id_: str, when: str) -> Any:
    """Let a socket move on with the next item for one result, whatever else its advance says."""
    written = facts.sockets[id_].get("advance")
    return do("set_socket", id_, "advance", {**(written if isinstance(written, dict) else {}), "when": when})

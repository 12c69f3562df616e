"""The grid of a sweep: which loadout is cast with which request, which agents, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from uuid import uuid4

from materia_nb.cast import Prepared
from materia_nb.engine.routing import short
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.sweep.seen import Seen, digest, seen

_EVERYONE: Final = "*"
_AS_SET: Final = "as set"
"""What the agents are called that are set anyway."""
_NAME_CHARS: Final = 40


class Setting(NamedTuple):
    """Who answers in some of the casts: a label, and agents by socket or materia."""

    label: str
    agents: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Place:
    """One cast of the grid.

    Attributes:
        loadout: the loadout's name.
        request: what the request is called: its name, or its beginning.
        agents: the label of the agents.
        repeat: which of the casts that are alike, from 1.
        text: the request.
        prepared: what it is started from; the plan's ``root`` is a directory of this cast alone.
        allow: tools of agents that need not ask.
        key: what tells it from every cast that could come out otherwise.
        unseen: the parts of its agents of which cannot be seen whether they changed: it is never taken for another.
    """

    loadout: str
    request: str
    agents: str
    repeat: int
    text: str
    prepared: Prepared
    allow: tuple[str, ...]
    key: str
    unseen: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, str, str, int]:
        """Where it is in the grid."""
        return self.loadout, self.request, self.agents, self.repeat

    def known_as(self, key: str) -> Self:
        """Return it under another key, in the directory of that."""
        plan = self.prepared.plan
        moved = self.prepared._replace(plan=replace(plan, root=plan.root.with_name(key)))
        return replace(self, key=key, prepared=moved)


def places_of(
    loadouts: Sequence[str],
    requests: str | Sequence[str] | Mapping[str, str],
    agents: object,
    repeat: int,
    allow: tuple[str, ...],
    *,
    known: Callable[[str], bool],
    prepare: Callable[[str, Mapping[str, Any] | None], Prepared],
    folder: Path,
) -> list[Place]:
    """Return all casts of a sweep.

    Args:
        loadouts: their names.
        requests: what is asked for, or a dict of names to that.
        agents: who answers; see :func:`settings`.
        repeat: how often each is cast.
        allow: tools of agents that need not ask.
        known: whether a name is that of a socket or materia.
        prepare: tells what the casts of a loadout with some agents are started from.
        folder: where the casts are kept.

    Raises:
        MateriaError: it is no grid (``usage``).
    """
    if repeat < 1 or not loadouts:
        raise MateriaError("A sweep needs loadouts, and casts of them.", hint="repeat from 1", kind="usage")
    asked, chosen = _named_requests(requests), settings(agents, known)
    found = []
    for name, setting in product(dict.fromkeys(loadouts), chosen):
        prepared = prepare(name, setting.agents)
        apart = _told_apart(prepared)
        for (called, text), number in product(asked.items(), range(1, repeat + 1)):
            anew = [uuid4().hex] if apart.unseen else []
            key = digest([apart.key, setting.label, called, text, list(allow), number, *anew])
            plan = prepared.plan
            here = prepared._replace(plan=replace(plan, root=folder / "casts" / key, apart=plan.root))
            found.append(Place(name, called, setting.label, number, text, here, allow, key, apart.unseen))
    return found


def _named_requests(given: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return requests by name: as they were named, else by their first line, numbered where that is not enough.

    Raises:
        MateriaError: there is none, or one is no text (``usage``).
    """
    texts = (
        [given] if isinstance(given, str) else list(given.values() if isinstance(given, Mapping) else given)
    )
    if not texts or not all(isinstance(one, str) for one in texts):
        raise MateriaError(
            "A sweep needs requests, as texts.",
            hint='requests=["...", "..."], or a dict of names to texts',
            kind="usage",
        )
    if isinstance(given, Mapping):
        return {str(name): text for name, text in given.items()}
    found: dict[str, str] = {}
    for text in texts:
        name = short(text, _NAME_CHARS)
        if found.get(name, text) != text:
            name = f"{name} ({len(found) + 1})"
        found[name] = text
    return found


def settings(given: object, known: Callable[[str], bool]) -> list[Setting]:
    """Return who is to answer: each of a list, each of a dict of labels, or one.

    A dict whose keys are sockets, materia or ``*`` is one setting, as in ``wb.cast(agents=...)``; with other keys,
    which are labels, each value is one.

    Raises:
        MateriaError: two are called alike, or keys are of both kinds (``usage``).
    """
    if given is None:
        return [Setting(_AS_SET, None)]
    if isinstance(given, Mapping):
        names = [key for key in given if key == _EVERYONE or known(str(key))]
        if len(names) == len(given) and names:
            return [Setting(_label(given), given)]
        if names:
            raise MateriaError(
                f"Of the keys of agents some are sockets or materia ({', '.join(map(str, names))}), others are not.",
                hint='{"label": {"Plan": ...}, ...} sweeps over agents, {"Plan": ..., "*": ...} is one choice of them',
                kind="usage",
            )
        found = [Setting(str(label), _for_everyone(one, known)) for label, one in given.items()]
    else:
        many = list(given) if isinstance(given, list | tuple) else [given]
        found = [Setting(_label(one), _for_everyone(one, known)) for one in many]
    labels = [one.label for one in found]
    if not found or len(set(labels)) < len(labels):
        raise MateriaError(
            "Two choices of agents are called alike." if found else "There are no agents to choose from.",
            hint='name them: agents={"one": ..., "other": ...}',
            kind="usage",
        )
    return found


def _for_everyone(given: object, known: Callable[[str], bool]) -> Mapping[str, object] | None:
    if given is None:
        return None
    if isinstance(given, Mapping) and all(key == _EVERYONE or known(str(key)) for key in given):
        return {str(key): agent for key, agent in given.items()}
    return {_EVERYONE: given}


def _label(given: object) -> str:
    if given is None:
        return _AS_SET
    if isinstance(given, Mapping):
        return ", ".join(
            _label(agent) if key == _EVERYONE and len(given) == 1 else f"{key}: {_label(agent)}"
            for key, agent in given.items()
        )
    if isinstance(given, str):
        return given
    if isinstance(given, list | tuple):
        return " ".join(map(str, given))
    return str(getattr(given, "name", None) or getattr(given, "__name__", None) or type(given).__name__)


def _told_apart(prepared: Prepared) -> Seen:
    """Return what tells the casts that are started so from others: loadout, agents and pins."""
    plan, table, pins = prepared
    names = [one.name for one in table.describe() if one.name is not None]
    looked = [seen(table.for_turn(name, ""), name) for name in names]
    looked += [seen(table.default, _EVERYONE), *(seen(one.function, name) for name, one in pins.items())]
    pinned: JSON = [[name, one.pin.as_json()] for name, one in pins.items()]
    key = digest([dict(plan.document), names, [one.key for one in looked], pinned])
    return Seen(key, tuple(words for one in looked for words in one.unseen))

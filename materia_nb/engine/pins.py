"""What a person chose to be the answer of a socket or materia (R40)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, Self, TypeAlias

from materia_nb.jsonvalue import JSON

PinKind: TypeAlias = Literal["text", "visits", "function"]

_KINDS: Final[Mapping[JSON, PinKind]] = {"text": "text", "visits": "visits", "function": "function"}
_NONE: Mapping[str, Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Pin:
    """A chosen answer, as data: the journal keeps it whole, so that a resumed cast or a fork has it too.

    Attributes:
        kind: one text for every visit; a text for each visit; or a function, which the journal can only name.
        words: what it is pinned to, for a person.
        text: the answer of every visit, when it is one text.
        visits: the answers by socket and number of the visit, when there is one for each.
    """

    kind: PinKind
    words: str
    text: str = ""
    visits: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: _NONE)

    def answer(self, socket: str, visit: int) -> str | None:
        """Return the answer of a visit; None when it has none for it."""
        return self.text if self.kind == "text" else self.visits.get(socket, {}).get(str(visit))

    def as_json(self) -> dict[str, JSON]:
        """Return it as the journal keeps it."""
        made: dict[str, JSON] = {"kind": self.kind, "to": self.words}
        if self.kind == "text":
            made["text"] = self.text
        if self.kind == "visits":
            made["visits"] = {socket: dict(texts) for socket, texts in self.visits.items()}
        return made

    @classmethod
    def read(cls, data: Mapping[str, JSON]) -> Self | None:
        """Read what :meth:`as_json` gave; None when it is nothing of the kind."""
        words, text, visits = data.get("to"), data.get("text", ""), data.get("visits", {})
        kind = next((known for name, known in _KINDS.items() if name == data.get("kind")), None)
        if kind is None or not isinstance(words, str) or not isinstance(text, str):
            return None
        if not isinstance(visits, dict) or not all(_texts(texts) for texts in visits.values()):
            return None
        return cls(kind, words, text, visits)


def _texts(value: JSON) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())

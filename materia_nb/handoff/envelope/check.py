"""Reading the fields of an object that may hold anything, and noting what is wrong with each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from materia_nb.handoff.protocol import Issue
from materia_nb.jsonvalue import JSON


class Check:
    """Reads typed fields and collects issues and warnings; a path is written ``summary.evidence``."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.warnings: list[Issue] = []

    def refuse(self, code: str, path: str, message: str, fix: str) -> None:
        """Note a reason to refuse the object."""
        self.issues.append(_issue(code, path, message, fix))

    def warn(self, code: str, path: str, message: str, fix: str) -> None:
        """Note something odd that is no reason to refuse the object."""
        self.warnings.append(_issue(code, path, message, fix))

    def wrong_type(self, path: str, wanted: str) -> None:
        """Note a value of the wrong JSON type."""
        self.refuse(f"TYPE:{path}", path, f"{path} is not {wanted}.", f"write {wanted}")

    def text(self, owner: Mapping[str, JSON], path: str, missing: str = "") -> str:
        """Return the text at the last part of ``path``; "" when absent, blank or no text.

        ``missing`` is the code to refuse an absent or blank one with; none, when it may be left out.
        """
        value = owner.get(_last(path))
        if value is None or (isinstance(value, str) and not value.strip()):
            if missing:
                self.refuse(missing, path, f"{path} is missing or blank.", "say it in words")
            return ""
        if not isinstance(value, str):
            self.wrong_type(path, "a string")
            return ""
        return value

    def word(
        self, owner: Mapping[str, JSON], path: str, allowed: Sequence[str], code: str, missing: str
    ) -> str:
        """Return one of the ``allowed`` words, folded to upper case; "" when it is none of them."""
        given = self.text(owner, path, missing)
        word = given.strip().upper()
        choices = ", ".join(allowed)
        if not given or word in allowed:
            if word != given:
                self.warn(f"{code}_NORMALIZED", path, f"{path} was read as {word}.", f"write {word}")
            return word
        shown = given.strip()[:100]
        self.refuse(f"{code}:{shown}", path, f"{path} is none of {choices}.", f"write one of {choices}")
        return ""

    def texts(self, owner: Mapping[str, JSON], path: str) -> tuple[str, ...]:
        """Return a list of texts, those that are none left out."""
        kept = []
        for index, value in enumerate(self._list(owner, path, "a list of strings")):
            if isinstance(value, str):
                kept.append(value)
            else:
                self.wrong_type(f"{path}[{index}]", "a string")
        return tuple(kept)

    def objects(self, owner: Mapping[str, JSON], path: str) -> Iterator[tuple[str, dict[str, JSON]]]:
        """Yield the objects of a list, each with its path."""
        for index, value in enumerate(self._list(owner, path, "a list of objects")):
            if isinstance(value, dict):
                yield f"{path}[{index}]", value
            else:
                self.wrong_type(f"{path}[{index}]", "an object")

    def object(self, owner: Mapping[str, JSON], path: str, missing: str = "") -> dict[str, JSON] | None:
        """Return an object, None when it is absent or something else."""
        value = owner.get(_last(path))
        if isinstance(value, dict):
            return value
        if value is not None:
            self.wrong_type(path, "an object")
        elif missing:
            self.refuse(missing, path, f"{path} is missing.", "add it, an object")
        return None

    def _list(self, owner: Mapping[str, JSON], path: str, wanted: str) -> list[JSON]:
        value = owner.get(_last(path))
        if value is None or isinstance(value, list):
            return value or []
        self.wrong_type(path, wanted)
        return []


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _issue(code: str, path: str, message: str, fix: str) -> Issue:
    return Issue("$." + path.replace("[", ".").replace("]", ""), message, fix, code)

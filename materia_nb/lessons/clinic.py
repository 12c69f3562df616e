"""The bug clinic: a mistake of the gallery as a patient, to be diagnosed from its cast and then mended."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from materia_nb.cast.gallery import Card, Diagnosis, gallery
from materia_nb.cast.workbench import Workbench
from materia_nb.display.bundle import Shown, Text
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.lessons.checks import judged
from materia_nb.lessons.guessbook import keep
from materia_nb.loadout import check_config, read_text

_EXPLAINED: Final[Mapping[str, Mapping[str, str]]] = {
    "step": {"*": "That step did what its record says and what was meant. In which was the wrong way taken?"},
    "socket": {"*": "Look for the socket whose edges, exits, advance or parse would have to be another."},
}


class Patient(Shown):
    """One mistake of the gallery. It shows itself with what is complained of, and tells nothing more.

    Args:
        name: its name in the gallery, such as ``raw-bread``.

    Raises:
        MateriaError: there is no such card (``unknown_card``), or it is a pattern (``healthy``).
    """

    def __init__(self, name: str) -> None:
        card = gallery()[name]
        if card.diagnosis is None:
            raise MateriaError(
                f"{card.name} is a pattern: nothing is wrong with it.",
                hint=f"one of: {', '.join(one.name for one in gallery().of('mistake'))}",
                kind="healthy",
            )
        self.card: Card = card
        self._sick: Diagnosis = card.diagnosis

    def __repr__(self) -> str:
        return repr(self.card)

    def _show(self) -> dict[str, Any]:
        return self.card._show()  # noqa: SLF001 - it is shown in the card's place

    def diagnose(self, **found: object) -> Text:
        """Pass for the right diagnosis: the ``socket`` that must be changed, and the ``step`` that shows it.

        Where no step shows it only the socket is asked for.

        Raises:
            MateriaError: as :func:`materia_nb.lessons.check`.
        """
        truth: dict[str, JSON] = {"socket": self._sick.socket}
        if self._sick.step is not None:
            truth["step"] = self._sick.step
        if unknown := [name for name in found if name not in truth]:
            raise MateriaError(
                f"{unknown[0]} is not asked for.", hint=f"say {' and '.join(truth)}", kind="unknown_question"
            )
        asked = {name: (found.get(name, ...), right) for name, right in truth.items()}
        told = judged(f"clinic: {self.card.name}", "", _EXPLAINED, asked)
        return Text(f"{told}\n{self._sick.why}\ncheck would have said: {self._sick.code}")

    def mend(self, loadout: str | Mapping[str, JSON]) -> Text:
        """Pass when a changed loadout does with the same answers what was meant.

        Args:
            loadout: a loadout as it stands in a cell (JSON or YAML, or a mapping), with or without ``materia``.

        Raises:
            MateriaError: it has problems, it goes wrong still (``not_mended``), or it cannot be read.
        """
        wanted = _cast(self.card, self.card.mended)
        given = read_text(loadout, where="the loadout") if isinstance(loadout, str) else dict(loadout)
        if not isinstance(given, dict):
            raise MateriaError("A loadout is an object.", hint="give it entry and sockets", kind="not_mended")
        body = dict(given)
        materia = body.pop("materia", self.card.document["materia"])
        document = {**self.card.document, "materia": materia, "loadouts": {self.card.loadout: body}}
        wrong = self._wrong(document, wanted)
        keep(f"clinic: {self.card.name}", "mend", "mended" if not wrong else wrong[0], right=not wrong)
        if wrong:
            raise MateriaError("\n".join(["It is not mended yet.", *wrong]), kind="not_mended")
        return Text("✓ Mended: with the same answers it does what was meant.")

    def _wrong(self, document: dict[str, JSON], wanted: _Course) -> list[str]:
        report = check_config(document, self.card.loadout)
        if report.problems:
            return [str(one) for one in report.problems]
        found = _cast(self.card, document)
        if found.ends != "complete":
            return [f"It ends as {found.ends}: {found.said}"]
        told = [f"The cast says of itself: {one}" for one in found.remarks]
        for socket, count in wanted.visits.items():
            came = found.visits.get(socket, 0)
            if came != count:
                times = "once" if came == 1 else f"{came} times"
                told.append(f"{socket} is visited {times}; it should be {count}.")
        return told


class _Course:
    """What came of a cast."""

    def __init__(self, ends: str, said: str, visits: Mapping[str, int], remarks: list[str]) -> None:
        self.ends, self.said, self.visits, self.remarks = ends, said, visits, remarks


def _cast(card: Card, document: dict[str, JSON]) -> _Course:
    with (
        tempfile.TemporaryDirectory(prefix="materia-clinic-") as folder,
        closing(Workbench(folder, bundled=False)) as bench,
    ):
        bench.load(document)
        cast = bench.cast(card.request, agents={"*": dict(card.answers)})
        ends = str(cast.run())
        said = "" if cast.failure is None else cast.failure.message
        odd = [str(one) for one in cast.now.remarks if one.code != "empty-loop"]
        return _Course(ends, said, dict(cast.now.engine.visits), odd)


def clinic(name: str) -> Patient:
    """Admit a patient: a mistake of the gallery, by its name.

    Raises:
        MateriaError: as :class:`Patient`.
    """
    return Patient(name)

"""What a learner guessed and answered: a line each in a file of the learner's own, and tables made of such files.

The file is ``.pi/pi-materia/guesses.jsonl`` in the folder of the notebook, or what ``MATERIA_GUESSES`` names. Nothing
of it is sent anywhere, and no name stands in it but the one that ``MATERIA_LEARNER`` gives.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from materia_nb.cast.library import DEFAULT_ARTIFACT_DIR
from materia_nb.display.bundle import Table
from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import JSON
from materia_nb.store.files import read_plain

NAME: Final = "guesses.jsonl"
PLACE: Final = "MATERIA_GUESSES"
LEARNER: Final = "MATERIA_LEARNER"
_LONGEST: Final = 2**24
_SHOWN: Final = 200


class Guess(NamedTuple):
    """One line: what was asked, what was answered, and whether it was right."""

    lesson: str
    question: str
    guess: str
    right: bool
    seed: str = ""
    at: str = ""
    who: str = ""
    sure: bool | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """What came of one question.

    Attributes:
        who: whose it is.
        lesson: the lesson, the topic of an exercise, or the loadout of a prediction.
        question: what was asked.
        tries: how many different answers were given, up to the right one.
        right: whether the right one was among them.
        misled: whether the learner was sure of a wrong one.
    """

    who: str
    lesson: str
    question: str
    tries: int
    right: bool
    misled: bool

    @property
    def points(self) -> float:
        """What it counts: see :func:`worth`."""
        return worth(self.tries) if self.right else 0


def worth(tries: int) -> float:
    """What a right answer counts: 1 at the first try, a half at the second, nothing later."""
    return {1: 1, 2: 0.5}.get(tries, 0)


def guesses_file() -> Path:
    """Where guesses are kept."""
    named = os.environ.get(PLACE)
    return Path(named) if named else Path.cwd() / DEFAULT_ARTIFACT_DIR / NAME


def keep(
    lesson: str, question: str, guess: object, *, right: bool, seed: str = "", sure: bool | None = None
) -> None:
    """Add a line. A disk that refuses it is no reason to stop a lesson."""
    line = Guess(
        lesson,
        question,
        shorten(guess if isinstance(guess, str) else repr(guess), _SHOWN),
        right,
        seed,
        datetime.now(UTC).isoformat(timespec="seconds"),
        os.environ.get(LEARNER, ""),
        sure,
    )
    with suppress(OSError):
        path = guesses_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(json.dumps(line._asdict(), ensure_ascii=False) + "\n")


def read_guesses(path: Path, who: str = "") -> list[Guess]:
    """Read a file of guesses; lines that are none, such as one cut off by a crash, are left out.

    Args:
        path: the file.
        who: whose it is, where the file does not say.

    Raises:
        MateriaError: the file cannot be read (``not_read``).
    """
    try:
        text = read_plain(path, _LONGEST).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise MateriaError(
            f"The guesses cannot be read: {error}.", where=str(path), kind="not_read"
        ) from None
    found = []
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            given = json.loads(line)
            if isinstance(given, dict):
                found.append(_guess(given, who))
    return [one for one in found if one.question]


def _guess(given: dict[str, JSON], who: str) -> Guess:
    flags = {"right", "sure"}
    words = {name: shorten(str(given.get(name) or ""), _SHOWN) for name in Guess._fields if name not in flags}
    words["who"] = words["who"] or who
    sure = given.get("sure")
    return Guess(**words, right=given.get("right") is True, sure=sure if isinstance(sure, bool) else None)


def scores(guesses: Iterable[Guess]) -> list[Score]:
    """Return what came of each question, in the order in which they were first answered."""
    tried: dict[tuple[str, str, str], list[Guess]] = {}
    for one in guesses:
        lesson = f"{one.lesson} ({one.seed})" if one.seed else one.lesson
        before = tried.setdefault((one.who, lesson, one.question), [])
        known = any(other.guess == one.guess for other in before)
        if not known and not any(other.right for other in before):
            before.append(one)
    return [
        Score(
            who,
            lesson,
            question,
            len(all_),
            any(one.right for one in all_),
            any(one.sure and not one.right for one in all_),
        )
        for (who, lesson, question), all_ in tried.items()
    ]


def progress(path: Path | None = None) -> Table:
    """Return a table of the learner's own questions: how many tries, whether it is right by now, what it counts."""
    path = path or guesses_file()
    found = scores(read_guesses(path)) if path.exists() else []
    rows = [
        (one.lesson, one.question, str(one.tries), "✓" if one.right else "✗", f"{one.points:g}")
        for one in found
    ]
    return Table(("lesson", "question", "tries", "right", "points"), rows, "nothing was answered yet")


def merge(paths: Sequence[Path]) -> list[Score]:
    """Read the files of a class.

    Args:
        paths: files, or folders with one file or folder for each learner. Whoever gave no name is called after
            the file, or after the folder that was searched for it.

    Raises:
        MateriaError: there is no file (``not_found``), or one cannot be read.
    """
    found: list[Guess] = []
    seen = False
    for path, who in _files(paths):
        seen = True
        found += read_guesses(path, who)
    if not seen:
        raise MateriaError(
            "There is no file of guesses.",
            where=", ".join(map(str, paths)),
            hint=f"name folders that hold {NAME}, or *.jsonl files",
            kind="not_found",
        )
    return scores(found)


def _files(paths: Sequence[Path]) -> Iterable[tuple[Path, str]]:
    for path in paths:
        if not path.is_dir():
            yield path, path.stem
            continue
        for file in sorted(path.rglob("*.jsonl")):
            inside = file.relative_to(path)
            if file.name == NAME or len(inside.parts) == 1:
                yield file, inside.parts[0] if len(inside.parts) > 1 else file.stem


def as_csv(found: Sequence[Score]) -> str:
    """Return scores as CSV, which a spreadsheet reads; no cell begins as a formula does."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("who", "lesson", "question", "tries", "right", "points", "sure but wrong"))
    for one in found:
        words = (one.who, one.lesson, one.question)
        writer.writerow(
            [
                *("'" + word if word[:1] in "=+-@\t" and word else word for word in words),
                one.tries,
                int(one.right),
                f"{one.points:g}",
                int(one.misled),
            ]
        )
    return out.getvalue()


def class_table(found: Sequence[Score]) -> Table:
    """Return a table of a class: for each learner and lesson, how much is right, in how many tries, what it counts.

    The last column is how often the learner was sure of a wrong answer: what a teacher comes back to.
    """
    groups: dict[tuple[str, str], list[Score]] = {}
    for one in found:
        groups.setdefault((one.who, one.lesson), []).append(one)
    rows = [
        (
            who,
            lesson,
            f"{sum(one.right for one in all_)} of {len(all_)}",
            str(sum(one.tries for one in all_)),
            f"{sum(one.points for one in all_):g}",
            str(sum(one.misled for one in all_)),
        )
        for (who, lesson), all_ in sorted(groups.items())
    ]
    return Table(
        ("who", "lesson", "right", "tries", "points", "sure but wrong"), rows, "nothing was answered yet"
    )

"""Functions that check and record a learner's answers, and create tables of results for a learner or a class.

The right answer is computed by a cast. For a wrong answer, the check displays a hint from ``questions.toml`` and the
misreading of the routing rules that leads to the same answer. The numbers of a lesson can be generated from the
learner's name, so that the right answers differ between learners.

Answers are recorded in a local file, one per line. The default path is ``.pi/pi-materia/guesses.jsonl`` in the folder
of the notebook; the environment variable ``MATERIA_GUESSES`` sets another path. The only personal data in the file is
the value of ``MATERIA_LEARNER``.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from materia_nb.cast import Cast
from materia_nb.cast.library import DEFAULT_ARTIFACT_DIR
from materia_nb.display.blocks import Block, Displayable, Table, Text
from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.file_io import append_line, read_package_toml, read_plain
from materia_nb.insight.why import STOP, resolve_target
from materia_nb.jsonvalue import JSON, thawed
from materia_nb.lessons.misreadings import RouteAnswer, explain_misreading
from materia_nb.loadout import Graph
from materia_nb.loadout.graph import END


def _normalize(value: object) -> object:
    """Return a value in which strings are stripped and case-folded, so that it can be compared."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [_normalize(part) for part in value] if isinstance(value, list | tuple) else value


_TABLES: Final = read_package_toml(__file__, "questions.toml")
QUESTIONS: Final[Mapping[str, Mapping[str, str]]] = _TABLES["questions"]
"""Maps the name of each lesson to its questions, and each question to its hint."""
PRACTICE: Final[Mapping[str, Sequence[str]]] = _TABLES["practice"]
"""The questions of each lesson that are not marked, because their answers are the same for every learner."""

_FILE_NAME: Final = "guesses.jsonl"
GUESSES_VARIABLE: Final = "MATERIA_GUESSES"
LEARNER_VARIABLE: Final = "MATERIA_LEARNER"
_MAX_FILE_BYTES: Final = 2**24
_MAX_TEXT_CHARS: Final = 200


class Guess(NamedTuple):
    """A learner's answer to a question, as recorded in the file of guesses.

    Attributes:
        lesson: the name of the lesson.
        question: the name of the question.
        guess: the answer as text, shortened to 200 characters.
        right: True if the answer is right.
        seed: the name from which the numbers of the lesson were generated; empty if there is no name.
        at: the time of the answer in ISO 8601 format.
        who: the learner; empty if the learner is unknown.
        sure: True if the learner was sure of the answer, False if not; None if this is unknown.
    """

    lesson: str
    question: str
    guess: str
    right: bool
    seed: str = ""
    at: str = ""
    who: str = ""
    sure: bool | None = None


class Score(NamedTuple):
    """A learner's result for one question.

    Attributes:
        who: the learner.
        lesson: the name of the lesson, or ``clinic:`` followed by the name of an example.
        question: the name of the question.
        tries: the number of different answers up to and including the right answer.
        right: True if one of the answers was right.
        misled: True if the learner was sure of a wrong answer.
    """

    who: str
    lesson: str
    question: str
    tries: int
    right: bool
    misled: bool

    @property
    def points(self) -> float:
        """The points for the question (see :func:`points_for`)."""
        return points_for(self.tries) if self.right else 0


def points_for(tries: int) -> float:
    """Return the points for a right answer: 1 for the first try, 0.5 for the second try, and 0 for any later try."""
    return {1: 1, 2: 0.5}.get(tries, 0)


def guesses_file() -> Path:
    """Return the path of the file in which guesses are recorded."""
    custom_path = os.environ.get(GUESSES_VARIABLE)
    return Path(custom_path) if custom_path else Path.cwd() / DEFAULT_ARTIFACT_DIR / _FILE_NAME


def record_guess(
    lesson: str, question: str, guess: object, *, right: bool, seed: str = "", sure: bool | None = None
) -> None:
    """Append an answer to the file of guesses. A disk error is ignored, so that the lesson can continue.

    Args:
        lesson: the name of the lesson.
        question: the name of the question.
        guess: the answer.
        right: True if the answer is right.
        seed: the name from which the numbers of the lesson were generated.
        sure: True if the learner was sure of the answer, False if not; None if this is unknown.
    """
    text = shorten(guess if isinstance(guess, str) else repr(guess), _MAX_TEXT_CHARS)
    timestamp, who = datetime.now(UTC).isoformat(timespec="seconds"), os.environ.get(LEARNER_VARIABLE, "")
    line = Guess(lesson, question, text, right, seed, timestamp, who, sure)
    with suppress(OSError):
        path = guesses_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        append_line(path, json.dumps(line._asdict(), ensure_ascii=False).encode("utf-8", "replace"))


def read_guesses(path: Path, who: str = "") -> list[Guess]:
    """Read a file of guesses, and skip invalid lines, such as a line that is incomplete because of a crash.

    Args:
        path: the file.
        who: the learner for lines that do not name a learner.

    Raises:
        MateriaError: the file cannot be read (``not_read``).
    """
    try:
        text = read_plain(path, _MAX_FILE_BYTES, follow=True).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise MateriaError(f"The guesses cannot be read: {error}.", where=str(path), kind="not_read") from None
    guesses = []
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict):
                guesses.append(_parse_guess(row, who))
    return [guess for guess in guesses if guess.question]


def _parse_guess(row: dict[str, JSON], who: str) -> Guess:
    flags = {"right", "sure"}
    texts = {name: shorten(str(row.get(name) or ""), _MAX_TEXT_CHARS) for name in Guess._fields if name not in flags}
    texts["who"] = texts["who"] or who
    sure = row.get("sure")
    return Guess(**texts, right=row.get("right") is True, sure=sure if isinstance(sure, bool) else None)


def scores(guesses: Iterable[Guess]) -> list[Score]:
    """Return the score of each learner for each question, in the order in which the questions were first answered."""
    by_question: dict[tuple[str, str, str], list[Guess]] = {}
    for guess in guesses:
        lesson = f"{guess.lesson} ({guess.seed})" if guess.seed else guess.lesson
        earlier_guesses = by_question.setdefault((guess.who, lesson, guess.question), [])
        is_known = any(other.guess == guess.guess for other in earlier_guesses)
        if not is_known and not any(other.right for other in earlier_guesses):
            earlier_guesses.append(guess)
    return [
        Score(
            who,
            lesson,
            question,
            len(tries),
            any(guess.right for guess in tries),
            any(guess.sure and not guess.right for guess in tries),
        )
        for (who, lesson, question), tries in by_question.items()
    ]


def progress(path: Path | None = None) -> Table:
    """Return a table of the questions that a learner has answered, with the tries, the result and the points.

    ``path`` is the file of guesses; it defaults to the file in which this notebook records guesses.
    """
    path = path or guesses_file()
    learner_scores = scores(read_guesses(path)) if path.exists() else []
    rows = [
        (score.lesson, score.question, str(score.tries), "✓" if score.right else "✗", f"{score.points:g}")
        for score in learner_scores
    ]
    return Table(
        ("lesson", "question", "tries", "right", "points"), rows, "No answers yet. Answer a question in a lesson first."
    )


def read_class_scores(paths: Sequence[Path]) -> list[Score]:
    """Read the files of guesses of a whole class, and return the scores.

    Args:
        paths: files of guesses, or folders that contain a file or a folder for each learner. If a file does not name
            its learner, the name of the file or of its folder is used.

    Raises:
        MateriaError: no file of guesses was found (``not_found``), or a file cannot be read (``not_read``).
    """
    files = list(_guess_files(paths))
    if not files:
        raise MateriaError(
            "No file of guesses was found.",
            where=", ".join(map(str, paths)),
            hint=f"pass folders that contain {_FILE_NAME}, or *.jsonl files",
            kind="not_found",
        )
    return scores(guess for path, who in files for guess in read_guesses(path, who))


def _guess_files(paths: Sequence[Path]) -> Iterable[tuple[Path, str]]:
    for path in paths:
        if not path.is_dir():
            yield path, path.stem
            continue
        for file in sorted(path.rglob("*.jsonl")):
            relative = file.relative_to(path)
            if file.name == _FILE_NAME or len(relative.parts) == 1:
                # If ``path`` is the folder of one learner, the file is in a hidden folder.
                folder = path.resolve().name if relative.parts[0].startswith(".") else relative.parts[0]
                yield file, folder if len(relative.parts) > 1 else file.stem


def scores_as_csv(class_scores: Sequence[Score]) -> str:
    """Return scores as CSV, in which strings are escaped so that a spreadsheet does not evaluate them as formulas."""
    header = ("who", "lesson", "question", "tries", "right", "points", "sure but wrong")
    rows = ((*score[:4], int(score.right), f"{score.points:g}", int(score.misled)) for score in class_scores)
    return csv_text(header, rows)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV. A string that a spreadsheet would evaluate as a formula is prefixed with a quote."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow("'" + cell if isinstance(cell, str) and cell[:1] in {*"=+-@\t"} else cell for cell in row)
    return buffer.getvalue()


def table_of_learners(
    rows_of_learners: Iterable[Any], columns: Mapping[str, Callable[[list[Any]], str]], empty: str = "(none)"
) -> Table:
    """Return a table with a row for each learner and lesson.

    Args:
        rows_of_learners: objects with the attributes ``who`` and ``lesson``, which are grouped by these attributes.
        columns: the headers of further columns, each with a function that computes a cell from the objects in a group.
        empty: the text to display if the table has no rows.
    """
    groups: dict[tuple[str, str], list[Any]] = {}
    for row in rows_of_learners:
        groups.setdefault((row.who, row.lesson), []).append(row)
    rows = [(*key, *(cell(group) for cell in columns.values())) for key, group in sorted(groups.items())]
    return Table(("who", "lesson", *columns), rows, empty)


def class_table(class_scores: Sequence[Score]) -> Table:
    """Return a table with the right answers, the tries and the points of each learner in each lesson.

    The last column counts the wrong answers that the learner was sure of; these answers are worth discussing first.
    """
    columns: dict[str, Callable[[list[Score]], str]] = {
        "right": lambda group: f"{sum(score.right for score in group)} of {len(group)}",
        "tries": lambda group: str(sum(score.tries for score in group)),
        "points": lambda group: f"{sum(score.points for score in group):g}",
        "sure but wrong": lambda group: str(sum(score.misled for score in group)),
    }
    return table_of_learners(class_scores, columns, "No answers yet. Answer a question in a lesson first.")


QuestionRow: TypeAlias = tuple[object, JSON | RouteAnswer] | tuple[object, JSON | RouteAnswer, str]
"""A learner's answer, the right answer, and optionally a line of code that displays the cast with the right answer."""


def check(**questions: QuestionRow) -> Text:
    """Check a learner's answers to the questions of a lesson.

    The lessons call ``Numbers.check`` instead, which also displays hints.

    Args:
        questions: a pair of the learner's answer and the right answer for each question, such as
            ``check(next_socket=(next_socket, cast.route[1][0]))``. The name of the question is the variable that
            contains the answer. An optional third element is a line of code that displays the cast. The values ``...``
            and None count as unanswered. If the right answer comes from :func:`materia_nb.lessons.from_route`, the
            message also describes the misreading that leads to a wrong answer.

    Raises:
        MateriaError: an answer is wrong (``wrong_answer``) or missing (``no_answer``). The message lists all problems
            without revealing the right answers.
    """
    return judge_answers("", "", {}, questions)


def judge_answers(
    lesson: str, seed: str, hints: Mapping[str, str], questions: Mapping[str, QuestionRow], graph: Graph | None = None
) -> Text:
    """Check answers like :func:`check`, but also display a hint for each wrong answer.

    Args:
        lesson: the name of the lesson under which the answers are recorded.
        seed: the name from which the numbers of the lesson were generated, which is recorded with the answers.
        hints: the hint for each question.
        questions: the answers (see :func:`check`).
        graph: the loadout that the questions are about, so that an answer can name a materia instead of its socket.
    """
    right = missing = 0
    lines = list[str]()
    routed = list[tuple[object, RouteAnswer]]()
    for name, row in questions.items():
        truth = right_answer(row)
        if is_unanswered(row[0]):
            missing += 1
            lines.append(f"\u25cb {name}: not answered yet; the answer is {answer_form(truth)}")
            continue
        answer = normalize_answer(row[0], truth, graph)
        if isinstance(row[1], RouteAnswer):
            routed.append((answer, row[1]))
        is_same = is_right(answer, truth)
        record_guess(lesson, name, answer, right=is_same, seed=seed)
        right += is_same
        lines += [f"\u2713 {name} is right"] if is_same else _wrong_answer_lines(name, answer, row, hints.get(name, ""))
    if right == len(questions):
        return Text("\n".join(lines))
    wrong = len(questions) - right - missing
    counts = [f"{count} {word}" for count, word in ((wrong, "wrong"), (missing, "not answered yet")) if count]
    raise MateriaError(
        f"{right} of {len(questions)} right, {', '.join(counts)}.",
        more=[*lines, *explain_misreading(routed, is_right)],
        hint="put your answers into the cell above, run it, and check again",
        kind="wrong_answer" if wrong else "no_answer",
    )


def right_answer(row: QuestionRow) -> JSON:
    """Return the right answer in a row; an answer that depends on a route is computed."""
    return row[1].truth if isinstance(row[1], RouteAnswer) else row[1]


def is_unanswered(answer: object) -> bool:
    """Return True if an answer is ``...`` or None."""
    return answer is None or answer is ...


def normalize_answer(answer: object, truth: JSON, graph: Graph | None = None) -> object:
    """Convert an answer to the type of the right answer.

    A tuple is converted to a list, ``3.0`` to 3, and the name of a materia to the id of its socket.

    Raises:
        MateriaError: several sockets have the materia (``ambiguous``).
    """
    if isinstance(answer, tuple):
        answer = list(answer)
    if isinstance(answer, list):
        parts = truth if isinstance(truth, list) and truth else [None]
        return [normalize_answer(part, parts[0], graph) for part in answer]
    if isinstance(answer, float) and answer.is_integer() and type(truth) is int:
        return int(answer)
    if graph is not None and isinstance(answer, str) and truth in (*graph.sockets, END, STOP):
        return resolve_target(graph, answer)
    return answer


def is_right(answer: object, truth: JSON) -> bool:
    """Return True if an answer is right. Case and surrounding whitespace are ignored."""
    return _has_same_type(answer, truth) and _normalize(answer) == _normalize(truth)


def _has_same_type(answer: object, truth: JSON) -> bool:
    """Return True if two values have the same type. Frozen values of a cast are treated as lists and dicts (R47)."""
    return isinstance(answer, type(thawed(truth))) and isinstance(answer, bool) == isinstance(truth, bool)


def explain_wrong_answer(answer: object, truth: JSON, hint: str) -> list[str]:
    """Return sentences that explain why an answer is wrong, without revealing the right answer."""
    if not _has_same_type(answer, truth):
        return [f"The answer is {answer_form(truth)}."]
    return [line for line in (_right_entries_sentence(answer, truth), hint) if line]


def _wrong_answer_lines(name: str, answer: object, row: QuestionRow, hint: str) -> list[str]:
    lines = [f"\u2717 {name}: {shorten(repr(answer), 80)} is not right."]
    lines += [f"    {line}" for line in explain_wrong_answer(answer, right_answer(row), hint)]
    if len(row) == 3:
        lines.append(f"    To see the cast, run: {row[2]}")
    return lines


def _right_entries_sentence(answer: object, truth: JSON) -> str:
    """Return a sentence that counts the right entries at the start of a list, or "" if the answer is not a list."""
    if not isinstance(answer, list) or not isinstance(truth, list):
        return ""
    matches = [_normalize(left) == _normalize(right) for left, right in zip(answer, truth, strict=False)]
    right = matches.index(False) if False in matches else len(matches)
    if answer[right:] == [END] and right == len(truth):
        return "All entries except the last are right: end is not a socket."
    if right == 0:
        return "The first entry is wrong."
    return "The first entry is right." if right == 1 else f"The first {right} entries are right."


def answer_form(truth: JSON) -> str:
    """Describe the expected type of an answer, such as "a whole number", without revealing the answer."""
    match truth:
        case bool():
            return "True or False"
        case int():
            return "a whole number"
        case str():
            is_target = truth in (END, STOP) or truth.startswith("Socket-")
            return "a socket, 'end' or 'stop', in quotes" if is_target else "text in quotes"
        case [bool(), *_]:
            return "a list, such as [True, False]"
        case list():
            return "a list, such as ['Socket-1', 'Socket-3']"
    return "an object, such as {'a': 1}"


class Numbers(Displayable):
    """The numbers of a lesson for one learner. Each number is an attribute, such as ``mine.beds``.

    Args:
        lesson: the name of the notebook, such as ``03-loops``.
        learner: the name from which the numbers are generated; case is ignored.
        choices: the possible values of each number.
    """

    def __init__(self, lesson: str, learner: str, choices: Mapping[str, Iterable[Any]]) -> None:
        generator = Random(f"{lesson}:{learner.strip().casefold()}")  # noqa: S311 - the numbers are not secret
        self._lesson, self._learner = lesson, learner.strip()
        self._drawn = {name: generator.choice(list(values)) for name, values in choices.items()}
        self._hints = QUESTIONS.get(lesson, {})
        self._key: dict[str, AnswerKey] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_drawn", ()):
            return self._drawn[name]
        raise AttributeError(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._drawn]

    def check(self, graph: Graph | None = None, /, **questions: QuestionRow) -> Text:
        """Check the learner's answers to the questions of the lesson, and display a hint for each wrong answer.

        Args:
            graph: the loadout that the questions are about, so that an answer can name a materia instead of its socket.
            questions: the answers (see :func:`materia_nb.lessons.check`).

        Raises:
            MateriaError: an answer is wrong (``wrong_answer``) or missing (``no_answer``).
        """
        self._key = {
            name: AnswerKey(right_answer(row), self._hints.get(name, ""), graph) for name, row in questions.items()
        }
        return judge_answers(self._lesson, self._learner, self._hints, questions, graph)

    @property
    def _table(self) -> Table:
        rows = [
            (name, ", ".join(map(str, values)) if isinstance(values, list | tuple) else str(values))
            for name, values in self._drawn.items()
        ]
        return Table(("name", f"for {self._learner}" if self._learner else "number"), rows)

    def _blocks(self) -> list[Block]:
        return [self._table]


def numbers(lesson: str, /, **choices: Iterable[Any]) -> Numbers:
    """Generate the numbers of a lesson from the learner's name in the environment variable ``MATERIA_LEARNER``.

    If the variable is not set, the numbers are always the same. For example, ``numbers("03-loops", beds=(3, 4, 5))``
    chooses the number of beds.

    Args:
        lesson: the name of the notebook, such as ``03-loops``.
        choices: the possible values of each number.
    """
    return Numbers(lesson, os.environ.get(LEARNER_VARIABLE, ""), choices)


class AnswerKey(NamedTuple):
    """The right answer to a question for one learner.

    Attributes:
        truth: the right answer.
        hint: the hint of the question.
        graph: the loadout that the question is about; None if an answer cannot name a socket.
    """

    truth: JSON
    hint: str
    graph: Graph | None = None


def shortest_verdicts(play: Callable[..., Cast], goal: Callable[[Cast], object]) -> list[bool]:
    """Return the shortest list of verdicts with which a cast reaches a goal.

    The search never ends if the goal cannot be reached but the casts keep requesting verdicts.

    Args:
        play: a function that starts a cast. Its arguments are the verdicts, which the agents return one after another;
            an agent must fail if no verdict is left.
        goal: a function that returns True if a finished cast has reached the goal.

    Raises:
        ValueError: no list of verdicts reaches the goal.
    """
    queue: list[list[bool]] = [[]]
    for verdicts in queue:  # the loop appends to ``queue``
        cast = play(*verdicts)
        cast.run()
        if goal(cast):
            return verdicts
        if cast.failure is not None and cast.failure.kind == "agent_error":
            queue += [[*verdicts, verdict] for verdict in (True, False)]
    raise ValueError("No list of verdicts reaches the goal.")

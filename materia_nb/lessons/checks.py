"""Cells that check an answer, and the book of what a learner guessed and answered, with tables made of such books.

The truth comes from a cast, and a wrong answer is told what is wrong with it. The form of an answer, and what a wrong one
shows to have been misread, stand in ``misreadings.toml`` and not in the notebooks, where they would tell the answers to whoever
looks at the check cell. Numbers of a lesson may be the learner's own: drawn from a name, so that a neighbour's answers are
others.

The book is ``.pi/pi-materia/guesses.jsonl`` in the folder of the notebook, or what ``MATERIA_GUESSES`` names, a line for
each answer. Nothing of it is sent anywhere, and no name stands in it but the one that ``MATERIA_LEARNER`` gives.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from materia_nb.cast import Cast
from materia_nb.cast.library import DEFAULT_ARTIFACT_DIR
from materia_nb.display.blocks import Block, Shown, Table, Text
from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError
from materia_nb.file_io import append_line, read_package_toml, read_plain
from materia_nb.insight.why import STOP, resolve_target
from materia_nb.jsonvalue import JSON, thawed
from materia_nb.loadout import Graph
from materia_nb.loadout.graph import END

ANY: Final = "*"
"""Any other wrong answer."""


class Ask(NamedTuple):
    """What is known of a question.

    Attributes:
        form: what an answer looks like, in words.
        explained: what a wrong answer, or one that follows from the learner's own numbers, shows to have been misread.
        varies: whether the right answer follows from the learner's own numbers, so that it can be marked.
    """

    form: str
    explained: Mapping[str, str] = {}
    varies: bool = True


def _fold(value: object) -> object:
    """Return a value as answers are compared: upper and lower case do not count, nor do spaces around a word."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [_fold(one) for one in value] if isinstance(value, list | tuple) else value


def folded(explained: Mapping[str, str], numbers: object) -> Mapping[str, str]:
    """Return explanations by the wrong answers as texts; ``numbers`` are the learner's own, which the file calls ``n``."""
    names = {"n": numbers, "sorting": _sorting}
    return {key if key == ANY else str(_fold(_value(key, names))): words for key, words in explained.items()}


def _value(key: str, names: dict[str, object]) -> object:
    return eval(key, names)  # noqa: S307 - written in a file of this package


def _sorting(n: Any) -> list[str]:
    """Return the route of lesson 1."""
    route = ["Socket-1", "Socket-3"] if n.sort else ["Socket-1", "Socket-2", "Socket-3"]
    return route if n.file else [*route, "Socket-4"]


def _read() -> dict[str, dict[str, Ask]]:
    lessons = read_package_toml(__file__, "misreadings.toml")
    return {
        lesson: {
            name: Ask(given["form"], dict(given.get("explained", [])), given.get("varies", True))
            for name, given in questions.items()
        }
        for lesson, questions in lessons.items()
    }


QUESTIONS: Final[Mapping[str, Mapping[str, Ask]]] = _read()
"""By lesson and question."""


_NAME: Final = "guesses.jsonl"
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
        lesson: the lesson, the topic of an exercise, or the patient of a clinic.
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
    return Path(named) if named else Path.cwd() / DEFAULT_ARTIFACT_DIR / _NAME


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
        append_line(path, json.dumps(line._asdict(), ensure_ascii=False).encode("utf-8", "replace"))


def read_guesses(path: Path, who: str = "") -> list[Guess]:
    """Read a file of guesses; lines that are none, such as one cut off by a crash, are left out.

    Args:
        path: the file.
        who: whose it is, where the file does not say.

    Raises:
        MateriaError: the file cannot be read (``not_read``).
    """
    try:
        text = read_plain(path, _LONGEST, follow=True).decode("utf-8", "replace")
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


def merge_classes(paths: Sequence[Path]) -> list[Score]:
    """Read the files of a class.

    Args:
        paths: files, or folders with one file or folder for each learner. Whoever gave no name is called after
            the file, or after the folder that was searched for it.

    Raises:
        MateriaError: there is no file (``not_found``), or one cannot be read.
    """
    files = list(_files(paths))
    if not files:
        raise MateriaError(
            "There is no file of guesses.",
            where=", ".join(map(str, paths)),
            hint=f"name folders that hold {_NAME}, or *.jsonl files",
            kind="not_found",
        )
    return scores(one for path, who in files for one in read_guesses(path, who))


def _files(paths: Sequence[Path]) -> Iterable[tuple[Path, str]]:
    for path in paths:
        if not path.is_dir():
            yield path, path.stem
            continue
        for file in sorted(path.rglob("*.jsonl")):
            inside = file.relative_to(path)
            if file.name == _NAME or len(inside.parts) == 1:
                # A learner's own folder holds the file behind a hidden one.
                folder = path.resolve().name if inside.parts[0].startswith(".") else inside.parts[0]
                yield file, folder if len(inside.parts) > 1 else file.stem


def scores_as_csv(found: Sequence[Score]) -> str:
    """Return scores as CSV, which a spreadsheet reads; no cell begins as a formula does."""
    head = ("who", "lesson", "question", "tries", "right", "points", "sure but wrong")
    return csv_text(
        head,
        (
            (one.who, one.lesson, one.question, one.tries, int(one.right), f"{one.points:g}", int(one.misled))
            for one in found
        ),
    )


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV; a text that a spreadsheet would take for a formula gets a quote before it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        writer.writerow("'" + one if isinstance(one, str) and one[:1] in {*"=+-@\t"} else one for one in row)
    return out.getvalue()


def table_of_learners(
    found: Iterable[Any], columns: Mapping[str, Callable[[list[Any]], str]], empty: str = "(none)"
) -> Table:
    """Return a table with a row for each learner and lesson; each column says something of all that belongs to the row."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for one in found:
        groups.setdefault((one.who, one.lesson), []).append(one)
    rows = [(*key, *(cell(all_) for cell in columns.values())) for key, all_ in sorted(groups.items())]
    return Table(("who", "lesson", *columns), rows, empty)


def class_table(found: Sequence[Score]) -> Table:
    """Return a table of a class: for each learner and lesson, how much is right, in how many tries, what it counts.

    The last column is how often the learner was sure of a wrong answer: what a teacher comes back to.
    """
    columns: dict[str, Callable[[list[Score]], str]] = {
        "right": lambda all_: f"{sum(one.right for one in all_)} of {len(all_)}",
        "tries": lambda all_: str(sum(one.tries for one in all_)),
        "points": lambda all_: f"{sum(one.points for one in all_):g}",
        "sure but wrong": lambda all_: str(sum(one.misled for one in all_)),
    }
    return table_of_learners(found, columns, "nothing was answered yet")


QuestionRow: TypeAlias = tuple[object, JSON] | tuple[object, JSON, str]
"""An answer, the right one, and a line of code that shows how it went."""

_KINDS: Final = (
    (bool, "True or False"),
    (int, "a whole number"),
    (str, "text in quotes, such as 'Socket-1'"),
    (list, "a list, such as ['Socket-1', 'Socket-3']"),
    (dict, "an object, such as {'a': 1}"),
)


def check(**questions: QuestionRow) -> Text:
    """Pass when every question is answered, and answered rightly; otherwise tell all that is missing or wrong.

    The check cell of a lesson uses the ``check`` of its :func:`materia_nb.lessons.checks`, which knows more.

    Args:
        questions: under the variable that holds an answer, the answer and the right one, taken from a cast:
            ``check(next_socket=(next_socket, cast.route[1][0]))``; and, as a third, a line of code that shows
            how it went. ``...`` and None are not an answer.

    Raises:
        MateriaError: an answer is wrong (``wrong_answer``) or missing (``no_answer``); it says what is wrong
            with each, and not what the right one is.
    """
    return judged_answers("", "", {}, questions)


def judged_answers(
    lesson: str,
    seed: str,
    known: Mapping[str, Ask],
    questions: Mapping[str, QuestionRow],
    graph: Graph | None = None,
) -> Text:
    """Do what :func:`check` does, with the forms and explanations that are given, and keep the answers.

    Args:
        lesson: under which they are kept.
        seed: kept with them.
        known: what is known of each question.
        questions: as :func:`check`.
        graph: whose materia may be named in place of their sockets.
    """
    right = missing = 0
    lines = []
    for name, asked in questions.items():
        truth, ask = asked[1], known.get(name) or Ask(kind_of(asked[1]))
        if is_unanswered(asked[0]):
            missing += 1
            lines.append(_missing(name, ask.form))
            continue
        answer = taken(asked[0], truth, graph)
        same = is_right(answer, truth)
        keep(lesson, name, answer, right=same, seed=seed)
        right += same
        lines += [f"\u2713 {name} is right"] if same else _told_wrong(name, answer, asked, ask)
    if right == len(questions):
        return Text("\n".join(lines))
    wrong = len(questions) - right - missing
    counts = [f"{count} {word}" for count, word in ((wrong, "wrong"), (missing, "not answered yet")) if count]
    raise MateriaError(
        f"{right} of {len(questions)} right, {', '.join(counts)}.",
        more=lines,
        hint="put your answers into the cell above, run it, and check again",
        kind="wrong_answer" if wrong else "no_answer",
    )


def is_unanswered(answer: object) -> bool:
    """Whether that is not an answer: ``...`` or None."""
    return answer is None or answer is ...


def taken(answer: object, truth: JSON, graph: Graph | None = None) -> object:
    """Return an answer as it is compared: a tuple is a list, ``3.0`` is 3, and a materia's name is its socket.

    Raises:
        MateriaError: the materia is in several sockets (``ambiguous``).
    """
    if isinstance(answer, tuple):
        answer = list(answer)
    if isinstance(answer, list):
        parts = truth if isinstance(truth, list) and truth else [None]
        return [taken(one, parts[0], graph) for one in answer]
    if isinstance(answer, float) and answer.is_integer() and type(truth) is int:
        return int(answer)
    if graph is not None and isinstance(answer, str) and truth in (*graph.sockets, END, STOP):
        return resolve_target(graph, answer)
    return answer


def is_right(answer: object, truth: JSON) -> bool:
    """Whether an answer is the right one; upper and lower case do not count, nor do spaces around a word."""
    return _alike(answer, truth) and _fold(answer) == _fold(truth)


def _alike(answer: object, truth: JSON) -> bool:
    """Whether both are of one type; one that a cast gave out, and that can only be read (R47), is the same type."""
    return isinstance(answer, type(thawed(truth))) and isinstance(answer, bool) == isinstance(truth, bool)


def told_of(answer: object, truth: JSON, ask: Ask) -> list[str]:
    """Say what is wrong with an answer, without giving the right one away."""
    because = [_what_is_wrong(answer, truth, ask.form)]
    if _alike(answer, truth):
        because.append(ask.explained.get(str(_fold(answer))) or ask.explained.get(ANY, ""))
    return [words for words in because if words]


def _told_wrong(name: str, answer: object, asked: QuestionRow, ask: Ask) -> list[str]:
    lines = [f"\u2717 {name}: {shorten(repr(answer), 80)} is not right."]
    lines += [f"    {words}" for words in told_of(answer, asked[1], ask)]
    if len(asked) == 3:
        lines.append(f"    to see how it went: {asked[2]}")
    return lines


def _what_is_wrong(given: object, truth: JSON, form: str) -> str:
    if not _alike(given, truth):
        return f"The answer is {form}."
    if isinstance(given, list) and isinstance(truth, list):
        pairs = zip(given, truth, strict=False)
        same = [_fold(one) == _fold(other) for one, other in pairs]
        right = same.index(False) if False in same else len(same)
        if given[right:] == [END] and right == len(truth):
            return "All of them are right but the last: end is not a socket."
        if right == 0:
            return "It goes wrong at the first."
        return "Its first is right." if right == 1 else f"Its first {right} are right."
    return ""


def kind_of(truth: JSON) -> str:
    """What an answer to a question looks like, where nothing says more about it than its type."""
    if isinstance(truth, list) and all(isinstance(one, bool) for one in truth):
        return "a list, such as [True, False]"
    return next((words for kind, words in _KINDS if isinstance(truth, kind)), "a value")


class Numbers(Shown):
    """What was drawn for one learner in one lesson; each is an attribute: ``mine.beds``.

    Args:
        lesson: the name of its notebook, such as ``03-loops``.
        learner: from whose name they are drawn; upper and lower case do not count.
        choices: what each is one of.
    """

    def __init__(self, lesson: str, learner: str, choices: Mapping[str, Iterable[Any]]) -> None:
        chance = Random(f"{lesson}:{learner.strip().casefold()}")  # noqa: S311 - chances, no secrets
        self._lesson, self._learner = lesson, learner.strip()
        self._drawn = {name: chance.choice(list(one)) for name, one in choices.items()}
        self._asks = {
            name: Ask(ask.form, folded(ask.explained, self), ask.varies)
            for name, ask in QUESTIONS.get(lesson, {}).items()
        }
        self._graph: Graph | None = None
        self._truths: dict[str, JSON] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_drawn"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._drawn]

    def check(self, graph: Graph | None = None, /, **questions: QuestionRow) -> Text:
        """Pass when every question is answered rightly; see :func:`materia_nb.lessons.check`.

        Args:
            graph: the loadout that is asked about, whose materia may be named in place of their sockets.
            questions: as :func:`materia_nb.lessons.check`.
        """
        self._graph, self._truths = graph, {name: asked[1] for name, asked in questions.items()}
        return judged_answers(self._lesson, self._learner, self._asks, questions, graph)

    @property
    def _table(self) -> Table:
        rows = [(name, _word(one)) for name, one in self._drawn.items()]
        return Table(("name", f"for {self._learner}" if self._learner else "number"), rows)

    def _blocks(self) -> list[Block]:
        return [self._table]


def numbers(lesson: str, /, **choices: Iterable[Any]) -> Numbers:
    """Draw the numbers of a lesson for the learner whom ``MATERIA_LEARNER`` names; without one, the same for everybody.

    Args:
        lesson: the name of its notebook, such as ``03-loops``.
        choices: what each is one of: ``numbers("03-loops", beds=(3, 4, 5)).beds``.
    """
    return Numbers(lesson, os.environ.get(LEARNER, ""), choices)


class AnswerKey(NamedTuple):
    """What is right for one question of one learner, what is known of the question, and the loadout it is about."""

    truth: JSON
    ask: Ask
    graph: Graph | None = None


def key_of(mine: Numbers) -> dict[str, AnswerKey]:
    """Return what a lesson compared with when it was checked, by question."""
    asks, graph = mine._asks, mine._graph  # noqa: SLF001 - of this module, and nothing that a learner is offered
    return {name: AnswerKey(truth, asks[name], graph) for name, truth in mine._truths.items()}  # noqa: SLF001


def shortest_verdicts(play: Callable[..., Cast], goal: Callable[[Cast], object]) -> list[bool]:
    """Return the shortest list of verdicts with which a cast does what is wanted.

    Args:
        play: makes a cast whose agents take their verdicts from those given, one after another, and fail without one.
        goal: whether a cast that ran does it; the search has no end if none does.
    """
    tried: list[list[bool]] = [[]]
    for given in tried:  # grows while it is gone through
        cast = play(*given)
        cast.run()
        if goal(cast):
            return given
        if cast.failure is not None and cast.failure.kind == "agent_error":
            tried += [[*given, one] for one in (True, False)]
    raise ValueError("no verdicts do that")


def _word(one: object) -> str:
    return ", ".join(map(str, one)) if isinstance(one, list | tuple) else str(one)


def _missing(name: str, form: str) -> str:
    return f"\u25cb {name}: not answered yet; the answer is {form}"

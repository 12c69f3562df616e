"""The one list of verbs, which dispatch, help, completion and the docs read; and from a line to the arguments of a verb.

Nothing in a line is expanded, since handoffs are full of braces; ``$name`` alone
stands for the value of a variable, and an unknown one is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from materia_nb.cast import Cast
from materia_nb.cast.workbench import Workbench
from materia_nb.errors import MateriaError, did_you_mean

Completes: TypeAlias = Literal[
    "verb", "loadout", "socket", "materia", "part", "cast", "file", "agent", "pin", "card", "panel"
]
"""What kind of name an argument takes, for tab completion."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb.

    Attributes:
        name: as it is called in help; an option is written ``--name``.
        help: what it is, in a few words.
        kind: ``word``; ``words`` takes all up to ``--``; ``rest`` the remaining line as it stands;
            ``option`` takes a value; ``flag`` none.
        required: whether the verb needs it (not for options and flags).
        whole: whether it must be a whole number.
        completes: what tab completion offers for it.
        choices: the words that it may be, if they are known; tab completion offers them.
    """

    name: str
    help: str
    kind: Literal["word", "words", "rest", "option", "flag"] = "word"
    required: bool = False
    whole: bool = False
    completes: Completes | None = None
    choices: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its name among the parsed arguments."""
        return self.name.lstrip("-").replace("-", "_")

    @property
    def placed(self) -> bool:
        """Whether its place says which it is, rather than its name."""
        return self.kind in ("word", "words", "rest")

    @property
    def shown(self) -> str:
        """How it is written in a usage line."""
        text = self.name.upper() if self.placed else self.name
        if self.kind == "option":
            text = f"{self.name} {self.key.upper()}"
        if self.kind in ("words", "rest"):
            text += "..."
        if self.kind == "words" and self.required:
            return f"{text} --"
        return text if self.required else f"[{text}]"


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a verb: the bench, the parsed arguments, the cell's body if there is one, the user's names."""

    bench: Workbench
    arguments: Mapping[str, Any]
    body: str | None
    names: Mapping[str, Any]

    @property
    def cast(self) -> Cast:
        """The current cast; raises MateriaError when there is none."""
        return self.bench.current

    def get(self, key: str, default: Any = None) -> Any:
        """Return an argument, ``default`` when it was not given."""
        found = self.arguments.get(key)
        return default if found is None else found

    def body_or(self, key: str) -> Any:
        """Return the body of the cell; without one, the argument behind the verb, else None."""
        return self.get(key) if self.body is None else self.body

    def needed(self, key: str, missing: str) -> Any:
        """Return the body of the cell or the argument behind the verb; raises MateriaError when it is empty."""
        found = self.body_or(key)
        if found is None or found == "":
            raise MateriaError(missing, hint="write it behind the verb, or in a cell", kind="usage")
        return found

    def request(self) -> str:
        """Return the request behind the verb, with the body of the cell below it."""
        said = str(self.get("request", ""))
        return said if self.body is None else f"{said}\n{self.body.strip()}".strip()


Handler: TypeAlias = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of ``%materia``: ``cell`` says whether it takes the body of a ``%%materia`` cell."""

    name: str
    summary: str
    handler: Handler
    arguments: tuple[Argument, ...]
    cell: Literal["never", "may", "must"]
    example: str

    @property
    def options(self) -> dict[str, Argument]:
        """Its options and flags by name."""
        return {one.name: one for one in self.arguments if not one.placed}

    @property
    def usage(self) -> str:
        """The usage line."""
        words = " ".join([self.name, *(argument.shown for argument in self.arguments)])
        return f"%%materia {words}" if self.cell == "must" else f"%materia {words}"


VERBS: Final[dict[str, Verb]] = {}
"""Every verb by name, in the order of the help."""


def verb(
    name: str,
    *arguments: Argument,
    cell: Literal["never", "may", "must"] = "never",
    example: str = "",
) -> Callable[[Handler], Handler]:
    """Register a handler as a verb; its docstring is what the help says of it."""

    def register(handler: Handler) -> Handler:
        summary = (handler.__doc__ or "").strip()
        VERBS[name] = Verb(name, summary, handler, arguments, cell, example or f"%materia {name}")
        return handler

    return register


_INSTEAD: Final = (
    (
        "edit change modify",
        "items, set, reword and recommit change the work items, the state, a prompt and an output",
    ),
    ("redo revert rewind rollback", "undo takes an edit back, back goes to a step"),
    ("start begin new ask-for", "cast starts one"),
    ("next go", "step runs one socket, run all that follow"),
    ("retry rerun restart again", "recast runs the socket once more, resend the turn"),
    ("stop kill cancel quit", "abort ends the cast"),
    ("pause", "the Pause button of the panel (show) stops a run; break stops the next one"),
    ("breakpoint watch bp", "break stops in front of a socket, break --on at a change"),
    ("graph draw plot picture", "grid draws the graph"),
    ("ls list", "casts, loadouts and materia list what there is"),
    ("log history timeline route", "steps lists the steps"),
    ("cost tokens", "usage tells tokens and cost"),
    ("time duration profile", "spent tells where tokens, cost and time went"),
    ("name tag note verdict rename annotate", "label says something of a cast or a step"),
    ("remove rm del", "delete removes a cast with everything in its directory"),
    ("diff difference versus", "compare shows where two casts or loadouts differ"),
    ("origin provenance who", "blame shows what made a value of the state what it is"),
    ("explain reason", "why explains a step"),
    ("model models llm", "agent says who answers"),
    ("export html report", "page writes the cast as one HTML page"),
    ("query find search grep jsonpath", "ask looks through the outputs of all steps"),
    ("lint validate verify", "check shows the problems of a loadout"),
    ("fix repair autofix", "mend shows what one change mends, mend --save makes it"),
    ("input output result", "handoff shows what a step was given and handed on"),
    ("refresh reread", "reload reads the config files again"),
    ("update replace take", "redefine takes a changed definition into the running cast"),
)
SYNONYMS: Final[Mapping[str, str]] = {word: hint for words, hint in _INSTEAD for word in words.split()}
"""What people type for a verb that has another name, and what to do instead."""


def find_verb(name: str) -> Verb:
    """Return the verb of that name; raises MateriaError with the nearest one otherwise."""
    try:
        return VERBS[name]
    except KeyError:
        raise MateriaError(
            f"%materia has no verb {name!r}.",
            hint=f"{SYNONYMS.get(name.lower()) or did_you_mean(name, VERBS)} (%materia help lists them all)",
            kind="unknown_verb",
        ) from None


def help_text(name: str | None = None) -> str:
    """Return the help of one verb, or the list of all verbs."""
    if name is not None:
        return verb_help(find_verb(name))
    width = max((len(verb) for verb in VERBS), default=0)
    lines = ["Materia NB: load a loadout, cast it, look at every handoff.", ""]
    lines += [f"  {verb.name:<{width}}  {verb.summary}" for verb in VERBS.values()]
    lines += ["", "%materia help VERB says more about one. $name stands for the value of a variable."]
    return "\n".join(lines)


def verb_help(verb: Verb) -> str:
    """Return what one verb does, its usage, its arguments and an example."""
    lines = [verb.summary, "", f"  {verb.usage}"]
    if verb.cell == "may":
        lines.append(f"  %%materia {verb.name}   with the text in the cell")
    if verb.arguments:
        width = max(len(argument.name) for argument in verb.arguments)
        lines += ["", *(f"  {argument.name:<{width}}  {argument.help}" for argument in verb.arguments)]
    lines += ["", "For example:", *(f"  {line}" for line in verb.example.splitlines())]
    return "\n".join(lines)


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
    places = [argument for argument in verb.arguments if argument.placed]
    position, only_words = 0, False
    while match := _WORD.match(rest, position):
        raw = match.group(1)
        if raw == "--" and not only_words:
            position, only_words = match.end(), True
            if places and places[0].kind == "words" and places[0].key in given:
                places.pop(0)
        elif raw.startswith("--") and not only_words:
            position = _option(verb, rest, match, given, names)
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
    rest: str,
    match: re.Match[str],
    given: dict[str, Any],
    names: Mapping[str, Any],
) -> int:
    name, equals, inline = match.group(1).partition("=")
    argument = verb.options.get(name)
    if argument is None:
        raise _wrong(verb, f"There is no option {name}: {did_you_mean(name, verb.options)}")
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

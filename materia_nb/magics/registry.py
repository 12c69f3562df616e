"""The one list of verbs: dispatch, help, completion and the documentation all read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from materia_nb.cast.workbench import Workbench
from materia_nb.errors import MateriaError, did_you_mean

Completes: TypeAlias = Literal[
    "verb", "loadout", "socket", "materia", "part", "cast", "file", "agent", "pin", "card"
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

    def get(self, key: str) -> Any:
        """Return an argument, None when it was not given."""
        return self.arguments.get(key)

    def body_or(self, key: str) -> Any:
        """Return the body of the cell; without one, the argument behind the verb, else None."""
        return self.get(key) if self.body is None else self.body


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


SYNONYMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("edit", "change", "modify"),
        "items, set, reword and recommit change the work items, the state, a prompt and an output",
    ),
    **dict.fromkeys(("redo", "revert", "rewind", "rollback"), "undo takes an edit back, back goes to a step"),
    **dict.fromkeys(("start", "begin", "new", "ask-for"), "cast starts one"),
    **dict.fromkeys(("next", "go"), "step runs one socket, run all that follow"),
    **dict.fromkeys(
        ("retry", "rerun", "restart", "again"), "recast runs the socket once more, resend the turn"
    ),
    **dict.fromkeys(("stop", "kill", "cancel", "quit"), "abort ends the cast"),
    "pause": "the Pause button of the panel (show) stops a run; break stops the next one",
    **dict.fromkeys(
        ("breakpoint", "watch", "bp"), "break stops in front of a socket, break --on at a change"
    ),
    **dict.fromkeys(("graph", "draw", "plot", "picture"), "grid draws the graph"),
    **dict.fromkeys(("ls", "list"), "casts, loadouts and materia list what there is"),
    **dict.fromkeys(("log", "history", "timeline", "route"), "steps lists the steps"),
    **dict.fromkeys(("cost", "tokens"), "usage tells tokens and cost"),
    **dict.fromkeys(("time", "duration", "profile"), "spent tells where tokens, cost and time went"),
    **dict.fromkeys(
        ("name", "tag", "note", "verdict", "rename", "annotate"), "label says something of a cast or a step"
    ),
    **dict.fromkeys(("remove", "rm", "del"), "delete removes a cast with everything in its directory"),
    **dict.fromkeys(("diff", "difference", "versus"), "compare shows where two casts or loadouts differ"),
    **dict.fromkeys(("origin", "provenance", "who"), "blame shows what made a value of the state what it is"),
    **dict.fromkeys(("explain", "reason"), "why explains a step"),
    **dict.fromkeys(("model", "models", "llm"), "agent says who answers"),
    **dict.fromkeys(("export", "html", "report"), "page writes the cast as one HTML page"),
    **dict.fromkeys(
        ("query", "find", "search", "grep", "jsonpath"), "ask looks through the outputs of all steps"
    ),
    **dict.fromkeys(("lint", "validate", "verify"), "check shows the problems of a loadout"),
    **dict.fromkeys(("fix", "repair", "autofix"), "mend shows what one change mends, mend --save makes it"),
    **dict.fromkeys(("input", "output", "result"), "handoff shows what a step was given and handed on"),
    **dict.fromkeys(("refresh", "reread"), "reload reads the config files again"),
    **dict.fromkeys(
        ("update", "replace", "take"), "redefine takes a changed definition into the running cast"
    ),
}
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

"""What can be done where a cast failed: one table of the kinds of failure, and of the acts that each offers.

The panel, the text of a status and the documentation are made from it, so that each names the same acts.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import ndiff
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.cast.listing import way_words
from materia_nb.cast.snapshot import Snapshot
from materia_nb.engine import decide
from materia_nb.engine.item_edits import WORKED_ON
from materia_nb.engine.session import StepRecord, lanes_at_work
from materia_nb.engine.state import Failure
from materia_nb.handoff.protocol import BASE
from materia_nb.jsonvalue import JSON, MISSING, pretty, same
from materia_nb.utilities.utility_step import beside_config

_ActName: TypeAlias = Literal[
    "take",
    "resend",
    "recast",
    "budget",
    "revive",
    "ask_again",
    "allow_folder",
    "reword",
    "answer",
    "correct",
    "pin",
    "skip",
    "skip_item",
]


class Act(NamedTuple):
    """One way on: its words on a button, what it does, the verbs that do it, and where it is to be had."""

    words: str
    does: str
    verbs: str
    when: str


ACTS: Final[Mapping[_ActName, Act]] = {
    "take": Act(
        "Take the changed {materia} and retry",
        "this cast uses it from here on",
        "edit redefine {materia}, then retry",
        "the workbench has another definition of the materia than the cast",
    ),
    "resend": Act(
        "Retry the turn",
        "ask it again, in the same conversation",
        "retry --turn",
        "a turn of an agent was cut short",
    ),
    "recast": Act("Retry", "run the socket again, from its first prompt", "retry", "always"),
    "budget": Act(
        "Raise the budget",
        "more tokens for this cast, and continue",
        "edit budget N, then retry --limit",
        "the budget is used up",
    ),
    "revive": Act(
        "Retry past the limit",
        "continue, with {more}",
        "retry --limit",
        "a limit was reached",
    ),
    "ask_again": Act(
        "Ask {materia} again",
        "go back before its last answer, which is kept as a branch",
        "back {before}, then step",
        "a limit stopped the cast behind an answer",
    ),
    "allow_folder": Act(
        "Let it work there, and retry",
        "this cast may work from now on in {folders}",
        "allow {folders}, then retry",
        "it would work outside the project",
    ),
    "reword": Act(
        "Change its prompt",
        "for this turn only; then step",
        "edit reword PART",
        "a turn of an agent was cut short",
    ),
    "answer": Act(
        "Answer it by hand",
        "what you write is checked like any answer, and marked as yours",
        "reply ANSWER",
        "the socket owes an answer",
    ),
    "correct": Act(
        "Correct the answer",
        "decide the last step again with another output; the original is kept",
        "edit recommit ANSWER",
        "the step before the failure has an output",
    ),
    "pin": Act(
        "Pin an answer",
        "it is answered so from now on, in this cast",
        "pin {socket} ANSWER, then retry",
        "the socket owes an answer",
    ),
    "skip": Act(
        "Continue without it",
        "by its always edge, with a note; nothing of it comes into the state",
        "skip NOTE",
        "the socket owes an answer",
    ),
    "skip_item": Act(
        "Pass over the item",
        "with a note; the next item is begun, and this one stays in the list as passed over",
        "skip --item NOTE",
        "a work item is being worked on",
    ),
}
"""Every way on, in the order in which they are offered where a kind has no other."""


class FailureKind(NamedTuple):
    """A kind of failure: what happened, in words, as a headline goes on behind a name; and its acts, the likeliest first.

    ``note`` says why an act that one would look for is not among them.
    """

    words: str
    acts: tuple[_ActName, ...]
    note: str = ""


_BY_HAND: Final[tuple[_ActName, ...]] = ("answer", "pin", "skip_item", "skip")
_UTILITY: Final[tuple[_ActName, ...]] = ("take", "recast", *_BY_HAND)
_PASSING: Final[tuple[_ActName, ...]] = ("resend", "recast", "take", "reword", *_BY_HAND)
_SETUP: Final[tuple[_ActName, ...]] = ("take", "resend", "recast", *_BY_HAND)
_SAYING: Final[tuple[_ActName, ...]] = ("reword", "resend", "take", "recast", *_BY_HAND)

FAILURE_KINDS: Final[Mapping[str, FailureKind]] = {
    "utility_exit": FailureKind("ended with an error", _UTILITY),
    "utility_timeout": FailureKind("took too long", _UTILITY),
    "utility_not_started": FailureKind("could not be started", _UTILITY),
    "utility_failed": FailureKind(
        "reported a failure", ("take", "recast", "correct", "pin", "skip_item", "skip")
    ),
    "invalid_output": FailureKind("gave an unusable output", _UTILITY),
    "repair_exhausted": FailureKind("gave no usable answer", ("revive", "take", "recast", *_BY_HAND)),
    "edge_traversals_exhausted": FailureKind(
        "went its way too often", ("revive", "ask_again", "correct", "skip_item")
    ),
    "no_advance_cycles_exhausted": FailureKind(
        "went round without getting on", ("revive", "ask_again", "correct", "skip_item")
    ),
    "assignment": FailureKind(
        "could not be put into the state",
        ("skip_item", "skip"),
        "retry fails again, whatever the answer: a cast keeps its loadout, so fix `assign` there and start a new cast",
    ),
    "stream_left": FailureKind("left items of its lane out", ("recast", *_BY_HAND)),
    "budget": FailureKind("used up the budget", ("budget", "revive")),
    "aborted": FailureKind("was stopped by a person", ("recast", "resend", "revive", *_BY_HAND)),
    "no_folder": FailureKind("has no directory to work in", ("recast", *_BY_HAND)),
    "folder_asks": FailureKind("would work outside the project", ("allow_folder", "recast", *_BY_HAND)),
    "stream_failed": FailureKind(
        "has lanes that did not come to their end", ("allow_folder", "revive", "recast")
    ),
    "agent_error": FailureKind("failed", _PASSING),
    "agent_timeout": FailureKind("took too long", _PASSING),
    "agent_not_started": FailureKind("could not be started", _SETUP),
    "agent_exit": FailureKind("ended with an error", _PASSING),
    "agent_reply_too_long": FailureKind("said too much", _SAYING),
    "rate_limited": FailureKind("accepts no more requests for now", _PASSING),
    "transport": FailureKind("could not be reached", _PASSING),
    "malformed": FailureKind("gave an unreadable answer", _PASSING),
    "answer_cut": FailureKind("was cut short", _SAYING),
    "too_many_calls": FailureKind("used too many tools", _SAYING),
    "context_too_long": FailureKind("got too long a prompt", _SAYING),
    "refused": FailureKind("refused to answer", _SAYING),
    "bad_request": FailureKind("was asked in a way it refuses", _SETUP),
    "denied": FailureKind("may not be asked", _SETUP),
    "bad_key": FailureKind("refused the key", _SETUP),
    "bad_model": FailureKind("has no such model", _SETUP),
    "bad_settings": FailureKind("has a setting that cannot be", _SETUP),
    "no_key": FailureKind("has no key", _SETUP),
    "no_model": FailureKind("has no model", _SETUP),
    "bad_tool": FailureKind("has a tool that it cannot be given", _SETUP),
    "tool_server": FailureKind("needs a tool server that does not run", _SETUP),
    "not_installed": FailureKind("needs a package", _SETUP),
    "unknown_preset": FailureKind("has no such preset", _SETUP),
    "scripted_exhausted": FailureKind("has no scripted answer left", _SETUP),
    "recorded_exhausted": FailureKind("has no recorded answer", _SETUP),
    "pin_exhausted": FailureKind("has no pinned answer", _SETUP),
}
"""Every kind of failure of ours, and how it is mended. An agent of other people may fail with one of its own."""

OTHER: Final = FailureKind("failed", _PASSING)
"""What is offered for a kind that is not ours."""


def went_words(step: StepRecord) -> str:
    """Say in a word or two how a step went on, a failure in the words of its kind."""
    failure = step.decision.failure if step.decision is not None else None
    return way_words(step) if failure is None else f"failed: {FAILURE_KINDS.get(failure.kind, OTHER).words}"


REDEFINED: Final = frozenset(
    {"command", "description", "model", "params", "script", "thinking", "timeoutMs", "tools"}
)
"""The fields of a materia that may change in a running cast: what is run or asked, nothing that decides."""


class Redefinition(NamedTuple):
    """How the definition that a workbench has of a materia differs from the copy of a cast.

    ``old`` and ``new`` are both whole; ``kept`` are the fields that earlier steps of the cast went by, for which it
    cannot be taken.
    """

    materia: str
    old: Mapping[str, JSON]
    new: Mapping[str, JSON]
    kept: tuple[str, ...] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The fields that differ, written as JSON: each line behind ``+``, ``-`` or a blank; what is far from a change is left out."""
        found: list[tuple[str, str]] = []
        for key in _differing(self.old, self.new):
            told = ndiff(_field(key, self.old), _field(key, self.new))
            lines = [(line[0], line[2:]) for line in told if line[0] != "?"]
            near = {at + by for at, (sign, _) in enumerate(lines) if sign != " " for by in (-1, 0, 1)}
            found += [line for at, line in enumerate(lines) if at in near or at == 0]
        return found


def _field(key: str, definition: Mapping[str, JSON]) -> list[str]:
    return pretty({key: definition[key]}).splitlines()[1:-1] if key in definition else []


def _differing(old: Mapping[str, JSON], new: Mapping[str, JSON]) -> list[str]:
    """Name the fields in which two definitions differ, in the order of the new one."""
    keys = dict.fromkeys((*new, *old))
    return [key for key in keys if not same(old.get(key, MISSING), new.get(key, MISSING))]


def redefinition(
    old: Mapping[str, JSON], new: Mapping[str, JSON], materia: str, owner: Path | None
) -> Redefinition | None:
    """Compare a cast's copy of a definition with another one, whose config file is in ``owner``; None when they are the same."""
    changed = _differing(old, new)
    if not changed or same(dict(old), beside_config(new, owner)):
        return None
    return Redefinition(materia, old, new, tuple(sorted({*changed} - REDEFINED)))


def changed_definition(cast: Snapshot) -> Redefinition | None:
    """Return how the workbench's definition of the materia where a cast stopped differs from its copy; None when it does not."""
    socket = cast.graph.sockets.get(cast.failure.socket or "") if cast.failure is not None else None
    definitions = cast.live.definitions
    if socket is None or definitions is None:
        return None
    id_ = socket.materia.id
    known, owners = definitions()
    old, new = cast.graph.document.get("materia", {}).get(id_), known.get(id_)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return None
    return redefinition(old, new, id_, owners.get(id_))


class Offer(NamedTuple):
    """An act that is offered now, in the words of this failure."""

    name: _ActName
    words: str
    does: str
    verbs: str


def offers(cast: Snapshot, changed: Redefinition | None = None) -> list[Offer]:
    """Return what can be done where a cast failed or was aborted, the likeliest first; nothing where it did not.

    Args:
        cast: which.
        changed: how the definition of its materia differs, see :func:`changed_definition`.
    """
    failure = cast.failure
    if failure is None:
        return []
    socket = cast.graph.sockets.get(failure.socket or "")
    says = {"materia": socket.materia.id if socket else "", "socket": socket.id if socket else ""}
    says["folders"] = ", ".join(folders_asked(cast))
    says["more"] = _granted(failure)
    says["before"] = str(len(cast.steps) - 1)
    acts: Mapping[_ActName, Act] = ACTS
    if lanes_at_work(cast.session) is not None:
        acts = {**ACTS, "recast": ACTS["recast"]._replace(does="go on with the lanes that were not accepted")}
    return [
        Offer(name, *(text.format(**says) for text in acts[name][:3]))
        for name in FAILURE_KINDS.get(failure.kind, OTHER).acts
        if _can(cast, name, changed)
    ]


def folders_asked(cast: Snapshot) -> list[str]:
    """Return the directories outside the project that a cast, or lanes of it, stopped before, as ``allow`` takes them (P8)."""
    base = cast.run_dir / cast.session.folder if cast.session.folder else cast.project
    asks = [
        one
        for one in (there.engine for there in _stopped(cast))
        if one.failure is not None and one.failure.kind == "folder_asks" and one.scope != BASE
    ]
    return list(dict.fromkeys(f"{decide.FOLDER}{base / one.scope.cwd}" for one in asks))


def _stopped(cast: Snapshot) -> list[Snapshot]:
    """Return the cast, and those of its lanes that failed."""
    return [cast, *(lane.now for lane in cast.lanes.values() if lane.status == "failed")]


def _granted(failure: Failure) -> str:
    """Say what going past a limit grants (R18, R19)."""
    if failure.allow is not None:
        return f"{failure.allow[1]} more allowed"
    return (
        "one more attempt"
        if failure.kind == "repair_exhausted"
        else "the limit that stopped it granted once more"
    )


def _answered_last(cast: Snapshot) -> bool:
    """Whether a limit stopped the cast behind the answer of its last step."""
    failure = cast.failure
    return bool(cast.steps and failure and failure.blocked and failure.socket == cast.steps[-1].socket)


def _can(cast: Snapshot, name: _ActName, changed: Redefinition | None) -> bool:
    if lanes_at_work(cast.session) is not None and name in ("correct", "ask_again", "skip_item"):
        return False  # they have begun from what that would change
    stopped = _stopped(cast)
    cut_short = cast.prompt_cut_short is not None
    can: dict[_ActName, bool] = {
        "take": changed is not None and not changed.kept,
        "resend": cut_short,
        "reword": cut_short,
        "budget": cast.budget_used_up,
        "revive": any(one.at_limit for one in stopped) and not cast.budget_used_up,
        "allow_folder": bool(folders_asked(cast)),
        "ask_again": _answered_last(cast),
        "correct": bool(cast.steps) and bool(cast.steps[-1].turns),
        **dict.fromkeys(("answer", "pin", "skip"), cast.owed),
        "skip_item": WORKED_ON in cast.standings,
    }
    return can.get(name, True)

"""Changes by a person between steps: edits of the state, prompts, outputs and labels, and returns to an earlier step.

Edits of lists are in :mod:`~materia_nb.engine.item_edits`. Each edit is recorded as an event, so that a journal with
edits reproduces the same states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from materia_nb.engine import entering, outputs
from materia_nb.engine import events as ev
from materia_nb.engine.events import ImpossibleEvent, Transition
from materia_nb.engine.item_edits import ListEdit, edit_lists
from materia_nb.engine.prompt import Prompt, replace_part
from materia_nb.engine.routing import Decision
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Edit, Session, edits_before, state_after
from materia_nb.engine.state import WHOLE_CAST, CastState, Label, Usage
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff import item_issues
from materia_nb.handoff.checks import RefusedAnswer, summarize_issues
from materia_nb.jsonvalue import (
    JSON,
    FrozenDict,
    compact,
    equal_json,
    frozen,
    get_path,
    nested_too_deeply,
    pointer_keys,
    with_patch,
)

VERDICTS: Final = ("good", "bad", "unsure")
_MAX_TAGS: Final = 20
_MAX_NOTE_CHARS: Final = 10_000
# A name begins with a letter and a cast id with a digit, so a name is never a prefix of a cast id.
_NAME_PATTERN: Final = re.compile(r"[^\W\d_][\w .-]{0,63}")
_TAG_PATTERN: Final = re.compile(r"\w[\w.:+-]{0,39}")
_RESERVED_NAMES: Final = frozenset({"latest", "end"})

_MAX_COMPARED_CHARS: Final = 20_000
"""Maximum length of a list that is compared item by item, in characters of JSON; longer lists are replaced entirely."""


def check_items(items: JSON) -> None:
    """Raise MateriaError with all issues if work items break the rules (R9)."""
    issues = list(item_issues(items, "workItems"))
    if issues:
        raise MateriaError(
            f"The work items were not changed. {summarize_issues(issues)}",
            where=issues[0].path,
            hint=issues[0].fix,
            kind="items",
        )


def prompt_after(rules: Rules, state: CastState) -> Prompt | None:
    """Return the new prompt of the waiting agent after an edit, or None if the prompt does not change."""
    visit = state.at
    if state.status != "waiting" or visit is None or visit.turn or rules.sockets[visit.socket].socket.is_utility:
        return None
    return entering.prompt_for(rules, state)


def edit_output(
    rules: Rules, before: CastState, latest: CastState, text: str, artifact: str | None = None
) -> Transition:
    """Apply a corrected output to the last step, with the same validation as for the agent's output.

    Args:
        rules: the rules of the cast.
        before: the state before the step.
        latest: the current state, whose usage does not change.
        text: the corrected output.
        artifact: the path of the file that contains the corrected output.

    Raises:
        RefusedAnswer: the corrected output breaks the rules.
    """
    entry = entering.enter(rules, before)
    visit = entry.state.at
    if entry.state.status != "waiting" or visit is None:
        raise MateriaError("The output of the last step cannot be corrected.", kind="edit_output")
    socket_rules = rules.sockets[visit.socket]
    mode = "final" if visit.mode in socket_rules.free_text_modes else visit.mode
    waiting_state = _with_usage(entry.state, latest)._replace(at=visit._replace(mode=mode))
    reading = socket_rules.protocol.read(text, socket_rules.requirements)
    if reading.error is not None:
        raise RefusedAnswer("The corrected output was refused.", reading.issues, "edit_output")
    step = outputs.output(rules, waiting_state, text, Usage(), entry.prompt, artifact=artifact)
    changes = (*step.state.changed, f"the output of {rules.graph.names[visit.socket]}")
    return step._replace(state=step.state._replace(changed=changes))


def back_to(earlier: CastState, latest: CastState) -> CastState:
    """Return the state after an earlier step with the usage and budget of the latest state."""
    if earlier.status not in ("ready", "complete"):
        raise MateriaError("The step has not finished.", hint="choose an earlier step", kind="back")
    return _with_usage(earlier, latest)


def _with_usage(earlier: CastState, latest: CastState) -> CastState:
    """Return an earlier state with the current usage, warnings, budget and number of side events."""
    return earlier._replace(
        usage=latest.usage,
        warned=latest.warned,
        uncounted_quantities=latest.uncounted_quantities,
        budget=latest.budget,
        side_event_count=latest.side_event_count,
    )


def edits_since(rules: Rules, session: Session, number: int) -> tuple[Edit, ...]:
    """Return the edits that must be applied again after going back to step ``number``, oldest first."""
    skipped_numbers = {step.number for step in session.steps[number:] if step.skipped}
    newer = session.edits[len(edits_before(rules, session, session.steps[:number])) :]
    return tuple(edit for edit in newer if not (edit.visit is not None and edit.step in skipped_numbers))


def describe_lost_changes(rules: Rules, session: Session, number: int) -> list[str]:
    """Return descriptions of the changes after step ``number`` that cannot be applied again, oldest first."""
    lost_changes: list[str] = []
    for record in session.steps[number:]:
        if any(turn.mode == "correction" for turn in record.turns):
            lost_changes.append(f"your correction of the output of step {record.number}")
        if record.reworded:
            lost_changes.append(f"your change to the prompt of step {record.number}")
    if total_limit_increase(session.state) > total_limit_increase(state_after(rules, session, session.steps[:number])):
        lost_changes.append("the raised limit")
    return lost_changes


def total_limit_increase(state: CastState) -> int:
    """Return the total amount by which limits were raised, ignoring repair limits, which apply only to one visit."""
    return sum(amount for key, amount in state.extra.items() if key[0] != "repair")


def reapply_edit(lost_edit: Edit, data: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Apply an edit again to the data of another state.

    Raises:
        MateriaError: the edit abandoned an item, or it replaces a value that differs from the value at the time of the
            edit (``edit``).
    """
    if lost_edit.visit is not None:
        raise MateriaError("The edit abandoned an item that was in progress.", kind="edit")
    paths = [tuple(path.split(".")) for path in lost_edit.lists]
    pointers = (change[name] for change in lost_edit.patch for name in ("path", "from") if name in change)
    paths += (_path_to_list(lost_edit.before.data, pointer_keys(pointer)) for pointer in pointers)
    for path in paths:
        if not equal_json(get_path(data, path), get_path(lost_edit.before.data, path)):
            raise MateriaError(f"{'.'.join(path)} was different when the edit was made.", kind="edit")
    return apply_patch(data, lost_edit.patch)


def _path_to_list(data: JSON, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the part of a path up to its first list, because an index is valid only for one version of the list."""
    for depth, key in enumerate(keys):
        if not isinstance(data, dict):
            return tuple(keys[:depth])
        data = data.get(key)
    return tuple(keys)


def describe_changes(patch: Sequence[Mapping[str, JSON]]) -> list[str]:
    """Return the names of the state values that a patch changes, for use in an agent's prompt (R50)."""
    keys = dict.fromkeys(str(change["path"]).split("/")[1] for change in patch if "/" in str(change.get("path")))
    names = (key.replace("~1", "/").replace("~0", "~") for key in keys)
    return [
        "the work items" if key == "workItems" else "the handoffs" if key == "context" else f"state.{key}"
        for key in names
    ]


def patch_between(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    """Return the JSON Patch (RFC 6902) that changes ``before`` into ``after``."""
    return tuple(_changes(before, after, ""))


def _changes(before: Mapping[str, JSON], after: Mapping[str, JSON], path: str) -> Iterator[dict[str, JSON]]:
    """Yield the changes between two objects as JSON Patch operations.

    Short lists are compared item by item. Longer lists are replaced, because the comparison takes quadratic time.
    """
    import jsonpatch

    for key in [*before, *(key for key in after if key not in before)]:
        pointer = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield {"op": "remove", "path": pointer}
            continue
        new = after[key]
        if key not in before:
            yield {"op": "add", "path": pointer, "value": new}
            continue
        old = before[key]
        if old is new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changes(old, new, pointer)
        elif not equal_json(old, new):
            are_short = _is_short_list(old) and _is_short_list(new)
            items = jsonpatch.make_patch({"": old}, {"": new}).patch if are_short else ()
            if are_short and _patch_produces(items, {"": old}, {"": new}):
                yield from (_prefixed(pointer, change) for change in items)
            else:
                yield {"op": "replace", "path": pointer, "value": new}


def _patch_produces(patch: Sequence[Mapping[str, JSON]], before: JSON, after: JSON) -> bool:
    """Return True if applying a patch to ``before`` produces ``after``.

    A patch that moves values between nested lists can produce a different result.
    """
    try:
        return equal_json(apply_patch(before, patch), after)
    except MateriaError:
        return False


def _prefixed(path: str, change: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a patch operation with ``path`` prepended to its JSON Pointers."""
    return {
        name: path + value.removeprefix("/") if name in ("path", "from") else value for name, value in change.items()
    }


def _is_short_list(value: JSON) -> bool:
    return isinstance(value, list) and len(compact(value)) <= _MAX_COMPARED_CHARS


def apply_patch(data: Mapping[str, JSON], patch: Sequence[Mapping[str, JSON]]) -> Mapping[str, JSON]:
    """Apply a JSON Patch to ``data`` and return the result.

    Raises:
        MateriaError: the patch does not match the data (``damaged_journal``).
    """
    try:
        changed_data: Mapping[str, JSON] = with_patch(data, patch)
    except RecursionError as error:
        raise nested_too_deeply() from error
    except (MateriaError, LookupError, TypeError) as error:
        raise MateriaError(
            f"An edit in the journal does not match the state before the edit: {error}.",
            hint="restore the run directory from a copy, because its journal or an output was changed or lost",
            kind="damaged_journal",
        ) from error
    return changed_data


# -- applying edit events to a session ---------------------------------------------------


def _apply_state_edit(rules: Rules, session: Session, event: ev.StateEdited) -> Session:
    """Apply a person's edit of the state.

    A waiting agent gets a new prompt. If the edit removed the item of the current visit, the visit ends (R46).
    """
    before = session.state
    data = apply_patch(before.data, event.patch)
    list_edits = {path: ListEdit.read(value) for path, value in event.lists.items()}
    result = edit_lists(rules, before, data, list_edits)
    changes = tuple(dict.fromkeys((*before.changed, *describe_changes(event.patch))))
    after = result.state._replace(changed=changes)
    ends = before.next is None and after.next is not None
    new_edit = Edit(
        event.ts,
        before.steps,
        tuple(map(frozen, event.patch)),
        tuple(map(frozen, event.inverse)),
        before,
        after,
        session.prompt,
        FrozenDict(result.lists),
        event.said,
        session if ends else None,
    )
    session = session._replace(edits=(*session.edits, new_edit))
    if ends:
        record = session.steps[-1]
        old_decision = record.decision or Decision(record.number, "person", None, record.at)
        decision = old_decision._replace(by="person", target=after.next, failure=None)
        session = session.with_latest(decision=decision, ended=event.ts, is_recomputable=False)
        return session.without_conversation()._replace(state=after, noted_before=0, spent=())
    session = session._replace(state=after)
    prompt = prompt_after(rules, after)
    return session if prompt is None else _replace_waiting_prompt(session, prompt)


def _replace_waiting_prompt(session: Session, prompt: Prompt) -> Session:
    """Replace the waiting prompt in the session and in the record of its step."""
    if prompt is session.prompt:
        return session
    if session.steps and session.steps[-1].prompt is session.prompt:
        session = session.with_latest(prompt=prompt)
    return session._replace(prompt=prompt)


def _apply_prompt_edit(_: Rules, session: Session, event: ev.PromptEdited) -> Session:
    if session.prompt is None:
        raise ImpossibleEvent(event, "no prompt is waiting")
    changed_session = _replace_waiting_prompt(session, replace_part(session.prompt, event.part, event.text))
    return changed_session.with_latest(reworded=True) if session.steps else changed_session


_VISIT_FIELDS: Final = "steps prompt change_request earlier_turns calls open_calls noted_before spent".split()  # noqa: SIM905


def _apply_undo(_: Rules, session: Session, event: ev.EditUndone) -> Session:
    if not session.edits:
        raise ImpossibleEvent(event, "no edit can be undone")
    last = session.edits[-1]
    session_before = last.visit
    if session_before is not None:  # the edit ended the visit: restore its record and conversation
        session = session._replace(**{name: getattr(session_before, name) for name in _VISIT_FIELDS})
    session = session._replace(state=last.before, edits=session.edits[:-1])
    return session if last.prompt is None else _replace_waiting_prompt(session, last.prompt)


def _apply_label(_: Rules, session: Session, event: ev.Labelled) -> Session:
    key = (event.branch, event.step)
    if key != WHOLE_CAST and not any(
        (label_key.branch, label_key.number) == key
        for line in (session.steps[event.step - 1 : event.step], *session.abandoned)
        for label_key in line
    ):
        raise ImpossibleEvent(event, f"step {event.step} does not exist")
    label = Label(event.name, event.tags, event.note, event.verdict, event.by)
    labels = {label_key: saved_label for label_key, saved_label in session.labels.items() if label_key != key}
    if not label.empty:
        labels[key] = label
    earlier_labels = session.labels_before
    if not event.undoes:
        earlier_labels = (*earlier_labels, (key, session.labels.get(key, Label())))
    elif not earlier_labels or earlier_labels[-1][0] != key:
        raise ImpossibleEvent(event, "no change of this label can be undone")
    else:
        earlier_labels = earlier_labels[:-1]
    return session._replace(labels=FrozenDict(labels), labels_before=earlier_labels)


# -- labels ------------------------------------------------------------------------------


def changed_label(
    before: Label,
    *,
    name: str | None,
    tag: str | Iterable[str],
    untag: str | Iterable[str],
    note: str | None,
    verdict: str | None,
    by: str,
) -> Label:
    """Return a label with some fields changed; None leaves a field unchanged, and "" clears it.

    Raises:
        MateriaError: a name, tag, note or verdict is invalid (``bad_label``).
    """
    tags = [tag_name for tag_name in before.tags if tag_name not in set(_parse_tags(untag))]
    tags += [tag_name for tag_name in _parse_tags(tag) if tag_name not in tags]
    new_label = Label(
        before.name if name is None else name.strip(),
        tuple(tags),
        before.note if note is None else note.strip(),
        before.verdict if verdict is None else verdict.strip(),
        by.strip() or "person",
    )
    _check_label(new_label)
    return new_label


def _parse_tags(tags: str | Iterable[str]) -> list[str]:
    """Return the tags as a list; a string is split at commas and spaces."""
    if isinstance(tags, str):
        return [part for part in re.split(r"[,\s]+", tags) if part]
    return [str(tag).strip() for tag in tags]


def _check_label(label: Label) -> None:
    if label.name and (not _NAME_PATTERN.fullmatch(label.name) or label.name in _RESERVED_NAMES):
        raise _bad_label(
            f"{label.name[:80]!r} is not a valid name.",
            "start with a letter; use only letters, digits, spaces, dots, dashes and underscores; at most 64 characters",
        )
    for tag in label.tags:
        if not _TAG_PATTERN.fullmatch(tag):
            raise _bad_label(
                f"{tag[:80]!r} is not a valid tag.",
                "use one word of letters, digits and . : + - _, at most 40 characters",
            )
    if len(label.tags) > _MAX_TAGS:
        raise _bad_label(
            f"The label would have {len(label.tags)} tags, but at most {_MAX_TAGS} are allowed.",
            "use `untag` to remove some tags",
        )
    if len(label.note) > _MAX_NOTE_CHARS:
        raise _bad_label(
            f"The note has {len(label.note):,} characters, but at most {_MAX_NOTE_CHARS:,} are allowed.",
            "shorten the note",
        )
    if label.verdict and label.verdict not in VERDICTS:
        raise _bad_label(f"{label.verdict[:80]!r} is not a verdict.", did_you_mean(label.verdict, VERDICTS))


def _bad_label(message: str, hint: str) -> MateriaError:
    return MateriaError(message, hint=hint, kind="bad_label")


EVOLVE: Final[Mapping[type[ev.Event], Callable[[Rules, Session, Any], Session]]] = {
    ev.StateEdited: _apply_state_edit,
    ev.PromptEdited: _apply_prompt_edit,
    ev.EditUndone: _apply_undo,
    ev.Labelled: _apply_label,
}
"""The functions that apply edit events to a session, by event class, for :func:`materia_nb.engine.evolve.evolve`."""

"""Test that a session after going back equals the earlier session, except for fields declared to be kept."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from drawn_loadouts import answer, loadouts, rules_of
from materia_nb.engine import decide, edit
from materia_nb.engine import events as ev
from materia_nb.engine.events import CastBack, CastStart
from materia_nb.engine.evolve import begin_session, evolve, fold
from materia_nb.engine.session import FollowsSteps, Session, edits_before, field_lifetimes
from materia_nb.engine.state import Failure, Label, Pin
from materia_nb.errors import MateriaError
from materia_nb.jsonvalue import FrozenDict

KEPT = {name for name, lifetime in field_lifetimes().items() if lifetime == "kept"}
OF_TURN = {name for name, lifetime in field_lifetimes().items() if lifetime == "of turn"}
FOLLOWS_STEPS = {name for name, lifetime in field_lifetimes().items() if isinstance(lifetime, FollowsSteps)}


def random_command(rng: Random, rules, session: Session):
    """Return a random valid command and its arguments."""
    number, visit = rng.random(), session.state.at
    key = rng.choice([(0, 0), *((step.branch, step.number) for step in session.steps)])
    command = {
        "ready": (decide.enter,),
        "waiting": (decide.answer, decide.Answer(visit and answer(rng, rules.sockets[visit.socket]))),
    }.get(session.state.status, (rng.choice([decide.retry, decide.raise_limit, decide.retry_turn]),))
    if number < 0.1:
        command = decide.label, key, Label(name=f"n{number}")
    elif number < 0.15:
        command = decide.record, ev.Pinned(name="Plan", **Pin("text", "a text", "x").as_json())
    elif number < 0.25:
        command = decide.edit_state, {**session.state.data, "k": number}, {}
    elif number < 0.35 and visit:
        command = decide.fail, Failure("outside", "it broke", visit.socket), 1
    elif visit and visit.mode == "draft" and visit.drafts:
        command = (decide.finalize,)
    return command


@settings(max_examples=8, deadline=None)
@given(loadouts(), st.integers())
def test_session_after_going_back_equals_the_earlier_session(document, seed):
    rules, rng = rules_of(document), Random(seed)
    session = begin_session(rules, CastStart(request="x"))
    after_step, entered = {0: session}, {}
    for ts in range(1, 30):
        command, *arguments = random_command(rng, rules, session)
        try:
            events = command(rules, session, *arguments, ts)
            session = fold(rules, session, events)
        except MateriaError:
            continue
        number = len(session.steps)
        if session.state.status == "ready" and edits_before(rules, session, session.steps) == session.edits:
            after_step[number] = session  # no edit was made since, which would be applied again
        if session.state.status == "waiting" and len(events) == 1 and command is decide.enter:
            entered[number] = session
    for number, then in after_step.items():
        check_going_back(rules, session, number, then, entered.get(number + 1))


def check_going_back(rules, session: Session, number: int, then: Session, entered: Session | None) -> None:
    back = evolve(rules, session, CastBack(step=number))
    for name in FOLLOWS_STEPS - {"state", "steps"}:
        assert getattr(back, name) == getattr(then, name), name
    assert list(back.steps) == list(then.steps)
    assert back.state == edit.back_to(then.state, session.state)
    for name in OF_TURN:
        assert getattr(back, name) == Session._field_defaults[name], name
    for name in KEPT - {"abandoned", "abandoned_streams"}:
        assert getattr(back, name) == getattr(session, name), name
    if entered is None or entered.edits != then.edits or back.state.status != "ready":
        return
    again = fold(rules, back, decide.enter(rules, back, 0))
    for name in OF_TURN - {"prompt"}:  # which tells the number of turns that the cast has had
        assert getattr(again, name) == getattr(entered, name), name
    assert FrozenDict(again.turns) == entered.turns


def test_every_session_field_is_listed_as_kept_or_restored_by_going_back():
    assert set(Session._fields) == KEPT | OF_TURN | FOLLOWS_STEPS
    assert not KEPT & OF_TURN

"""How a step of a cast is made: the only place where engine, agents, utilities and store meet.

Every change is written to the journal before it is believed, so the journal always
rebuilds what a cast holds.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from materia_nb.agents.base import Asking, Called, Noted, Said, Spent, Telling, Turn, turn_kind
from materia_nb.agents.registry import AgentTable
from materia_nb.agents.sound import SoundReply, agent_failure, sound, sound_usage
from materia_nb.engine import step as engine
from materia_nb.engine.facts import learned_from
from materia_nb.engine.rules import Rules
from materia_nb.engine.state import CastState, Failure, Visit
from materia_nb.errors import MateriaError
from materia_nb.handoff.contract import Grant
from materia_nb.jsonvalue import JSON
from materia_nb.stops import Stops
from materia_nb.store import derived
from materia_nb.store.context import change_context
from materia_nb.store.envelopes import PROTOCOL as ENVELOPE
from materia_nb.store.envelopes import keep_envelope
from materia_nb.store.evidence import missing_evidence
from materia_nb.store.files import DiskError, to_bytes
from materia_nb.store.history import History, StepRecord
from materia_nb.store.journal import read_journal
from materia_nb.store.replay import Replay, replay
from materia_nb.store.rundir import RunDir, branch_suffix, output_name
from materia_nb.utilities.runner import command_record, run_utility, stdin_document

_WORDS: Final = {
    "socket_refinement": "refinement",
    "socket_worked": "work",
    "socket_held": "held",
    "socket_continued": "continued",
}
"""What the artifact of an output is called that did not complete its socket, by its event; else ``refused``."""


class Steps(Stops):
    """The part of a cast that makes steps and keeps them; ``Cast`` is the class to use.

    Attributes:
        project: the directory that utilities and agents work in.
        agents: who answers.
        raised: what an agent raised last in this kernel, None when none did.
    """

    raised: Exception | None = None

    project: Path
    agents: AgentTable
    _files: RunDir
    _utilities: tuple[Path, ...]
    _turns: Counter[str]
    _derived: int
    _astray: bool
    _grant: Grant | None

    def _step(self) -> StepRecord | None:
        with self._hold():
            self._begin()
            return self._advance()

    def _advance(self) -> StepRecord | None:
        if self.status == "ready":
            self._enter()
        elif self.status != "waiting":
            raise self._over()
        record = None
        if (visit := self.waiting_at) is not None:
            if self.rules.sockets[visit.socket].socket.is_utility:
                self._run_utility(visit)
            else:
                self._ask()
            record = self.steps[-1]
        if self.status != "ready":
            self._write_derived()
        return record

    def _enter(self) -> None:
        step = engine.enter(self.rules, self.now)
        number = {"step": step.state.steps}
        events = [(event.type, {**event.data, **number}) for event in step.events]
        self._commit(events, lambda ts: self._history.entered(step, ts))
        self._told()

    def _run_utility(self, visit: Visit) -> None:
        socket = self.rules.sockets[visit.socket].socket
        materia, now = socket.materia, self.now
        item = visit.item
        document = stdin_document(
            materia=materia,
            cwd=self.project,
            run_dir=self.run_dir,
            request=now.request,
            cast_id=self.id,
            socket_id=visit.socket,
            state=now.data,
            item=item.value if item else None,
            item_key=item.key if item else None,
            item_label=item.label if item else None,
            cursor=(item.cursor, item.position) if item else None,
            cursors=now.cursors,
        )
        about = engine.about(self.rules, visit)
        base = output_name(visit.socket, visit.visit, None, self._branch())
        name = self._files.write_json(f"{base}.input.json", document)
        self._commit([("utility_input", {**about, "artifact": name, "visit": visit.visit})], _nothing)
        names = (f"{base}.command.stdout.txt", f"{base}.command.stderr.txt")
        result = run_utility(
            materia,
            document,
            project=self.project,
            utilities=self._utilities,
            artifacts=names,
            stop=self.stop,
        )
        record = command_record(materia, result, names)
        self._files.write(names[0], result.process.stdout)
        self._files.write(names[1], result.process.stderr)
        self._files.write_json(f"{base}.command.json", record)
        self._commit([("utility_command", {**about, **record, "visit": visit.visit})], _nothing)
        if result.failure is None:
            self._arrived(SoundReply(result.stdout, None, {}))
        elif result.failure.kind != "interrupted":
            self._fail(result.failure.kind, result.failure.message, engine.CORRECT_THE_UTILITY)

    def _ask(self) -> None:
        """Ask the agent until the visit is done or a person must answer.

        Whatever an agent raises, short of an interrupt, fails the cast: the journal says why,
        and recast asks again.
        """
        while (visit := self.waiting_at) is not None and not self.stop.is_set():
            if self.asking or (visit.drafts and visit.mode == "draft" and self._history.message is None):
                return  # a person decides first: about tool calls, or about a draft
            drafts = visit.drafts
            agent = self.agents.for_turn(visit.socket, self._materia(visit).id)
            self._saying = []
            try:
                answer = agent.answer(self._turn(visit))
                if isinstance(answer, Asking):
                    self._asks(visit, answer)
                    return
                reply = None if answer is None else sound(answer, f"The agent {agent.name}")
            except Exception as error:  # noqa: BLE001 - agents are other people's code
                self.raised = error.__cause__ if isinstance(error.__cause__, Exception) else error
                if self.stop.is_set() and getattr(error, "kind", None) == "interrupted":
                    return
                self._fail(*agent_failure(agent, visit.socket, error))
                return
            finally:
                self._saying = []
                self._heard()
            if reply is None:
                return
            self._arrived(reply)
            if (now := self.waiting_at) is not None and now.drafts > drafts:
                return  # a draft is for the person to judge

    def _turn(self, visit: Visit) -> Turn:
        materia = self._materia(visit)
        item, here = visit.item, self.rules.sockets[visit.socket]
        free = here.any_text(visit.mode)  # anything may be said before the final answer
        return Turn(
            socket_id=visit.socket,
            materia_id=materia.id,
            materia_label=materia.label,
            visit=visit.visit,
            kind=turn_kind(visit.mode, first=not visit.drafts),
            prompt=self._history.asked,
            conversation=self.conversation,
            item_key=item.key if item else None,
            item_label=item.label if item else None,
            tools=materia.tools,
            model=materia.model,
            thinking=materia.thinking,
            wants=None if free else here.wants,
            schema=None if free else here.schema,
            request=self.now.request,
            cast_id=self.id,
            project=self.project,
            stop=self.stop,
            index=self._turns[visit.socket],
            materia_index=self._turns[f"materia {materia.id}"],
            turn_of_visit=visit.turn,
            grant=self._grant,
            allowed=self.allowed,
            calls=(*self.calls, *self._history.asking),
            tell=lambda telling: self._take(visit, telling),
        )

    def _asks(self, visit: Visit, asking: Asking) -> None:
        """The agent cannot go on before a person has decided about tool calls."""
        calls = list(asking.calls)
        event = {**engine.about(self.rules, visit), "calls": [call.as_json() for call in calls]}
        self._commit([("tool_asked", event)], lambda _: self._history.asks(calls))
        self._told()

    def _reopen(self) -> None:
        """Let the turn that was cut short wait for its answer again."""
        step = engine.resend(self.rules, self.now)
        self._commit(step.events, lambda ts: self._history.resent(step, ts))
        self._told()

    def _take(self, visit: Visit, telling: Telling) -> None:
        """Take what an agent tells while it answers; from a turn that is over, nothing is taken."""
        now = self.waiting_at
        if now is None or (now.step, now.turn) != (visit.step, visit.turn):
            return
        about = engine.about(self.rules, visit)
        match telling:
            case Said(text, fresh):
                if fresh:
                    self._saying = []
                self._saying.append(text)
                self._heard()
                return
            case Called(call):
                event = ("tool_call", {**about, "call": call.as_json()})
                if self._grant is not None and call.args.get("command") == self._grant.exact_content:
                    self._grant = None  # it is for one use
                self._commit([event], lambda _: self._history.called(call))
            case Noted(text):
                told = to_bytes(text).decode()
                self._commit([("agent_note", {**about, "text": told})], lambda _: self._history.noted(told))
            case Spent(usage):
                used = sound_usage(usage, f"The agent of {visit.socket}")
                state = engine.spend(self.now, used)
                event = ("turn_spent", {**about, "usage": used._asdict()})
                self._commit([event], lambda _: self._history.spent(used, state))
        self._told()

    def _arrived(self, reply: SoundReply) -> None:
        """An output is there: decide, keep it on disk, then in the journal, then here."""
        visit = self._visit()
        text = to_bytes(reply.text).decode()
        step = engine.output(self.rules, self.now, text, reply.usage, self._history.prompt)
        name = self._files.write_text(self._output_name(visit, step), text)
        events = [(event.type, self._with_output(event, name, reply, step)) for event in step.events]

        missing: list[str] = []
        if self.rules.sockets[visit.socket].protocol.name == ENVELOPE:
            missing = missing_evidence(step.reading, self.project, self.run_dir)
        if missing:
            about = engine.about(self.rules, visit)
            events.insert(1, ("evidence_missing", {**about, "visit": visit.visit, "paths": missing}))

        self._grant = None  # what is left of it ends with the turn

        def keep(ts: int) -> None:
            if not self.rules.sockets[visit.socket].socket.is_utility:
                self._turns[visit.socket] += 1
                self._turns[f"materia {self._materia(visit).id}"] += 1
            self._history.answered(step, text, name, reply.usage, ts, reply.meta)
            self._history.lacking(missing)

        before = self.now
        self._commit(events, keep)
        self._keep_beside(visit, step, before)
        self._told()

    def _output_name(self, visit: Visit, step: engine.Step) -> str:
        kind = step.events[0].type
        branch = self._branch()
        if kind == "socket_complete":
            return output_name(visit.socket, visit.visit, _key(visit), f"{branch}.md")
        # Numbered by the turns of the visit, so that no recast or revival writes over an earlier one.
        number = len(self.steps[-1].turns) + 1
        word = _WORDS.get(kind, "refused")
        return output_name(visit.socket, visit.visit, _key(visit), f"{branch}.{word}-{number}.md")

    def _branch(self) -> str:
        return branch_suffix(len(self._history.abandoned))

    def _with_output(
        self, event: engine.Event, name: str, reply: SoundReply, step: engine.Step
    ) -> Mapping[str, JSON]:
        if event.type not in derived.OUTPUT_TYPES:
            return event.data
        data = {**event.data, "artifact": name}
        if reply.usage is not None:
            data["usage"] = reply.usage._asdict()
        if reply.meta:
            data["meta"] = reply.meta
        if event.type == "socket_complete" and step.decision is not None and step.decision.target:
            data["next"] = step.decision.target
        return data

    def _keep_beside(self, visit: Visit, step: engine.Step, before: CastState) -> None:
        """Keep what others than this cast read: the envelope, and what was learned about the project.

        The journal has it already, so a disk that refuses is told and stops nothing.
        """
        here = self.rules.sockets[visit.socket]
        if here.protocol.name == "sparse":
            return
        done = step.events[0].type == "socket_complete"
        reading = step.reading or (before.hold.reading if before.hold else None)
        try:
            keep_envelope(
                self.run_dir, self.rules, before, visit, reading, self.steps[-1].ended or 0, done=done
            )
            if step.state.knowledge is not before.knowledge and reading is not None:
                value = reading.value
                change_context(
                    self.run_dir.parent,
                    lambda stored: learned_from(self.rules, here, before, value, stored).knowledge,
                )
        except MateriaError as error:
            self.messages.append(" ".join(str(error).split()))

    def _fail(self, kind: str, message: str, hint: str) -> None:
        """The waiting visit failed for a reason that the engine cannot know."""
        visit = self._visit()
        step = engine.fail(self.now, Failure(kind, to_bytes(message).decode(), visit.socket, hint))
        events = tuple(event._replace(data={**event.data, "hint": hint}) for event in step.events)
        self._move(step._replace(events=events))

    def _move(self, step: engine.Step) -> None:
        self._commit(step.events, lambda ts: self._history.moved(step, ts))
        self._told()
        if step.state.status in ("failed", "aborted"):
            self._write_derived()

    def write_derived(self) -> None:
        """Write what follows from the journal: prompts, parsed outputs, manifest and usage (R29, R30).

        Done when the cast pauses or ends, for the steps since the last time, so that
        what a step costs does not grow with the cast.
        """
        with self._hold():
            self._holder = threading.get_ident()
            self._write_derived()

    def _write_derived(self) -> None:
        if self._journal is not None:
            self._derived = derived.write(self._files, self.rules, self._history, self._derived)

    def _clear_stop(self) -> None:
        """Forget an earlier stop; under the lock, so that one which still waits to be heeded is not forgotten."""
        with self._hold():
            self._begin()
            self.stop.clear()

    def _needs_decided(self) -> None:
        if self.asking:
            raise MateriaError(
                "Tool calls wait for your leave.",
                hint="approve or deny them first, or reply in the agent's place",
                kind="asking",
            )

    def _hold(self) -> threading.Lock:
        """The lock to write under; an error when this thread holds it already and would wait for itself."""
        if self._writer.locked() and self._holder == threading.get_ident():
            raise MateriaError(
                "The cast is in the middle of a step.",
                hint="an agent, a watcher or a utility's caller cannot go on with the cast that waits for it",
                kind="busy",
            )
        return self._writer

    def _begin(self) -> None:
        """Begin to write, under the lock."""
        self._holder = threading.get_ident()
        self._needs_writable()
        if self._astray:
            self._recover()

    def _commit(self, events: Sequence[tuple[str, Mapping[str, JSON]]], keep: Callable[[int], None]) -> None:
        """Write events to the journal, then believe them: ``keep`` gets their time stamp.

        An interrupt between the two would leave this object behind its journal, so it is
        then rebuilt from there.
        """
        self._needs_writable()
        assert self._journal is not None  # noqa: S101 - _needs_writable raises otherwise
        try:
            self._astray = True
            keep(self._journal.append(events))
            self._astray = False
        except DiskError:
            self._astray = False  # nothing of the events stayed, and nothing was believed
            raise
        except BaseException:
            self._recover()
            raise

    def _recover(self) -> None:
        """Rebuild the history from the journal."""
        done: Replay = replay(self.rules, read_journal(self._files.journal).lines, self._files.read_text)
        self._history = done.history
        self._turns = turn_counts(done.history, self.rules)
        self._astray = False

    def _visit(self) -> Visit:
        visit = self.waiting_at
        if visit is None:
            raise MateriaError(
                f"No socket is waiting for an answer; the cast is {self.status}.",
                hint="step first",
                kind="not_waiting",
            )
        return visit

    def _materia(self, visit: Visit) -> Any:
        return self.rules.sockets[visit.socket].socket.materia

    def _needs_writable(self) -> None:
        if self._journal is None:
            raise MateriaError(
                "This cast was opened to be looked at.",
                where=str(self.run_dir),
                hint="resume it to go on with it",
                kind="read_only",
            )

    def _over(self) -> MateriaError:
        failure, hold = self.failure, self.held
        if hold is not None:
            ways = "approve or deny" if hold.needs == "consent" else "answer"
            return MateriaError(
                f"The cast is held ({hold.action}): {hold.reason}",
                where=self.now.at.socket if self.now.at else None,
                hint=f"{ways}, decide in the agent's place, correct its output (recommit), or abort",
                kind="held",
            )
        if failure is None:
            return MateriaError("The cast is complete.", hint="cast again to start another", kind="over")
        return MateriaError(failure.message, where=failure.socket, hint=failure.hint, kind=failure.kind)


def _nothing(_: int) -> None:
    """What a line means for the history that only says what was run."""


def _key(visit: Visit) -> str | None:
    return visit.item.key if visit.item else None


def turn_counts(history: History, rules: Rules) -> Counter[str]:
    """Count the turns that each socket, and each materia (``materia <id>``), has had."""
    counts: Counter[str] = Counter()
    for step in history.steps:
        socket = rules.sockets[step.socket].socket
        if not socket.is_utility:
            asked = sum(turn.mode != "correction" for turn in step.turns)  # nobody was asked for a correction
            counts[step.socket] += asked
            counts[f"materia {socket.materia.id}"] += asked
    return counts

"""The panel of a cast, to be gone on with by mouse and keyboard alone: what each message of its page does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, Final

from materia_nb.cast import Cast
from materia_nb.cast.breakpoint import breakpoint_of, condition_of
from materia_nb.cast.cases import SUFFIX
from materia_nb.cast.edits import Approvals
from materia_nb.cast.formatting import nth
from materia_nb.cast.repairs import changed_definition, folders_asked
from materia_nb.cast.views.compare_view import CompareView, StepCompareView
from materia_nb.display.blocks import Block, Line
from materia_nb.display.escape import part
from materia_nb.errors import MateriaError, counted, did_you_mean, needs_one_of
from materia_nb.insight.compare import visit_before
from materia_nb.insight.diff import Side
from materia_nb.jsonvalue import MISSING, get_path, pretty
from materia_nb.loadout.graph import END
from materia_nb.widgets.answering import checked, clicked_text, correction, typed_value
from materia_nb.widgets.base import show_panel
from materia_nb.widgets.cast_parts import PARTS, alone_names, dock_names
from materia_nb.widgets.cast_slices import StepRows, identity
from materia_nb.widgets.cast_surface import HEIGHT, CastSurface
from materia_nb.widgets.inspector_tabs import TABS, check_element, stops_at
from materia_nb.widgets.messages import (
    Acting,
    Gesture,
    ItemRow,
    PageMessage,
    Starting,
    ToCanvas,
    ToCast,
    WhenIdle,
    read_message,
)
from materia_nb.widgets.state_tree import changed_blocks
from materia_nb.widgets.work_items import (
    effect_of,
    issues_of,
    rebuilt,
    redone,
    texts,
)

if TYPE_CHECKING:
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.cast.workbench import Workbench
    from materia_nb.widgets.base import Panel
    from materia_nb.widgets.inspector_tabs import Element
    from materia_nb.widgets.work_items import Rebuilt

_HEIGHTS: Final = (320, 2_000)
_MOST_CASTS: Final = 200
"""How many casts of the project are offered to be compared with, the latest ones."""
_VERBS: Final[dict[type[Starting], Callable[[Cast], object]]] = {
    ToCast.Recast: Cast.retry,
    ToCast.Resend: lambda cast: cast.retry(turn=True),
    ToCast.Revive: lambda cast: cast.retry(limit=True),
    ToCast.Finalize: Cast.accept,
}
"""What only goes on with the cast."""


class CastPanel(CastSurface):
    """A cast with all its parts, and what a person does there."""

    def heard(self, content: object) -> None:
        """Do what a message of the page asks for, and draw what came of it.

        Raises:
            MateriaError: it is not a message (``bad_message``), or what it asks for is refused.
        """
        values = content if isinstance(content, Mapping) else {}
        kind = values.get("kind")
        if self.designing is not None and kind not in ("mode", "height", "heard"):
            self.designing.heard(str(kind), values)
        else:
            self.do(read_message(ToCast, content))
        self.refresh()

    def do(self, message: PageMessage) -> None:
        """Do what a message asks for.

        Raises:
            MateriaError: it is refused: it is about something that is no longer current (``outdated``), a step runs
                (``busy``), or whatever the command says.
        """
        if isinstance(message, Acting):
            now = identity(self.cast.now, self.lane, busy=self.runs.busy)
            if message.seen != now and not (
                message.of_cast and message.seen.split(".")[0] == now.split(".")[0]
            ):
                raise MateriaError(
                    "Nothing was done: the cast has moved on since this was shown.",
                    hint="look at the panel as it is now, then press again",
                    kind="outdated",
                )
        self._do_now(message)

    def _do_now(self, message: PageMessage) -> None:
        if isinstance(message, WhenIdle):
            self.runs.refuse_while_busy()
        self._act(message)

    @singledispatchmethod
    def _act(self, message: PageMessage) -> None:
        PLAIN_ACTS[type(message)](self, message)

    def picked(self, kind: str, key: str) -> None:
        """Something was clicked on the graph."""
        if self.designing is None:
            self.select(check_element(self.cast.now, kind, key))

    def gestured(self, gesture: Gesture) -> None:
        """Do what was asked for on the graph, unless a loadout is designed there: then the designer hears it itself."""
        if self.designing is not None:
            return
        match gesture:
            case ToCanvas.Ground():
                self.select(None)
            case ToCanvas.Open(what=(kind, key)):
                self.picked(kind, key)
            case ToCanvas.Break(what=(kind, key), after=after):
                self._break_at(check_element(self.cast.now, kind, key), after=after)
        self.refresh()

    # -- going on ---------------------------------------------------------------------

    def _start(self, message: Starting, what: str, act: Callable[[], object]) -> None:
        """Begin something that takes time, after what was typed and not applied yet."""
        self.runs.rest = None  # what is begun now decides how far the cast goes
        for first in message.first:  # where one of them is refused nothing is started
            self._do_now(read_message(ToCast, {**first, "seen": message.seen}))
        self.look(None)
        self.runs.start(what, act)

    def _run(self, message: Starting, act: Callable[[], object]) -> None:
        """Begin a run. Where it stops for a person or at a failure, whatever settles that goes on with it."""
        self._start(message, "Run", self._kept(act, act))

    def _settle(self, message: Starting, what: str, act: Callable[[], object]) -> None:
        """Begin what settles why a cast stands still, and then go on with the run that stopped there, if one did."""
        rest, cast = self._rest(), self.cast
        if rest is None:
            self._start(message, what, act)
            return

        def settle() -> object:
            outcome = act()
            return rest() if cast.status == "ready" else outcome

        self._start(message, what, self._kept(settle, rest))

    def _settle_at_once(self, act: Callable[[], object]) -> None:
        """Do what settles why a cast stands still, in an instant; then go on with the run that stopped there, if one did."""
        rest, cast = self._rest(), self.cast
        act()
        self.select(None)
        if rest is not None and cast.status == "ready":
            self.look(None)
            self.runs.start("Run", self._kept(rest, rest))

    def _kept(self, act: Callable[[], object], rest: Callable[[], object]) -> Callable[[], object]:
        """Keep ``rest`` where ``act`` stops and a person is to settle it."""
        cast, runs = self.cast, self.runs

        def run() -> object:
            outcome = None
            try:
                outcome = act()
                return outcome
            finally:
                asked = not isinstance(outcome, str) and cast.status in ("waiting", "held", "failed")
                if asked or outcome in ("person", "failed"):
                    runs.rest = rest, _places(cast.now)

        return run

    def _rest(self) -> Callable[[], object] | None:
        """Return what goes on with the run that stopped where the cast is now; None where none did."""
        if self.runs.rest is None:
            return None
        rest, places = self.runs.rest
        return rest if _places(self.cast.now) & places else None

    @_act.register
    def _step(self, message: ToCast.Step) -> None:
        cast = self.cast

        def step() -> None:
            cast.step()
            cast.export.derived_files()

        self._start(message, "Step", step)

    @_act.register
    def _run_to(self, message: ToCast.RunTo) -> None:
        socket = message.socket
        if socket != END:
            self.cast.graph.needs_socket(socket)
        cast = self.cast
        self._run(message, lambda: cast.run(socket))

    @_act.register
    def _run_item(self, message: ToCast.RunItem) -> None:
        cast, begun = self.cast, self.cast.now.upcoming_item
        self._run(message, lambda: cast.run(lambda cast: cast.now.upcoming_item != begun))

    @_act.register
    def _run_on(self, message: ToCast.Run) -> None:
        self._run(message, self.cast.run)

    @_act.register
    def _go_on(self, message: ToCast.Recast | ToCast.Resend | ToCast.Revive | ToCast.Finalize) -> None:
        cast, verb = self.cast, _VERBS[type(message)]
        self._settle(message, type(message).__name__, lambda: verb(cast))

    @_act.register
    def _ask_again(self, message: ToCast.AskAgain) -> None:
        cast = self.cast

        def ask_again() -> object:
            self._go_back(len(cast.steps) - 1, message)
            return cast.step()

        self._settle(message, "Retry", ask_again)

    @_act.register
    def _take_changed(self, message: ToCast.Take) -> None:
        changed = changed_definition(self.cast.now)
        if changed is not None:
            self.cast.edit.redefine(changed.materia)
        self._settle(message, "Retry", self.cast.retry)

    @_act.register
    def _allow_folder(self, message: ToCast.AllowFolder) -> None:
        folders = folders_asked(self.cast.now)
        if not folders:
            raise MateriaError("The cast asks for no folder outside the project.", kind="not_asked")
        self.cast.approvals.allow(*folders)
        self._settle(message, "Retry", self.cast.retry)

    @_act.register
    def _pin_text(self, message: ToCast.PinText) -> None:
        self.cast.pins.add(message.socket, message.text)
        self._settle(message, "Retry", self.cast.retry)

    @_act.register
    def _skip(self, message: ToCast.Skip) -> None:
        self._settle_at_once(lambda: self.cast.skip(message.note, item=message.item))

    @_act.register
    def _raise_budget(self, message: ToCast.RaiseBudget) -> None:
        self.cast.edit.budget_in_words(message.budget)
        self._settle(message, "Retry", lambda: self.cast.retry(limit=True))

    @_act.register
    def _abort(self, _: ToCast.Abort) -> None:
        """End the cast; a step that runs is waited for in the background, and a second press does no harm."""
        if self.aborting:
            return
        cast, self.aborting = self.cast, True
        cast.stop()
        self.runs.asks_to_stop()

        def end() -> None:
            try:
                cast.abort()
            finally:
                self.aborting = False

        self.runs.beside(end)

    # -- where runs stop -----------------------------------------------------------------

    def _break_at(self, element: Element, *, after: bool) -> None:
        """Set a breakpoint at a part of the graph, or take away whichever it has."""
        breakpoints, possible = self.cast.breakpoints, stops_at(self.cast.now, element)
        there = [one for one in breakpoints if one.every_time in possible]
        if there:
            breakpoints.remove(*there)
        elif possible:
            breakpoints.toggle(possible[1 if after else 0])

    @_act.register
    def _break_where(self, message: ToCast.BreakWhere) -> None:
        one, text = breakpoint_of(message.breakpoint).every_time, message.text.strip()
        if text and not text.isdecimal():
            condition_of(text)  # which says what is wrong with it
        limit = {"nth": int(text)} if text.isdecimal() else {"where": text} if text else {}
        self.cast.breakpoints.put(breakpoint_of({**one.as_json(), **limit}))

    @_act.register
    def _watch(self, message: ToCast.Watch) -> None:
        if message.path in self.cast.breakpoints.paths:
            self.cast.breakpoints.clear(path=message.path)
        else:
            self.cast.breakpoints.watch(message.path)

    @_act.register
    def _follow_value(self, message: ToCast.Follow) -> None:
        self.watched.follow(message.path, on=message.on)
        if message.on:
            self.dock = "watch"

    # -- looking ---------------------------------------------------------------------------

    @_act.register
    def _select(self, message: ToCast.Select) -> None:
        one = message.element
        self.select(None if one is None else check_element(self.here, one.kind, one.id))

    @_act.register
    def _open_tab(self, message: ToCast.Tab) -> None:
        needs_one_of(message.tab, TABS, "The inspector has no such tab.", "bad_message")
        self.tab = message.tab

    @_act.register
    def _open_dock(self, message: ToCast.Dock) -> None:
        needs_one_of(message.dock, dock_names(), "The dock has no such tab.", "bad_message")
        self.dock = message.dock

    @_act.register
    def _line(self, message: ToCast.Line) -> None:
        steps = self.cast.now.line(message.line)
        self.rows = StepRows(message.line)
        self.look(None if message.line is None else len(steps))

    @_act.register
    def _show_lane(self, message: ToCast.Lane) -> None:
        self.cast.now.lane(message.lane)  # refused here where there is none
        self.lane, self.tab = message.lane, "answer"
        self.select(None)

    @_act.register
    def _height(self, message: ToCast.Height) -> None:
        least, most = _HEIGHTS
        self.height = min(most, max(least, self.height + message.by))
        self.view.remove_class("mnb-grows")
        self.view.layout.height = f"{self.height}px"

    # -- answers ---------------------------------------------------------------------------

    def answer(self, text: str) -> None:
        """Give a text as the answer that is asked for."""

        def reply() -> None:
            self.cast.reply(text, lane=self.lane or None)
            self.lane = ""  # the next one that asks, if one does

        self._settle_at_once(reply)

    @_act.register
    def _items_answer(self, message: ToCast.ItemsAnswer) -> None:
        items, _ = rebuilt(message.rows, (), None)
        self.answer(clicked_text(self.here, message.satisfied, message.reason, items))

    @_act.register
    def _refine(self, message: ToCast.Refine) -> None:
        self._settle(message, "Refine", lambda: self.cast.refine(message.text))

    @_act.register
    def _answer_hold(self, message: ToCast.Answer) -> None:
        approvals = self._take_approvals()
        self._settle(message, "Answer", lambda: approvals.answer(message.text))

    @_act.register
    def _decide(self, message: ToCast.Decide) -> None:
        decide = self._take_approvals().decide
        self._settle_at_once(lambda: decide(satisfied=message.satisfied, target=message.target))

    @_act.register
    def _decide_calls(self, message: ToCast.Allow | ToCast.Deny) -> None:
        approvals = self._take_approvals()
        calls = approvals.asking or None
        if isinstance(message, ToCast.Deny):
            self._settle(message, "Deny", lambda: approvals.deny(message.reason, calls=calls))
        else:
            always = message.always and calls is not None
            self._settle(message, "Allow", lambda: approvals.approve(always=always, calls=calls))

    def _take_approvals(self) -> Approvals:
        """Return what is asked where the inspector tells about, the cast or a lane of it, which then tells of the next that asks."""
        lane, self.lane = self.lane, ""
        return self.cast.approvals.in_lane(lane) if lane else self.cast.approvals

    @_act.register
    def _edit_prompt(self, message: ToCast.EditPrompt) -> None:
        for name, text in message.layers.items():
            self.cast.edit.reword(name, text)

    # -- edits --------------------------------------------------------------------------------

    @_act.register
    def _items(self, message: ToCast.Items) -> None:
        items, origins = self._rebuilt(message)
        again, abandon = redone(message.rows, origins, abandon=message.abandon)
        self.cast.edit.items(items, origins, again=again, abandon=abandon)

    def _rebuilt(self, message: ToCast.Items | ToCast.CheckItems) -> Rebuilt:
        """The items of a table; rows that were read from another list do not know their places in this one."""
        return rebuilt(message.rows, self.cast.now.work_items, self.item_lists.get(message.base or ""))

    @_act.register
    def _back(self, message: ToCast.Back) -> None:
        self.look(None)
        self._go_back(message.step, message, files=message.files)

    def _go_back(self, step: int, message: ToCast.Back | ToCast.AskAgain, *, files: bool = False) -> None:
        with self._asking_about_edits(message):
            self.cast.back(step, files=files, discard_edits=message.discard_edits)
        self._say_edits(step)

    @_act.register
    def _recommit(self, message: ToCast.Recommit) -> None:
        number = len(self.cast.steps)
        with self._asking_about_edits(message):
            self.cast.edit.recommit(message.text, discard_edits=message.discard_edits)
        self._say_edits(number)

    @contextlib.contextmanager
    def _asking_about_edits(self, message: ToCast.Back | ToCast.AskAgain | ToCast.Recommit) -> Iterator[None]:
        """Offer a message again without the edits that do not fit, if it is refused because of them (R71)."""
        try:
            yield
        except MateriaError as error:
            if error.kind == "edits_lost":
                again = {**message.as_json(), "discard_edits": True}
                self.without_edits = {
                    key: value for key, value in again.items() if key not in ("seen", "first")
                }
            raise

    def _say_edits(self, step: int) -> None:
        if count := sum(edit.step == step for edit in self.cast.now.edits):
            self.say(f"{counted(count, 'edit')} {'was' if count == 1 else 'were'} applied again.")

    @_act.register
    def _fork(self, message: ToCast.Fork) -> None:
        self.take(self.cast.fork(message.step))
        self.dock = "compare"

    @_act.register
    def _compare(self, message: ToCast.Compare) -> None:
        self.compares = self._compared(message)
        self.dock = "compare"

    def _compared(self, message: ToCast.Compare) -> Callable[[Snapshot], Sequence[Block]]:
        """Return what makes the blocks of a comparison from the cast as it is by then."""
        if message.cast is not None:
            other = self._side_of(message.cast)
            words = self._cast_words(self.casts.index(self.cast))
            return lambda now: [
                Line(f"A is {words}, B is {other.name}."),
                *CompareView(now.side, other).in_words(now.names),
            ]
        now = self.cast.now
        steps = self.rows.steps(now)
        row = message.row or len(steps)
        if message.socket is not None:
            rows = [row for row, one in enumerate(steps, start=1) if one.socket == message.socket]
            if not rows:
                raise MateriaError("No step was at that socket yet.", hint="run it first", kind="no_step")
            row = rows[-1]
        step = nth(steps, row)
        if message.other is not None:
            before = nth(steps, message.other)
        else:  # in its own lane
            line = now.maker_of(step).steps if step.lane else now.line(self.rows.line)
            before = visit_before(line, step.number)
        both = StepCompareView(before, step)
        a, b = (
            f"step {one.number}{f' of lane {part(one.lane, 60)}' * bool(one.lane)}" for one in (before, step)
        )
        said = [Line(f"A is {a}, B is {b}."), *both.all_words(now.names)]
        return lambda _: said

    def _side_of(self, name: str) -> Side:
        mine = {one.id: one for one in self.casts}
        if name in mine:
            return mine[name].now.side
        compared = None if self._bench is None else self._bench.compare(name, self.cast)
        if not isinstance(compared, CompareView):
            raise MateriaError(f"There is no cast {name!r} here.", hint="reload the page", kind="bad_message")
        return compared.a

    @_act.register
    def _page(self, _: ToCast.Page) -> None:
        path = self.cast.export.page(self.cast.now.project / f"{self.cast.id}.html")
        self.say(f"The page is {path.name}, in {path.parent}.")

    @_act.register
    def _keep_test(self, _: ToCast.KeepTest) -> None:
        path = self.cast.export.test(self.cast.now.project / f"{self.cast.id}{SUFFIX}")
        self.say(f"The test is {path.name}, in {path.parent}: pytest runs it without asking an agent.")

    @_act.register
    def _label(self, message: ToCast.Label) -> None:
        self.cast.labels.add(name=message.text)
        self.say("The cast has this name now, and can be opened by it.")

    @_act.register
    def _pin(self, message: ToCast.Pin) -> None:
        self.cast.graph.needs_socket(message.socket)
        name = self.cast.now.pinned_at(message.socket)
        if name is None:
            self.cast.pins.add(message.socket)
        else:
            self.cast.pins.remove(name)

    # -- questions of one page, answered to it alone ---------------------------------------------

    @_act.register
    def _rows(self, message: ToCast.Rows) -> None:
        rows = self.rows.between(self.cast.now, message.first, message.last)
        self.front.answer("rows", message.token, rows=rows)

    @_act.register
    def _casts(self, message: ToCast.Casts) -> None:
        mine = {one.id: self._cast_words(place) for place, one in enumerate(self.casts)}
        known = [] if self._bench is None else list(self._bench.casts())[:_MOST_CASTS]
        others = {one.id: f"{one.name or one.id} · {part(one.request or '', 60)}" for one in known}
        casts = [[name, words] for name, words in {**mine, **others, **mine}.items() if name != self.cast.id]
        self.front.answer("casts", message.token, casts=casts)

    @_act.register
    def _check_items(self, message: ToCast.CheckItems) -> None:
        items, origins = self._rebuilt(message)
        issues = [[one.path, one.message] for one in issues_of(items)[:100]]
        words, order = effect_of(
            self.cast.now, items, origins, *redone(message.rows, origins, abandon=message.abandon)
        )
        self.front.answer("check_items", message.token, issues=issues, said=words, order=order)

    @_act.register
    def _item_texts(self, message: ToCast.ItemTexts) -> None:
        row = ItemRow(None, None, message.place)
        [item], _ = rebuilt([row], (), self.item_lists.get(message.base))
        title, context = texts(item)
        self.front.answer("item_texts", message.token, title=title, context=context)

    @_act.register
    def _value(self, message: ToCast.Value) -> None:
        value = get_path(dict((self.past or self.cast.now).state), message.path)
        text = value if isinstance(value, str) else "" if value is MISSING else pretty(value)
        self.front.answer("value", message.token, text=text, as_text=isinstance(value, str))

    @_act.register
    def _diff(self, message: ToCast.Diff) -> None:
        before, after = (dict(self.cast.at(step).state) for step in (message.a, message.b))
        ends = [f"step {step}" if step else "the start" for step in (message.a, message.b)]
        blocks = changed_blocks(before, after, f"from {ends[0]} to {ends[1]}")
        self.front.answer("diff", message.token, blocks=blocks)


PLAIN_ACTS: Final[dict[type[PageMessage], Callable[[CastPanel, Any], object]]] = {
    ToCast.Budget: lambda panel, message: panel.cast.edit.budget_in_words(message.budget),
    ToCast.Pause: lambda panel, _: panel.runs.pause(),
    ToCast.Leave: lambda panel, _: panel.cast.runner.stop.leave(),
    ToCast.Break: lambda panel, message: panel.cast.breakpoints.toggle(breakpoint_of(message.breakpoint)),
    ToCast.ClearBreaks: lambda panel, _: panel.cast.breakpoints.clear(),
    ToCast.Look: lambda panel, message: panel.look(message.step, message.lane),
    ToCast.Row: lambda panel, message: panel.look_at_row(message.row),
    ToCast.Now: lambda panel, _: panel.look(None),
    ToCast.Heard: lambda panel, _: panel.say(""),
    ToCast.Mode: lambda panel, message: panel.set_mode(message.mode),
    ToCast.ShowCast: lambda panel, message: panel.show_cast(message.cast),
    ToCast.Reply: lambda panel, message: panel.answer(message.text),
    ToCast.ByHand: lambda panel, message: panel.answer(message.text),
    ToCast.Verdict: lambda panel, message: panel.answer(
        clicked_text(panel.here, message.satisfied, message.reason)
    ),
    ToCast.Disallow: lambda panel, message: panel.cast.approvals.disallow(message.tool),
    ToCast.Enter: lambda panel, _: panel.cast.step(ask=False),
    ToCast.SetValue: lambda panel, message: panel.cast.edit.set(
        message.path, typed_value(message.text, as_text=message.as_text)
    ),
    ToCast.RemoveValue: lambda panel, message: panel.cast.edit.set(message.path, MISSING),
    ToCast.Undo: lambda panel, _: panel.cast.edit.undo(),
    ToCast.Again: lambda panel, _: panel.take(panel.cast.fork(0)),
    ToCast.Find: lambda panel, message: panel.front.answer(
        "find", message.token, rows=panel.rows.find(panel.cast.now, message.text)
    ),
    ToCast.LastOutput: lambda panel, message: panel.front.answer(
        "last_output", message.token, **(correction(panel.here) or {})
    ),
    ToCast.Check: lambda panel, message: panel.front.answer(
        "check", message.token, **checked(panel.here, message.text, message.what)
    ),
}
"""What a message does where one line says it; the others have methods."""


def _places(now: Snapshot) -> frozenset[object]:
    """Return where a cast and its lanes stand: lane, visit and turn of each."""
    here = ((name, now.lane(name).engine.at) for name in ("", *now.lanes))
    return frozenset((name, at.step, at.turn) for name, at in here if at is not None)


def show(
    cast: Cast,
    forked: Callable[[Cast], object] = lambda _: None,
    *,
    bench: Workbench | None = None,
    height: int | None = None,
) -> CastPanel:
    """Make the whole panel of a cast; what earlier runs of the same cell showed is closed.

    Args:
        cast: which.
        forked: called with the new cast when one is forked in the panel.
        bench: the workbench that its loadout can be designed in.
        height: in pixels; 560 if left out.
    """
    return show_panel("show", lambda: CastPanel(cast, forked, bench=bench, height=height or HEIGHT))


def show_one(cast: Cast, name: str, *, height: int | None = None) -> Panel:
    """Make one part of a cast's panel; what earlier runs of the same cell showed is closed.

    Args:
        cast: which.
        name: of the part, see ``PARTS`` in ``cast_parts.py``.
        height: in pixels.

    Raises:
        MateriaError: there is no such panel (``unknown_panel``).
    """
    known = alone_names()
    if name not in known:
        hint = f"{did_you_mean(name, known)} (there are {', '.join(known)})"
        raise MateriaError(f"There is no panel {name!r}.", hint=hint, kind="unknown_panel")
    high = height or PARTS[name].height
    return show_panel(("panel", name), lambda: CastPanel(cast, alone=name, height=high))

"""What the front-end of a cast's panel asks for, and the verbs of the cast that do it.

A message is a JSON object with a ``kind``. Each is checked before anything is done with it: it comes from a page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from materia_nb.cast.breakpoint import breakpoint_of
from materia_nb.cast.repairs import changed_definition
from materia_nb.display.escape import shorten
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.jsonvalue import MISSING, get_path, pretty
from materia_nb.loadout.graph import END
from materia_nb.widgets.answering import checked, clicked_text, only_text, typed_value
from materia_nb.widgets.cast_parts import dock_names
from materia_nb.widgets.cast_slices import asked_key
from materia_nb.widgets.inspector_blocks import check_element, stops_at
from materia_nb.widgets.inspector_tabs import TABS
from materia_nb.widgets.state_and_items import base_of, changed_blocks, foretold, issues_of, rebuilt, redone

if TYPE_CHECKING:
    from materia_nb.cast import Cast
    from materia_nb.cast.snapshot import Snapshot
    from materia_nb.widgets.base import Runs
    from materia_nb.widgets.cast_slices import StepRows
    from materia_nb.widgets.inspector_blocks import Element

Values = Mapping[str, Any]
_MOST_FIRST: Final = 20


class CastSurface(Protocol):
    """What a panel of a cast offers to the messages of its front-end."""

    cast: Cast
    past: Snapshot | None
    rows: StepRows
    runs: Runs
    front: Any
    tab: str
    dock: str

    def start(self, what: str, act: Callable[[], object]) -> None:
        """Begin something that takes time."""

    def step(self) -> None:
        """Run one socket."""

    def one_more(self) -> bool:
        """Whether a step runs already, so that another one is made when it has ended."""

    def abort(self) -> None:
        """End the cast."""

    def look(self, number: int | None) -> None:
        """Show everything as it was after a step; None goes back to the present."""

    def select(self, element: Element | None) -> None:
        """Let the inspector tell about an element."""

    def fork(self, number: int | None) -> object:
        """Fork the cast behind a step, and show the fork."""

    def show_cast(self, place: int) -> None:
        """Show one of the casts of the panel."""

    def show_line(self, line: int | None) -> None:
        """Show an abandoned branch in the timeline."""

    def set_mode(self, mode: str) -> None:
        """Switch between casting and designing."""

    def grow(self, by: int) -> None:
        """Make the surface higher or lower."""

    def say(self, text: str) -> None:
        """Show one line over the graph."""


class CastMessages:
    """Does what messages ask for, on one panel."""

    def __init__(self, panel: CastSurface) -> None:
        self.panel = panel
        self._acts: dict[str, Callable[[Values], object]] = {
            name.removeprefix("_on_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")
        }

    @property
    def cast(self) -> Cast:
        """The cast that the panel shows."""
        return self.panel.cast

    def heard(self, content: object) -> None:
        """Do what a message asks for.

        Raises:
            MateriaError: it is none that is known (``bad_message``), or what it asks for is refused.
        """
        values: Values = content if isinstance(content, Mapping) else {}
        act = self._acts.get(str(values.get("kind")))
        if act is None:
            raise MateriaError(
                f"The panel does not know the message {shorten(str(values.get('kind')), 60)!r}.",
                hint="reload the page: its front-end may be of another version",
                kind="bad_message",
            )
        act(values)

    # -- going on ---------------------------------------------------------------------

    def _begin(self, values: Values, what: str, act: Callable[[], object]) -> None:
        """Start something that takes time, after what was typed and not applied yet, if that is asked for."""
        first = values.get("first")
        for one in first[:_MOST_FIRST] if isinstance(first, list) else ():
            self.heard(one)  # where one of them is refused nothing is started
        self.panel.look(None)
        self.panel.start(what, act)

    def _on_step(self, values: Values) -> None:
        if not self.panel.one_more():
            self._begin(values, "Step", self.panel.step)

    def _on_run(self, values: Values) -> None:
        self._begin(values, "Run", self.cast.run)

    def _on_run_to(self, values: Values) -> None:
        socket = self._socket(values, end=True)
        self._begin(values, "Run", lambda: self.cast.run(socket))

    def _on_recast(self, values: Values) -> None:
        self._begin(values, "Recast", self.cast.recast)

    def _on_resend(self, values: Values) -> None:
        self._begin(values, "Resend", self.cast.resend)

    def _on_revive(self, values: Values) -> None:
        self._begin(values, "Revive", self.cast.revive)

    def _on_take(self, values: Values) -> None:
        """Take what the workbench has changed of the materia where the cast failed, and run it once more."""
        changed = changed_definition(self.cast.now)
        if changed is not None:
            self._free()
            self.cast.edit.redefine(changed.materia)
        self._begin(values, "Recast", self.cast.recast)

    def _on_by_hand(self, values: Values) -> None:
        self._free()
        self.cast.reply(only_text(values, "text"))
        self.panel.select(None)

    def _on_pin_text(self, values: Values) -> None:
        """Let a text answer the socket where the cast failed, from now on, and go on."""
        self._free()
        self.cast.pins.add(self._socket(values), only_text(values, "text"))
        self._begin(values, "Recast", self.cast.recast)

    def _on_skip(self, values: Values) -> None:
        self._free()
        self.cast.skip(only_text(values, "note", 20_000), item=values.get("item") is True)
        self.panel.select(None)

    def _on_raise_budget(self, values: Values) -> None:
        self._free()
        self._on_budget(values)
        self._begin(values, "Revive", self.cast.revive)

    def _on_pause(self, _: Values) -> None:
        self.panel.runs.pause()

    def _on_leave(self, _: Values) -> None:
        self.cast.runner.stop.leave()

    def _on_abort(self, _: Values) -> None:
        self.panel.abort()

    def _on_budget(self, values: Values) -> None:
        self.cast.edit.budget_in_words(only_text(values, "budget", 20))

    # -- where runs stop -----------------------------------------------------------------

    def _on_break(self, values: Values) -> None:
        """Set a breakpoint or take it away; of a part of the graph, whichever it has."""
        breakpoints = self.cast.breakpoints
        if (given := values.get("breakpoint")) is not None:
            breakpoints.toggle(breakpoint_of(given))
        else:
            element = values.get("element")
            kind, key = element if isinstance(element, list | tuple) and len(element) == 2 else (None, None)
            possible = stops_at(self.cast.now, check_element(self.cast.now, kind, key))
            there = [one for one in breakpoints if one.every_time in possible]
            if there:
                breakpoints.remove(*there)
            elif possible:
                breakpoints.toggle(possible[1 if values.get("after") is True else 0])

    def _on_clear_breaks(self, _: Values) -> None:
        self.cast.breakpoints.clear()

    def _on_watch(self, values: Values) -> None:
        path = only_text(values, "path", 1_000)
        if path in self.cast.breakpoints.paths:
            self.cast.breakpoints.clear(path=path)
        else:
            self.cast.breakpoints.watch(path)

    # -- looking ---------------------------------------------------------------------------

    def _on_select(self, values: Values) -> None:
        given = values.get("element")
        if given is None:
            self.panel.select(None)
            return
        element = given if isinstance(given, Mapping) else {}
        self.panel.select(check_element(self.cast.now, element.get("kind"), element.get("id")))

    def _on_tab(self, values: Values) -> None:
        self.panel.tab = self._one_of(values, "tab", TABS)

    def _on_dock(self, values: Values) -> None:
        self.panel.dock = self._one_of(values, "dock", dock_names())

    def _on_look(self, values: Values) -> None:
        number = self._number(values, "step")
        self.panel.look(number)

    def _on_now(self, _: Values) -> None:
        self.panel.look(None)

    def _on_line(self, values: Values) -> None:
        place = values.get("line")
        self.panel.show_line(None if place is None else self._number(values, "line"))

    def _on_height(self, values: Values) -> None:
        by = values.get("by")
        self.panel.grow(by if type(by) is int else 0)

    def _on_heard(self, _: Values) -> None:
        self.panel.say("")

    # -- answers ---------------------------------------------------------------------------

    def _on_reply(self, values: Values) -> None:
        self._free()
        self.cast.reply(only_text(values, "text"))
        self.panel.select(None)

    def _on_verdict(self, values: Values) -> None:
        self._free()
        self.cast.reply(
            clicked_text(self.cast.now, values.get("satisfied") is True, only_text(values, "reason"))
        )
        self.panel.select(None)

    def _on_items_answer(self, values: Values) -> None:
        self._free()
        items, _ = rebuilt(values.get("rows"), (), known=False)
        said = values.get("satisfied")
        verdict = said if isinstance(said, bool) else None
        self.cast.reply(clicked_text(self.cast.now, verdict, only_text(values, "reason"), items))
        self.panel.select(None)

    def _on_refine(self, values: Values) -> None:
        text = only_text(values, "text")
        self._begin(values, "Refine", lambda: self.cast.refine(text))

    def _on_finalize(self, values: Values) -> None:
        self._begin(values, "Continue", self.cast.finalize)

    def _on_answer(self, values: Values) -> None:
        text = only_text(values, "text")
        self._begin(values, "Answer", lambda: self.cast.approvals.answer(text))

    def _on_decide(self, values: Values) -> None:
        self._free()
        self._still(values)
        said, target = values.get("satisfied"), values.get("target")
        if target is not None:
            target = self._socket({"socket": target}, end=True)
        self.cast.approvals.decide(satisfied=said if isinstance(said, bool) else None, target=target)

    def _on_allow(self, values: Values) -> None:
        self._still(values)
        always = values.get("always") is True
        calls = self.cast.approvals.asking
        if calls:
            self._begin(values, "Allow", lambda: self.cast.approvals.approve(always=always, calls=calls))
        else:
            self._begin(values, "Allow", self.cast.approvals.approve)

    def _on_deny(self, values: Values) -> None:
        self._still(values)
        reason, calls = only_text(values, "reason", 20_000), self.cast.approvals.asking
        if calls:
            self._begin(values, "Deny", lambda: self.cast.approvals.deny(reason, calls=calls))
        else:
            self._begin(values, "Deny", lambda: self.cast.approvals.deny(reason))

    def _on_disallow(self, values: Values) -> None:
        self.cast.approvals.disallow(only_text(values, "tool", 100))

    def _still(self, values: Values) -> None:
        """A click on what was shown must not allow what is asked by now."""
        if values.get("seen") != asked_key(self.cast.now):
            raise MateriaError(
                "Something else is asked by now.", hint="look at it, then decide", kind="not_asked"
            )

    def _on_enter(self, _: Values) -> None:
        self._free()
        self.cast.enter()

    def _on_edit_prompt(self, values: Values) -> None:
        self._free()
        layers = values.get("layers")
        if not isinstance(layers, Mapping):
            raise MateriaError(
                "No layer of the prompt was given.", hint="reload the page", kind="bad_message"
            )
        for name in layers:
            self.cast.edit.reword(str(name), only_text(layers, str(name)))

    def _on_recommit(self, values: Values) -> None:
        self._free()
        self.cast.edit.recommit(only_text(values, "text"))

    # -- edits --------------------------------------------------------------------------------

    def _on_set_value(self, values: Values) -> None:
        self._free()
        value = typed_value(only_text(values, "text"), as_text=values.get("as_text") is True)
        self.cast.edit.set(only_text(values, "path", 2_000), value)

    def _on_remove_value(self, values: Values) -> None:
        self._free()
        self.cast.edit.set(only_text(values, "path", 2_000), MISSING)

    def _on_items(self, values: Values) -> None:
        self._free()
        now = self.cast.now.work_items
        # Rows that were read from another list do not know their places in this one.
        items, origins = rebuilt(values.get("rows"), now, known=values.get("base") == base_of(now))
        again, abandon = redone(values, origins)
        self.cast.edit.items(items, origins, again=again, abandon=abandon)

    def _on_undo(self, _: Values) -> None:
        self._free()
        self.cast.edit.undo()

    def _on_back(self, values: Values) -> None:
        self._free()
        number = self._number(values, "step")
        self.panel.look(None)
        self.cast.back(number)

    def _on_fork(self, values: Values) -> None:
        self._free()
        step = values.get("step")
        self.panel.fork(None if step is None else self._number(values, "step"))

    def _on_page(self, _: Values) -> None:
        path = self.cast.export.page(self.cast.now.project / f"{self.cast.id}.html")
        self.panel.say(f"The page is {path.name}, in {path.parent}.")

    def _on_label(self, values: Values) -> None:
        self.cast.labels.add(name=only_text(values, "text", 200))
        self.panel.say("The cast is called so from now on: it can be opened by that name.")

    def _on_show_cast(self, values: Values) -> None:
        self.panel.show_cast(self._number(values, "cast"))

    def _on_pin(self, values: Values) -> None:
        socket = self._socket(values)
        name = self.cast.now.pinned_at(socket)
        if name is None:
            self.cast.pins.add(socket)
        else:
            self.cast.pins.remove(name)

    def _on_mode(self, values: Values) -> None:
        self.panel.set_mode(self._one_of(values, "mode", ("cast", "design")))

    # -- questions of one view, answered to it alone ---------------------------------------------

    def _on_rows(self, values: Values) -> None:
        first, last = self._number(values, "first"), self._number(values, "last")
        self.panel.front.answer(
            "rows", values.get("token"), rows=self.panel.rows.between(self.cast.now, first, last)
        )

    def _on_find(self, values: Values) -> None:
        found = self.panel.rows.find(self.cast.now, only_text(values, "text", 1_000))
        self.panel.front.answer("find", values.get("token"), numbers=found)

    def _on_check(self, values: Values) -> None:
        what = self._one_of(values, "what", ("reply", "by_hand", "correction", "value"))
        self.panel.front.answer(
            "check", values.get("token"), **checked(self.cast.now, only_text(values, "text"), what)
        )

    def _on_check_items(self, values: Values) -> None:
        now = self.cast.now
        known = values.get("base") == base_of(now.work_items)
        items, origins = rebuilt(values.get("rows"), now.work_items, known=known)
        issues = [[one.path, one.message] for one in issues_of(items)[:100]]
        said, order = foretold(now, items, origins, *redone(values, origins))
        self.panel.front.answer("check_items", values.get("token"), issues=issues, said=said, order=order)

    def _on_value(self, values: Values) -> None:
        path = values.get("path")
        segments = [str(one) for one in path] if isinstance(path, list) else []
        shown = self.panel.past or self.cast.now
        found = get_path(dict(shown.state), segments)
        text = found if isinstance(found, str) else "" if found is MISSING else pretty(found)
        self.panel.front.answer("value", values.get("token"), text=text, as_text=isinstance(found, str))

    def _on_diff(self, values: Values) -> None:
        a, b = self._number(values, "a"), self._number(values, "b")
        before, after = (dict(self.cast.at(one).state) for one in (a, b))
        blocks = changed_blocks(before, after, f"from {_after(a)} to {_after(b)}")
        self.panel.front.answer("diff", values.get("token"), blocks=blocks)

    # -- what is given ------------------------------------------------------------------------------

    def _free(self) -> None:
        self.panel.runs.refuse_while_busy()

    def _socket(self, values: Values, *, end: bool = False) -> str:
        socket = only_text(values, "socket", 1_000)
        if socket in self.cast.graph.sockets or (end and socket == END):
            return socket
        raise MateriaError(
            f"The loadout has no socket {shorten(socket, 60)!r}.",
            hint=did_you_mean(socket, self.cast.graph.sockets),
            kind="unknown_socket",
        )

    def _number(self, values: Values, name: str) -> int:
        value = values.get(name)
        if type(value) is int and 0 <= value < 2**53:
            return value
        raise MateriaError(f"The message has no number {name!r}.", hint="reload the page", kind="bad_message")

    def _one_of(self, values: Values, name: str, known: tuple[str, ...]) -> str:
        value = values.get(name)
        if isinstance(value, str) and value in known:
            return value
        raise MateriaError(
            f"There is no {name} {shorten(str(value), 40)!r}.", hint="reload the page", kind="bad_message"
        )


def _after(number: int) -> str:
    return f"step {number}" if number else "the start"

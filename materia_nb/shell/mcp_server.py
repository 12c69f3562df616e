"""``materia mcp``: the operations of the designer as tools of an MCP server, so that a coding agent builds what a person reviews.

Nothing that it does is saved: its steps are a draft, which the designer offers to a person step by step. No model is asked and
no process started; a property that does not hold comes back with a cast that shows it, made with scripted answers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from materia_nb import __version__
from materia_nb.agents.tools import Refused, Tool, ToolResult, readable, within_most
from materia_nb.agents.tools.more_tools import arguments_of, function_tool
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Block
from materia_nb.errors import MateriaError, counted, outgoing_line
from materia_nb.insight.explore import Exploration, Witness
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.design import OPERATIONS, Design, Operation
from materia_nb.loadout.report import Problem, do

INSTRUCTIONS: Final = """\
Build loadouts, which are graphs in which agents and utilities hand work on. Begin with loadouts and open_loadout, read the
document with show, change it with the operations, and look at check, explore and odds. State with require what must hold:
what does not comes back with a cast that shows it. hand_over ends the work on a loadout: a person accepts or refuses each of
your steps. You cannot save."""

_EDGE: Final = re.compile(r"(.+)#([1-9]\d*)")
_REQUEST: Final = "a counterexample"
_WIDTH: Final = 100


class DesignServer:
    """One connection: the loadout that it designs, and the tools for that.

    Args:
        project: the directory whose loadouts are designed.
        by: who designs, as a person is told.
    """

    def __init__(self, project: Path, by: str = "a coding agent") -> None:
        self.bench = Workbench(project)
        self.by = by
        self._design: Design | None = None
        own = (
            self.loadouts, self.open_loadout, self.show, self.check, self.fix, self.undo, self.redo,
            self.explore, self.odds, self.require, self.hand_over,
        )  # fmt: skip
        made = [*(function_tool(one) for one in own), *(self._tool_of(one) for one in OPERATIONS.values())]
        self.tools: dict[str, Tool] = {tool.name: tool for tool in made}

    @property
    def design(self) -> Design:
        """The loadout that is designed; raises MateriaError when there is none."""
        if self._design is None:
            raise MateriaError("No loadout is open.", hint="call open_loadout first")
        return self._design

    def call(self, name: str, args: dict[str, JSON]) -> ToolResult:
        """Call a tool; what cannot be done is a result that says why, and nothing has changed."""
        tool = self.tools.get(name)
        if tool is None or tool.run is None:
            return ToolResult(f"There is no tool {readable(name)[:80]!r}.", ok=False)
        try:
            result = tool.run(args, None)
        except (Refused, MateriaError) as error:
            result = ToolResult(str(error), ok=False)
        return ToolResult(within_most(result.text), ok=result.ok)

    def _tool_of(self, operation: Operation) -> Tool:
        """Make a tool of an operation of the designer: its arguments are those of its function."""
        skip = 2 if operation.on_materia else 1
        model = arguments_of(operation.function, operation.name, skip, lambda name: name.strip("_"))

        def run(args: Any, _stop: object) -> ToolResult:
            given = model.read(args)
            words = self.design.apply(self.design.changed_by(do(operation.name, **given)))
            return ToolResult(self._did(words), ok=True)

        return Tool(operation.name, operation.about, model.schema, changes=True, run=run)

    def _did(self, words: str) -> str:
        kept = f"\n{self.design.not_kept}" if self.design.not_kept else ""
        return f"{words}{kept}\n{self._standing()}"

    def _standing(self) -> str:
        report = self.design.report
        first = "".join(f"\n- {_line(one)}" for one in report.problems[:5])
        return f"{counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}{first}"

    # -- tools: their docstrings are what the agent is told -------------------------------------

    def loadouts(self) -> str:
        """List the loadouts of the project, and the materia that can be placed."""
        config = self.bench.loadouts.config
        drafts = [f"- {one.name}: {one}" for one in self.bench.loadouts.drafts()]
        return "\n".join(
            ["Loadouts:", *(f"- {name}" for name in config.loadout_names)]
            + ["Materia:", *(f"- {name}" for name in config.document.get("materia", {}))]
            + (["Drafts that wait for a person:", *drafts] if drafts else [])
        )

    def open_loadout(self, loadout: str, *, new: bool = False, draft: bool = False) -> str:
        """Begin to design a loadout; `new` begins an empty one, `draft` goes on with what was handed over and not looked at yet."""
        self.close()
        from materia_nb.store.design_autosave import keep_draft

        if draft:
            self._design = self.bench.design(loadout, draft=True)
        else:
            self._design = self.bench.design(loadout, new=new)
            keep_draft(self._design, self.bench.loadouts.casts_root, by=outgoing_line(self.by))
        return self.show()

    def show(self) -> str:
        """Show the loadout as JSON, with your steps so far."""
        design = self.design
        steps = "".join(f"\n{number}. {words}" for number, words in enumerate(design.steps, 1)) or " none"
        return f"{compact(design.document)}\nSteps:{steps}\n{self._standing()}"

    def check(self) -> str:
        """List the problems, which stop a cast, and the hints, each with what to do."""
        report = self.design.report
        return "\n".join(_line(one) for one in (*report.problems, *report.hints)) or "No problem, no hint."

    def fix(self, code: str, source: str) -> str:
        """Fix a problem or hint of check, named by its code and source, where one change does."""
        report = self.design.report
        for one in (*report.problems, *report.hints):
            if (one.code, one.source) == (code, source):
                return self._did(self.design.fix(one))
        raise MateriaError("check lists nothing of that code and source.", hint="call check again")

    def undo(self) -> str:
        """Take the last step back."""
        return self._did(f"undone: {self.design.undo()}")

    def redo(self) -> str:
        """Do the step again that was undone last."""
        return self._did(f"done again: {self.design.redo()}")

    def explore(self, items: list[int] | None = None) -> str:
        """Look at every way that casts can go, with lists of each of these lengths (0 to 3 if left out)."""
        return str(self._explored(items).as_text(_WIDTH))

    def odds(self, satisfied: float = 0.5, items: int = 3) -> str:
        """Tell how likely each end is and how many turns it takes, exactly, if each verdict is satisfied with this chance."""
        made = self._explored([items]).odds(satisfied, items)
        return made.as_text(_WIDTH) if isinstance(made, Block) else repr(made)

    def require(
        self,
        never: list[str] | None = None,
        possible: list[str] | None = None,
        *,
        ends: bool = True,
        most_turns: int | None = None,
        items: list[int] | None = None,
    ) -> str:
        """State what must hold of every cast; each part that does not comes back with a cast that shows it.

        `never` and `possible` take sockets, edges as "Socket-1#2" (the second edge), exits, and ends: complete, failed, held or
        the kind of a failure. `ends`: from everywhere an end can be reached. `most_turns`: agents are asked at most so often.
        """
        seen = self._explored(items)
        found = [self._never(seen, what) for what in never or ()]
        found += [self._possible(seen, what) for what in possible or ()]
        if ends:
            stalls = seen.stalls
            found += [
                f"FAILS: no end is reached any more from {one}{self._shown(seen, one)}" for one in stalls
            ]
            found += [] if stalls else ["holds: an end can be reached from everywhere"]
        if most_turns is not None:
            most = seen.most_turns()
            said = "nothing bounds them" if most is None else f"there can be {most}"
            holds = most is not None and most <= most_turns
            found.append(f"{'holds' if holds else 'FAILS'}: at most {counted(most_turns, 'turn')} ({said})")
        return "\n".join([*found, *seen.notes])

    def hand_over(self) -> str:
        """Let a person look at your steps in the designer, who accepts or refuses each; ends your work on this loadout."""
        design = self.design
        if not design.steps:
            raise MateriaError("There is no step to hand over.", hint="change something first")
        if design.not_kept:
            raise MateriaError(design.not_kept, hint="tell the person")
        opened = ("" if design.name in self.bench.loadouts.config.loadout_names else "--new ") + design.name
        words = f"{counted(len(design.steps), 'step')} of {design.name} wait for a person, who opens it in the designer"
        self.close()
        return f"{words}: %materia design {opened}"

    # -- inside ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of the design; its steps stay a draft that a person is offered."""
        if self._design is not None:
            self._design.keep, self._design = None, None

    def _explored(self, items: list[int] | None) -> Any:
        from materia_nb.cast.views.loadout_views import ExploreView

        report = self.design.report
        if report.problems:
            raise MateriaError(
                f"{counted(len(report.problems), 'problem')} must be fixed first.", hint=self._standing()
            )
        return ExploreView(self.design.graph(), items or range(4))

    def _never(self, seen: Exploration, what: str) -> str:
        can = seen.can(_named(what))
        if can is None:
            return f"NOT KNOWN: never {what}; not all was looked at"
        return f"FAILS: never {what}{self._shown(seen, what)}" if can else f"holds: never {what}"

    def _possible(self, seen: Exploration, what: str) -> str:
        can = seen.can(_named(what))
        if can is None:
            return f"NOT KNOWN: {what} is possible; not all was looked at"
        return f"holds: {what} is possible" if can else f"FAILS: {what} is possible; no way leads there"

    def _shown(self, seen: Exploration, what: str) -> str:
        """Make a cast that shows what must not be, and say which way it goes."""
        witness = seen.witness(_named(what))
        try:
            cast = f"; cast {self._cast(witness, what)} shows it"
        except MateriaError as error:
            cast = f"; no cast could be made of it: {error.what}"
        return f": {' → '.join((*witness.route, witness.end or 'no end'))}{cast}"

    def _cast(self, witness: Witness, what: str) -> str:
        cast = self.bench.cast(
            f"{_REQUEST}: {what}", loadout=self.design, agents={"*": witness.answers}, pins=dict(witness.pins)
        )
        try:
            for _ in witness.route:  # it stops at each draft that is to be accepted
                cast.run(steps=None if witness.end else len(witness.route) - len(cast.steps))
                waits = cast.now.waiting_at
                if waits is None or waits.socket not in witness.drafts:
                    break
                cast.accept()
        except MateriaError:
            pass  # a failure is what it was to show
        finally:
            cast.close()
        return cast.id


def _named(what: str) -> str | tuple[str, int]:
    edge = _EDGE.fullmatch(what)
    return (edge[1], int(edge[2])) if edge else what


def _line(one: Problem) -> str:
    return f"{one.severity} {one.code} at {one.source}: {one.message}; {one.hint}"


MOST_TOLD: Final = 8 * 1024 * 1024
"""How many bytes a message of a client may have."""


async def bounded_lines(read: Callable[[int], Awaitable[bytes]], most: int = MOST_TOLD) -> AsyncIterator[str]:
    """Yield the lines that ``read(n)`` gives; of one that is longer than ``most``, nothing is kept but that it is not a message."""
    while line := await read(most):
        rest = line
        while len(rest) == most and not rest.endswith(b"\n"):
            rest = await read(most)
        yield line.decode(errors="replace") if rest is line else "too long\n"


def serve(project: Path) -> None:
    """Serve on stdin and stdout until the client hangs up.

    Raises:
        MateriaError: the library is missing (``not_installed``).
    """
    try:
        import anyio
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
        from mcp.types import CallToolResult, ListToolsResult, TextContent
        from mcp.types import Tool as Offered
    except ImportError:
        hint = 'pip install "materia-nb[mcp]"'
        raise MateriaError("materia mcp needs the package mcp.", hint=hint, kind="not_installed") from None
    here = DesignServer(project)

    async def listed(_context: Any, _params: Any) -> ListToolsResult:
        tools = here.tools.values()
        return ListToolsResult(
            tools=[
                Offered(name=one.name, description=one.description, input_schema=dict(one.parameters))
                for one in tools
            ]
        )

    async def called(context: Any, params: Any) -> CallToolResult:
        known = getattr(context.session, "client_params", None)
        if known is not None:
            here.by = known.client_info.name
        result = here.call(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=result.text)], is_error=not result.ok)

    server: Any = Server(
        "materia", version=__version__, instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )

    async def run() -> None:
        told: Any = bounded_lines(lambda most: anyio.to_thread.run_sync(sys.stdin.buffer.readline, most))
        async with stdio_server(stdin=told) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        here.close()
        here.bench.close()

"""The command ``materia mcp``: an MCP server whose tools are the operations of the designer.

A coding agent designs a loadout, and a person reviews each step in the designer. The server stores only a draft. It
calls no model and starts no process. If a required property does not hold, the server creates a cast with scripted
answers as a counterexample.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from materia_nb import __version__
from materia_nb.agents.tools import Refused, Tool, ToolResult, cut_middle, escape_controls
from materia_nb.agents.tools.more_tools import describe_arguments, function_tool
from materia_nb.cast.workbench import Workbench
from materia_nb.display.blocks import Block
from materia_nb.errors import MateriaError, counted, outgoing_line
from materia_nb.insight.explore import Exploration, Witness
from materia_nb.jsonvalue import JSON, compact
from materia_nb.loadout.design import Design
from materia_nb.loadout.design.document import OPERATIONS, Operation
from materia_nb.loadout.report import Problem, do

INSTRUCTIONS: Final = """\
Design loadouts: graphs in which agents and utilities pass work to one another. Call loadouts first, then open_loadout. Read
the loadout with show, and change it with the other tools. Examine it with check, explore and odds. Use require to test the
properties that must hold for every cast: if a property fails, you get a cast as a counterexample. When the loadout is done,
call hand_over. A person then continues with your draft or discards it. You cannot save the loadout yourself."""

_EDGE: Final = re.compile(r"(.+)#([1-9]\d*)")
_REQUEST: Final = "a counterexample"
_LINE_WIDTH: Final = 100


class DesignServer:
    """The design session of one MCP client, with the open loadout and the tools that change it.

    Args:
        project: the project directory.
        by: the name of the client, which the designer shows to the person who reviews the draft.
    """

    def __init__(self, project: Path, by: str = "a coding agent") -> None:
        self.bench = Workbench(project)
        self.by = by
        self._design: Design | None = None
        methods = (
            self.loadouts, self.open_loadout, self.show, self.check, self.fix, self.undo, self.redo,
            self.explore, self.odds, self.require, self.hand_over,
        )  # fmt: skip
        tools = [
            *(function_tool(method) for method in methods),
            *(self._operation_tool(operation) for operation in OPERATIONS.values()),
        ]
        self.tools: dict[str, Tool] = {tool.name: tool for tool in tools}

    @property
    def design(self) -> Design:
        """The design of the open loadout; raises MateriaError if no loadout is open."""
        if self._design is None:
            raise MateriaError("No loadout is open.", hint="call open_loadout first")
        return self._design

    def call(self, name: str, args: dict[str, JSON]) -> ToolResult:
        """Call a tool. If the call is refused, nothing changes and the result contains the reason."""
        tool = self.tools.get(name)
        if tool is None or tool.run is None:
            return ToolResult(f"The tool {escape_controls(name)[:80]!r} does not exist.", ok=False)
        try:
            result = tool.run(args, None)
        except (Refused, MateriaError) as error:
            result = ToolResult(str(error), ok=False)
        return ToolResult(cut_middle(result.text), ok=result.ok)

    def _operation_tool(self, operation: Operation) -> Tool:
        """Create the MCP tool for an operation of the designer. The tool has the same arguments as the operation."""
        skip = 2 if operation.on_materia else 1
        model = describe_arguments(operation.function, operation.name, skip, lambda name: name.strip("_"))

        def run(args: Any, _stop: object) -> ToolResult:
            step = do(operation.name, **model.read(args))
            return ToolResult(self._change_report(self.design.apply(self.design.combined_change(step))), ok=True)

        return Tool(operation.name, operation.about, model.schema, has_side_effects=True, run=run)

    def _change_report(self, change: str) -> str:
        """Describe a change and the findings after it, with a warning if the draft could not be stored."""
        draft_error_text = f"\n{self.design.draft_error}" if self.design.draft_error else ""
        return f"{change}{draft_error_text}\n{self._findings_text()}"

    def _findings_text(self) -> str:
        report = self.design.report
        first = "".join(f"\n- {_finding_line(problem)}" for problem in report.problems[:5])
        return f"{counted(len(report.problems), 'problem')}, {counted(len(report.hints), 'hint')}{first}"

    # -- tools: the client reads their docstrings -------------------------------------

    def loadouts(self) -> str:
        """List the loadouts of the project, and the materia that can be placed in them."""
        config = self.bench.loadouts.config
        drafts = [f"- {draft.name}: {draft}" for draft in self.bench.loadouts.drafts()]
        return "\n".join(
            ["Loadouts:", *(f"- {name}" for name in config.loadout_names)]
            + ["Materia:", *(f"- {name}" for name in config.document.get("materia", {}))]
            + (["Drafts that wait for a person:", *drafts] if drafts else [])
        )

    def open_loadout(self, loadout: str, *, new: bool = False, draft: bool = False) -> str:
        """Open a loadout for design. `new` creates an empty loadout. `draft` continues a draft that was handed over but has not been reviewed yet."""
        self.close()
        self._design = self.bench.design(loadout, new=new, draft=draft, by=outgoing_line(self.by))
        return self.show()

    def show(self) -> str:
        """Show the loadout as JSON, and the steps that you have made so far."""
        design = self.design
        steps = "".join(f"\n{number}. {step}" for number, step in enumerate(design.steps, 1)) or " none"
        return f"{compact(design.document)}\nSteps:{steps}\n{self._findings_text()}"

    def check(self) -> str:
        """List the problems, which prevent a cast, and the hints. Each comes with advice."""
        report = self.design.report
        return (
            "\n".join(map(_finding_line, (*report.problems, *report.hints))) or "No problems and no hints were found."
        )

    def fix(self, code: str, source: str) -> str:
        """Fix a problem or hint that a single change can fix. Identify it by its code and source, as listed by `check`."""
        report = self.design.report
        for problem in (*report.problems, *report.hints):
            if (problem.code, problem.source) == (code, source):
                return self._change_report(self.design.fix(problem))
        raise MateriaError("No problem or hint has this code and source.", hint="call `check` to get the current list")

    def undo(self) -> str:
        """Undo the last step."""
        return self._change_report(f"Undone: {self.design.undo()}")

    def redo(self) -> str:
        """Redo the last undone step."""
        return self._change_report(f"Redone: {self.design.redo()}")

    def explore(self, items: list[int] | None = None) -> str:
        """Compute every route that a cast can take. `items` are the lengths of item lists to try (by default 0 to 3)."""
        return str(self._exploration(items).as_text(_LINE_WIDTH))

    def odds(self, satisfied: float = 0.5, items: int = 3) -> str:
        """Compute the probability of each end and the average number of turns. `satisfied` is the probability that a verdict is satisfied, and `items` is the length of every item list."""
        odds = self._exploration([items]).odds(satisfied, items)
        return odds.as_text(_LINE_WIDTH) if isinstance(odds, Block) else repr(odds)

    def require(
        self,
        never: list[str] | None = None,
        possible: list[str] | None = None,
        *,
        ends: bool = True,
        most_turns: int | None = None,
        items: list[int] | None = None,
    ) -> str:
        """Test properties that must hold for every cast. If a property fails, the result names a cast as a counterexample.

        `never` and `possible` are lists of sockets, edges such as "Socket-1#2" (the second edge), exits, and ends:
        complete, failed, held or the kind of failure. `ends` requires that an end can be reached from every socket.
        `most_turns` is the highest allowed number of turns.
        """
        exploration = self._exploration(items)
        results = [self._check_property(exploration, target, possible=False) for target in never or ()]
        results += [self._check_property(exploration, target, possible=True) for target in possible or ()]
        if ends:
            stalled_sockets = exploration.stalls
            message = "FAILS: no end can be reached from"
            results += [f"{message} {socket}{self._counterexample(exploration, socket)}" for socket in stalled_sockets]
            results += [] if stalled_sockets else ["holds: an end can be reached from every socket"]
        if most_turns is not None:
            maximum = exploration.most_turns()
            reason = "the number is unlimited" if maximum is None else f"the maximum is {maximum}"
            is_met = maximum is not None and maximum <= most_turns
            results.append(f"{'holds' if is_met else 'FAILS'}: at most {counted(most_turns, 'turn')} ({reason})")
        return "\n".join([*results, *exploration.notes])

    def hand_over(self) -> str:
        """Hand your steps over to a person, who continues with them in the designer or discards them. This ends your work on the loadout."""
        design = self.design
        if not design.steps:
            raise MateriaError(
                "You have not changed the loadout, so nothing can be handed over.", hint="change the loadout first"
            )
        if design.draft_error:
            raise MateriaError(design.draft_error, hint="report this to the person")
        arguments = ("" if design.name in self.bench.loadouts.config.loadout_names else "--new ") + design.name
        count = counted(len(design.steps), "step")
        self.close()
        return f"{count} of {design.name} can now be reviewed in the designer: %materia design {arguments}"

    # -- helpers --------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the design. Its steps remain as a draft, which the designer offers to a person."""
        if self._design is not None:
            self._design.save_draft, self._design = None, None

    def _exploration(self, items: list[int] | None) -> Any:
        from materia_nb.cast.views.loadout_views import ExploreView

        report = self.design.report
        if report.problems:
            raise MateriaError(
                f"{counted(len(report.problems), 'problem')} must be fixed first.", hint=self._findings_text()
            )
        return ExploreView(self.design.graph(), items or range(4))

    def _check_property(self, exploration: Exploration, target: str, *, possible: bool) -> str:
        claim = f"{target} is possible" if possible else f"never {target}"
        is_possible = exploration.can(_parse_element(target))
        if is_possible is None:
            return f"UNKNOWN: {claim}; the search was cut off"
        if is_possible is possible:
            return f"holds: {claim}"
        return f"FAILS: {claim}{'; no route leads to it' if possible else self._counterexample(exploration, target)}"

    def _counterexample(self, exploration: Exploration, target: str) -> str:
        """Create a cast that reaches the target, and describe its route."""
        witness = exploration.witness(_parse_element(target))
        try:
            cast = f"; cast {self._create_cast(witness, target)} shows this route"
        except MateriaError as error:
            cast = f"; the cast could not be created: {error.what}"
        return f": {' → '.join((*witness.route, witness.end or 'no end'))}{cast}"

    def _create_cast(self, witness: Witness, target: str) -> str:
        cast = self.bench.cast(
            f"{_REQUEST}: {target}", loadout=self.design, agents={"*": witness.answers}, pins=dict(witness.pins)
        )
        with cast, suppress(MateriaError):  # The cast is meant to demonstrate the failure.
            for _ in witness.route:  # The run stops at each draft that must be accepted.
                cast.run(steps=None if witness.end else len(witness.route) - len(cast.steps))
                waits = cast.now.waiting_at
                if waits is None or waits.socket not in witness.drafts:
                    break
                cast.accept()
        return cast.id


def _parse_element(target: str) -> str | tuple[str, int]:
    edge = _EDGE.fullmatch(target)
    return (edge[1], int(edge[2])) if edge else target


def _finding_line(problem: Problem) -> str:
    return f"{problem.severity} {problem.code} at {problem.source}: {problem.message}; {problem.hint}"


MAX_MESSAGE_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of a client's message, in bytes."""


async def bounded_lines(
    read: Callable[[int], Awaitable[bytes]], max_bytes: int = MAX_MESSAGE_BYTES
) -> AsyncIterator[str]:
    """Yield the lines from ``read(n)``. A line longer than ``max_bytes`` is replaced with an invalid message."""
    while line := await read(max_bytes):
        chunk = line
        while len(chunk) == max_bytes and not chunk.endswith(b"\n"):
            chunk = await read(max_bytes)
        yield line.decode(errors="replace") if chunk is line else "too long\n"


def serve(project: Path) -> None:
    """Run the MCP server on standard input and output until the client disconnects.

    Raises:
        MateriaError: the package mcp is not installed (``not_installed``).
    """
    try:
        import anyio
        from mcp.server import Server
        from mcp.server.stdio import stdio_server
        from mcp.types import CallToolResult, ListToolsResult, TextContent
        from mcp.types import Tool as McpTool
    except ImportError:
        hint = 'pip install "materia-nb[mcp]"'
        raise MateriaError("`materia mcp` needs the package `mcp`.", hint=hint, kind="not_installed") from None
    design_server = DesignServer(project)

    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        tools = design_server.tools.values()
        return ListToolsResult(
            tools=[
                McpTool(name=tool.name, description=tool.description, input_schema=dict(tool.parameters))
                for tool in tools
            ]
        )

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        client = getattr(context.session, "client_params", None)
        if client is not None:
            design_server.by = client.client_info.name
        result = design_server.call(params.name, params.arguments or {})
        return CallToolResult(content=[TextContent(type="text", text=result.text)], is_error=not result.ok)

    server: Any = Server(
        "materia", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )

    async def run() -> None:
        lines: Any = bounded_lines(lambda size: anyio.to_thread.run_sync(sys.stdin.buffer.readline, size))
        async with stdio_server(stdin=lines) as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        design_server.close()
        design_server.bench.close()

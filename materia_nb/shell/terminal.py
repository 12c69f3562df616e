"""Terminal input and output: questions to a person, results as text or JSON, exit codes, and ``materia check``.

``materia check`` reports the findings about loadout files and saved tests with file and line, in the formats that CI
systems read.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from materia_nb import __version__
from materia_nb.cast import Cast
from materia_nb.cast.cases import SUFFIX, read_case
from materia_nb.cast.project_casts import Casts
from materia_nb.cast.snapshot import RESUME
from materia_nb.cast.views import compare_view as compared
from materia_nb.cast.views.loadout_views import ExploreView, report_view
from materia_nb.cast.views.status import status_view
from materia_nb.cast.views.step_views import HandoffView
from materia_nb.cast.views.tables import UsageView
from materia_nb.cast.workbench import DryBench
from materia_nb.display.blocks import Block, Displayable, JsonView, Line, Table, blocks_as_text, cell_text
from materia_nb.doctor import Checkup
from materia_nb.engine.session import StepRecord
from materia_nb.errors import MateriaError, counted, outgoing, outgoing_line
from materia_nb.insight.explore import Exploration
from materia_nb.jsonvalue import JSON
from materia_nb.loadout.config_files import EXTENSIONS, config_text, line_of
from materia_nb.loadout.graph import Graph
from materia_nb.loadout.report import Problem, Report
from materia_nb.store.opening import Verification
from materia_nb.sweep.results import Sweep

_END_LINE = "."


class ExitCode(IntEnum):
    """The exit codes of the program ``materia``. Their meaning does not change in later versions."""

    SUCCESS = 0
    PROBLEMS = 1
    """A problem or difference was found, a record is damaged, a limit was exceeded, or another error occurred."""
    MISUSE = 2
    """The command line is invalid, or names something that does not exist."""
    FAILED = 3
    """The cast failed or was aborted, or a quest failed."""
    WAITING = 4
    """The cast or a quest is waiting for a person."""
    INTERRUPTED = 130
    """The command was interrupted. The cast can be continued."""


def echo(text: str) -> None:
    """Write a line of text to standard output."""
    sys.stdout.write(f"{text}\n")


def print_error(problem: object) -> None:
    """Write an error or a warning to standard error."""
    sys.stderr.write(f"{as_commands(str(problem))}\n")


def as_commands(text: str) -> str:
    """Replace the ``%materia`` lines in a message with the corresponding terminal commands."""
    return text.replace("%materia ", "materia ")


def can_ask(*, as_json: bool) -> bool:
    """Return True if a person can answer: input and output are a terminal, and the result is not written as JSON."""
    return not as_json and sys.stdin.isatty() and sys.stdout.isatty()


def ask_person(cast: Cast) -> bool:
    """Ask the person at the terminal to answer for a cast; return False if the cast is not waiting or nobody answers.

    An answer may have several lines, and ends with a line that contains only a dot. After Ctrl-D, the cast is still waiting.
    If the answer is rejected, the function returns True, so that the caller asks again.
    """
    if cast.status == "complete" or not (cast.now.approvals.asking or cast.now.waiting_at or cast.now.held):
        return False
    echo(repr(status_view(cast.now)))
    try:
        if cast.now.approvals.asking:
            _ask_approval(cast)
        elif cast.now.held or (cast.now.waiting_at and cast.now.waiting_at.mode == "draft"):
            message = _read_lines("Describe what should change, or write nothing to accept the draft")
            cast.refine(message) if message else cast.accept()
        else:
            cast.reply(_read_lines("Write your answer"))
    except EOFError:
        return False
    except MateriaError as error:  # The answer was rejected, so the caller asks again.
        print_error(error)
    return True


def _ask_approval(cast: Cast) -> None:
    word = ""
    while word not in ("yes", "no", "always"):
        word = input("Approve? Enter yes, no or always (default: no): ").strip() or "no"
    if word == "no":
        cast.approvals.deny("a person denied the call")
    else:
        cast.approvals.approve(always=word == "always")


def _read_lines(question: str) -> str:
    """Read lines up to a line that contains only a dot; raise EOFError after Ctrl-D."""
    echo(f"{question}. End with a line that contains only {_END_LINE!r}; Ctrl-D leaves the cast waiting.")
    return "\n".join(iter(lambda: input("> "), _END_LINE))


_SUCCESS_RULES: Final[tuple[tuple[Any, Callable[[Any], bool]], ...]] = (
    (Verification, lambda verification: verification.is_intact),
    (Checkup, lambda checkup: all(finding.status != "missing" for finding in checkup.findings)),
    (Sweep, lambda sweep: not sweep.failures),
    (compared.Compared, lambda view: not view),
    (ExploreView, lambda view: view.complete_search and not view.stalls),
)  # Functions that return True if a result means success, by its type. A comparison with a difference is a failure.


_RUNNING_VERBS: Final = frozenset({"run", "step", "reply", "accept", "refine", "approve", "deny", "retry", "skip"})
_MISUSE_KINDS: Final = frozenset({"usage", "bad_agent", "bad_model", "not_an_agent"})
"""Kinds of errors that count as misuse, in addition to all kinds that begin with ``unknown_``."""


def exit_code(verb: str, value: object, bench: Any) -> ExitCode:
    """Return the exit code for a verb that returned ``value``.

    The exit code depends on the result if its type is listed in :data:`_SUCCESS_RULES`, on the status of the cast if
    the verb runs a cast, and on the status of every quest for ``quest run``.
    """
    for kind, rule in _SUCCESS_RULES:
        if isinstance(value, kind):
            return ExitCode.SUCCESS if rule(value) else ExitCode.PROBLEMS
    statuses: set[str] = set()
    if verb == "quest run":
        statuses = {quest.status for quest in bench.quests.quests}
    elif verb in _RUNNING_VERBS:
        statuses = {bench.current.status}
    if statuses & {"failed", "aborted"}:
        return ExitCode.FAILED
    is_waiting = verb in ("run", "quest run") and statuses & {"waiting", "held"}
    return ExitCode.WAITING if is_waiting else ExitCode.SUCCESS


def print_agents_note(verb: str, bench: Any, assignments: Sequence[str]) -> None:
    """Write the command that continues an unfinished cast with its agents, which are not stored with the cast.

    ``assignments`` are the values of the option ``--agent``.
    """
    if verb not in {"status", *_RUNNING_VERBS} or bench.current.status in ("complete", "aborted"):
        return
    now = bench.current.now
    if now.live.continue_hint == RESUME and not all(socket.is_utility for socket in now.graph.sockets.values()):
        options = " ".join(f"--agent {shlex.quote(text)}" for text in assignments) or "--agent '*=AGENT'"
        command = f"materia {'retry' if now.status == 'failed' else 'run'} {options}"
        echo(f"A command uses only the agents that it names. Continue with `{command}`.")


def error_code(error: MateriaError) -> ExitCode:
    """Return the exit code for a command that raised an error."""
    if error.kind in ("cast_failed", "cast_waits"):
        return ExitCode.FAILED if error.kind == "cast_failed" else ExitCode.WAITING
    is_misuse = error.kind in _MISUSE_KINDS or error.kind.startswith("unknown_")
    return ExitCode.MISUSE if is_misuse else ExitCode.PROBLEMS


def text_of(value: object, width: int) -> str:
    """Return the result of a verb as text. A panel is shown as in a notebook without widgets."""
    if isinstance(value, Displayable) and type(value)._blocks is Displayable._blocks:  # noqa: SLF001
        return str(value._repr_mimebundle_()["text/plain"])
    return value.as_text(width) if isinstance(value, Block) else repr(value)


def data_of(verb: str, value: object, bench: DryBench) -> dict[str, JSON]:
    """Return the result of a verb (``value``) and the current cast (``cast``) as a JSON document."""
    cast = getattr(bench, "last_cast", None)
    data: dict[str, JSON] = {"value": _to_json(value)}
    if cast is not None:
        now = cast.now
        if verb == "steps":
            data["value"] = [_to_json(_step_data(step)) for step in now.all_steps]
        data["cast"] = {
            "id": now.id,
            "directory": str(now.run_dir),
            "loadout": now.graph.name,
            "request": now.request,
            "status": now.status,
            "steps": len(now.all_steps),
            "route": [step.socket for step in now.all_steps],
            "next": now.next_socket,
            "output": now.all_steps[-1].output if now.all_steps else None,
            "failure": now.failure and {"kind": now.failure.kind, "message": now.failure.message},
            "usage": now.usage_report,
            "state": dict(now.state),
        }
    return data


def _step_data(step: StepRecord) -> dict[str, object]:
    reading = step.reading
    return {
        "step": step.number,
        "socket": step.socket,
        "visit": step.visit,
        "item": step.item_label,
        "lane": step.lane or None,
        "output": step.output,
        "handoff": None if reading is None else reading.value,
        "issues": [] if reading is None else reading.issues,
        "next": None if step.decision is None else step.decision.target,
        "seconds": None if step.worked is None else step.worked / 1000,
    }


_EXPLORATION_FIELDS: Final = ("items", "states", "not_taken", "not_visited", "unrouted", "notes")


def _exploration_data(exploration: Exploration) -> dict[str, object]:
    """Return an exploration as JSON. If ``complete`` is false, the search was cut off and may have missed routes."""
    complete = exploration.complete_search
    fields = {name: getattr(exploration, name) for name in _EXPLORATION_FIELDS}
    certain = {"stalls": exploration.stalls, "most_turns": exploration.most_turns()} if complete else {}
    return {"loadout": exploration.graph.name, "complete": complete, "ends": exploration.ends_seen, **fields, **certain}


_CONVERTERS: Final[tuple[tuple[Any, Callable[[Any], object]], ...]] = (
    (Casts, lambda casts: casts()),
    (Graph, lambda graph: graph.name),
    (JsonView, lambda view: view.value),
    (compared.ReplayView, lambda view: compared.ReplaysView([view])),
    (UsageView, lambda view: view.values),
    (HandoffView, lambda view: _step_data(view.step)),
    (Exploration, _exploration_data),
)  # Functions that convert a result to JSON, by its type, if its fields or table rows are not its whole content.


def _to_json(value: Any) -> JSON:  # noqa: PLR0911 - one return for each kind of value
    """Convert a value to JSON: a dataclass to its fields, a table to its rows with the headers as keys, and so on."""
    for kind, convert in _CONVERTERS:
        if isinstance(value, kind):
            return _to_json(convert(value))
    match value:
        case None | str() | int() | float():
            return value
        case Table():
            headers = [cell_text(header) or "mark" for header in value.headers]
            return [dict(zip(headers, map(cell_text, row), strict=True)) for row in value.rows]
        case Mapping():
            return {str(key): _to_json(entry) for key, entry in value.items()}
        case tuple() if hasattr(value, "_asdict"):
            return _to_json(value._asdict())
        case Sequence() | set() | frozenset():
            return [_to_json(entry) for entry in value]
        case _ if is_dataclass(value):
            return {field.name: _to_json(getattr(value, field.name)) for field in fields(value) if field.name[0] != "_"}
        case Displayable() if type(value)._blocks is not Displayable._blocks:  # noqa: SLF001 - a panel has only text, no blocks
            return value.as_json()
    return str(value)


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """A problem or hint with its file and line. ``file`` is empty if no file contains it."""

    problem: Problem
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The findings of ``materia check``, by the loadout or file that was checked."""

    subjects: Mapping[str, tuple[LocatedFinding, ...]]

    @property
    def findings(self) -> tuple[LocatedFinding, ...]:
        """The findings about all loadouts and files that were checked."""
        return tuple(finding for findings in self.subjects.values() for finding in findings)

    @property
    def ok(self) -> bool:
        """True if no problem was found; hints are allowed."""
        return all(finding.problem.severity == "hint" for finding in self.findings)


def findings_of(bench: DryBench, names: Sequence[str], *, strict: bool = False, engine: str | None = None) -> CheckRun:
    """Check loadout files, saved tests and loadouts, and return the findings.

    If ``names`` is empty, check all loadouts that are not bundled, or the selected loadout if all are bundled. With
    ``strict``, an unknown field is a problem.
    """

    def check(name: str) -> tuple[LocatedFinding, ...]:
        return _locate_findings(bench, bench.check(name, engine=engine), strict=strict)

    subjects: dict[str, tuple[LocatedFinding, ...]] = {}
    if not names:
        subjects.update(_unreadable_files(bench))
        for name in names_of_own_loadouts(bench) or filter(None, [bench.loadouts.chosen]):
            subjects[name] = check(name)
    for name in names:
        if name.endswith(SUFFIX):
            subjects[name] = tuple(_check_case(bench.project / name))
        elif Path(name).suffix in EXTENSIONS:
            subjects.update(_check_file(bench, name, check, strict=strict))
        else:
            subjects[name] = check(name)
    return CheckRun(subjects)


def names_of_own_loadouts(bench: DryBench) -> list[str]:
    """Return the names of the loadouts that are not bundled with the package."""
    layers = [layer for layer in bench.loadouts.config.layers if layer.name != "bundled"]
    return list(dict.fromkeys(name for layer in layers for name in layer.loadouts))


def select_own_loadout(bench: DryBench) -> None:
    """Select the first loadout that is not bundled, unless a config file sets ``activeLoadout``."""
    layers = [layer for layer in bench.loadouts.config.layers if layer.name != "bundled"]
    if (own := names_of_own_loadouts(bench)) and not any("activeLoadout" in layer.document for layer in layers):
        bench.loadouts.use(own[0])


def _check_file(
    bench: DryBench, name: str, check: Callable[[str], tuple[LocatedFinding, ...]], *, strict: bool
) -> Iterator[tuple[str, tuple[LocatedFinding, ...]]]:
    try:
        bench.load(name)
    except MateriaError as error:
        yield name, (_unreadable_finding(name, error),)
        return
    layer = next(layer for layer in bench.loadouts.config.layers if layer.name == "given")
    if not layer.loadouts:
        yield name, _locate_findings(bench, bench.loadouts.config.check(), strict=strict)
    for loadout in layer.loadouts:
        yield f"{name}: {loadout}", check(loadout)


def _locate_findings(bench: DryBench, report: Report, *, strict: bool) -> tuple[LocatedFinding, ...]:
    """Locate each finding in the file that contains the longest part of its path."""
    report = report.strict() if strict else report
    # Spelling mistakes come first, because they often cause other findings.
    problems = sorted((*report.problems, *report.hints), key=lambda problem: "did you mean" not in problem.hint)
    files = [
        layer.path
        for layer in reversed(bench.loadouts.config.layers)
        if layer.path is not None and not layer.fault and layer.name != "bundled"
    ]
    texts = {path: config_text(path) for path in files} if problems else {}
    located_findings = []
    for problem in problems:
        matches = [(*line_of(text, problem.source, problem.loadout), path) for path, text in texts.items()]
        line, _, path = min(matches, key=lambda match: match[1], default=(1, 0, None))
        located_findings.append(LocatedFinding(problem, "" if path is None else _relative_path(path), line))
    return tuple(located_findings)


def _relative_path(path: Path) -> str:
    """Return a path relative to the current directory, or unchanged if it is outside that directory."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _unreadable_files(bench: DryBench) -> Iterator[tuple[str, tuple[LocatedFinding, ...]]]:
    """Yield the name of each config file that cannot be read, with a finding that describes the error."""
    for layer in bench.loadouts.config.layers:
        if layer.fault is not None and layer.path is not None:
            yield _relative_path(layer.path), (_unreadable_finding(_relative_path(layer.path), layer.fault),)


def _unreadable_finding(name: str, error: MateriaError) -> LocatedFinding:
    line = (error.where or "").removeprefix(name).split(":")[1:2]
    number = int(line[0]) if line and line[0].isdigit() else 1
    where = (error.where or name).removeprefix(f"{Path.cwd()}/")
    return LocatedFinding(Problem("unreadable", where, error.what, error.hint or ""), name, number)


def _check_case(path: Path) -> Iterator[LocatedFinding]:
    try:
        case = read_case(path)
        failures, advice = case.check(), case.advice
    except MateriaError as error:
        failures, advice = [error.what], error.hint or "fix the loadout or the test"
    for failure in failures:
        yield LocatedFinding(Problem("failed-case", path.name, failure, advice), _relative_path(path.absolute()), 1)


# -- formats of findings ---------------------------------------------------------


def _format_text(checked: CheckRun) -> str:
    blocks: list[Any] = []
    for subject, findings in checked.subjects.items():
        problems = tuple(finding.problem for finding in findings if finding.problem.severity == "problem")
        hints = tuple(finding.problem for finding in findings if finding.problem.severity == "hint")
        blocks.append(report_view(outgoing_line(subject), Report(problems, hints)))
        blocks += [
            Line(outgoing_line(f"{finding.file}:{finding.line}: {finding.problem.source}"))
            for finding in findings
            if finding.file and finding.problem in problems
        ]
    return blocks_as_text(blocks) if blocks else "There is nothing to check."


def _format_json(checked: CheckRun) -> str:
    findings = [
        {
            **{name: getattr(finding.problem, name) for name in ("severity", "code", "loadout")},
            "path": finding.problem.source,
            **{name: outgoing(getattr(finding.problem, name)) for name in ("message", "hint")},
            "file": finding.file,
            "line": finding.line,
        }
        for finding in checked.findings
    ]
    document = {"ok": checked.ok, "checked": [*checked.subjects], "findings": findings}
    return json.dumps(document, ensure_ascii=False, indent=2)


def _format_github(checked: CheckRun) -> str:
    """Return GitHub workflow commands, which annotate the lines of a pull request with the findings."""
    lines = []
    for finding in checked.findings:
        problem = finding.problem
        command = "error" if problem.severity == "problem" else "notice"
        location = f"file={_escape_property(finding.file)},line={finding.line}," if finding.file else ""
        title = _escape_property(f"{problem.code} {problem.source}")
        lines.append(f"::{command} {location}title={title}::{_escape_data(_finding_sentence(problem))}")
    problems = sum(finding.problem.severity == "problem" for finding in checked.findings)
    counts = f"{counted(problems, 'problem')}, {counted(len(checked.findings) - problems, 'hint')}"
    return "\n".join([*lines, f"{counted(len(checked.subjects), 'subject')} checked: {counts}"])


def _escape_data(text: str) -> str:
    return outgoing(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _finding_sentence(problem: Problem) -> str:
    return outgoing_line(f"{problem.message}; {problem.hint}" if problem.hint else problem.message)


def _format_sarif(checked: CheckRun) -> str:
    """Return SARIF 2.1.0, the exchange format of code scanning tools."""
    results = []
    for finding in checked.findings:
        location = {
            "physicalLocation": {
                "artifactLocation": {"uri": quote(Path(finding.file).as_posix())},
                "region": {"startLine": finding.line},
            },
            "logicalLocations": [{"fullyQualifiedName": outgoing_line(finding.problem.source)}],
        }
        results.append(
            {
                "ruleId": finding.problem.code,
                "level": "error" if finding.problem.severity == "problem" else "note",
                "message": {"text": _finding_sentence(finding.problem)},
                "locations": [location] if finding.file else [],
            }
        )
    rules = [{"id": code} for code in sorted({finding.problem.code for finding in checked.findings})]
    driver = {"name": "materia", "version": __version__, "rules": rules}
    sarif = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(sarif, ensure_ascii=False, indent=2)


def _format_junit(checked: CheckRun) -> str:
    """Return JUnit XML, in which each checked loadout or file is a test case.

    The problems are the failures of a test case, and the hints are its output.
    """
    suite = ET.Element("testsuite", name="materia check", tests=str(len(checked.subjects)))
    failures = 0
    for subject, findings in checked.subjects.items():
        case = ET.SubElement(suite, "testcase", classname="materia", name=outgoing_line(subject))
        problems = [finding for finding in findings if finding.problem.severity == "problem"]
        failures += bool(problems)
        for finding in problems:
            problem = finding.problem
            failure = ET.SubElement(case, "failure", type=problem.code, message=_finding_sentence(problem))
            failure.text = outgoing_line(f"{finding.file}:{finding.line}: {problem.source}")
        hints = [outgoing_line(str(finding.problem)) for finding in findings if finding.problem.severity == "hint"]
        if hints:
            ET.SubElement(case, "system-out").text = "\n".join(hints)
    suite.set("failures", str(failures))
    # Every terminal can print ASCII.
    report: bytes = ET.tostring(suite, encoding="us-ascii", xml_declaration=True)
    return report.decode()


FORMATTERS: Final[Mapping[str, Callable[[CheckRun], str]]] = {
    "text": _format_text,
    "json": _format_json,
    "github": _format_github,
    "sarif": _format_sarif,
    "junit": _format_junit,
}
"""The functions that return findings as text, by the name of the format."""

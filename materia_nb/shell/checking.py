"""``materia check``: the findings of many files of loadouts and cases, each with its file and line, in the forms that CI reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from materia_nb import __version__
from materia_nb.cast.cases import SUFFIX, read_case
from materia_nb.cast.views.loadout_views import ReportView
from materia_nb.cast.workbench import DryBench
from materia_nb.display.blocks import Line, blocks_as_text
from materia_nb.errors import MateriaError, counted, outgoing, outgoing_line
from materia_nb.loadout.config_files import ENDINGS, line_of
from materia_nb.loadout.config_files import config_text as text_of_file
from materia_nb.loadout.report import Problem, Report

_UNREADABLE: Final = "unreadable"
_FAILED_CASE: Final = "failed-case"


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, and where its file says it: ``file`` is empty for what no file says."""

    problem: Problem
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Checked:
    """What checking found, by what was checked: a loadout, or a file."""

    subjects: Mapping[str, tuple[Found, ...]]

    @property
    def found(self) -> tuple[Found, ...]:
        """All findings."""
        return tuple(one for many in self.subjects.values() for one in many)

    @property
    def ok(self) -> bool:
        """Whether there is no problem; hints are none."""
        return all(one.problem.severity == "hint" for one in self.found)


def findings_of(bench: DryBench, names: Sequence[str], *, strict: bool = False) -> Checked:
    """Check files of loadouts, cases and loadouts; without a name the loadouts that are not bundled, else the chosen one.

    Where one is ``strict``, a field that nothing reads is a problem.
    """
    subjects: dict[str, tuple[Found, ...]] = {}
    if not names:
        subjects.update(_faults(bench))
        for name in own_loadouts(bench) or filter(None, [bench.loadouts.chosen]):
            subjects[name] = _of_loadout(bench, name, strict=strict)
    for name in names:
        if name.endswith(SUFFIX):
            subjects[name] = tuple(_of_case(bench.project / name))
        elif Path(name).suffix in ENDINGS:
            subjects.update(_of_file(bench, name, strict=strict))
        else:
            subjects[name] = _of_loadout(bench, name, strict=strict)
    return Checked(subjects)


def own_loadouts(bench: DryBench) -> list[str]:
    """The loadouts that are not bundled."""
    layers = [layer for layer in bench.loadouts.config.layers if layer.name != "bundled"]
    return list(dict.fromkeys(name for layer in layers for name in layer.loadouts))


def choose_own(bench: DryBench) -> None:
    """Choose the first loadout that is not bundled, where no file says which is active: no choice outlives a command."""
    layers = [layer for layer in bench.loadouts.config.layers if layer.name != "bundled"]
    if (own := own_loadouts(bench)) and not any("activeLoadout" in layer.settings for layer in layers):
        bench.loadouts.use(own[0])


def _of_file(bench: DryBench, name: str, *, strict: bool) -> Iterator[tuple[str, tuple[Found, ...]]]:
    try:
        bench.load(name)
    except MateriaError as error:
        yield name, (_unreadable(name, error),)
        return
    layer = next(one for one in bench.loadouts.config.layers if one.name == "given")
    if not layer.loadouts:
        yield name, _placed(bench, bench.loadouts.config.check(), strict=strict)
    for loadout in layer.loadouts:
        if layer.document["loadouts"][loadout] is not None:  # null takes away the one below
            yield f"{name}: {loadout}", _of_loadout(bench, loadout, strict=strict)


def _of_loadout(bench: DryBench, name: str, *, strict: bool) -> tuple[Found, ...]:
    return _placed(bench, bench.check(name), strict=strict)


def _placed(bench: DryBench, report: Report, *, strict: bool) -> tuple[Found, ...]:
    """Find the file that says what each problem is about, the one that says most of its path, and the line."""
    report = report.strict() if strict else report
    # A slip of the pen first: what follows from it is often found too.
    problems = sorted((*report.problems, *report.hints), key=lambda one: "did you mean" not in one.hint)
    files = [
        one.path
        for one in reversed(bench.loadouts.config.layers)
        if one.path is not None and not one.fault and one.name != "bundled"  # which nobody here can mend
    ]
    texts = {path: text_of_file(path) for path in files} if problems else {}
    placed = []
    for one in problems:
        spots = [(*line_of(text, one.source, one.loadout), path) for path, text in texts.items()]
        line, _, path = min(spots, key=lambda spot: spot[1], default=(1, 0, None))
        placed.append(Found(one, "" if path is None else _short(path), line))
    return tuple(placed)


def _short(path: Path) -> str:
    """A path as CI wants it: relative to where the program runs, if it is there."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _faults(bench: DryBench) -> Iterator[tuple[str, tuple[Found, ...]]]:
    """Yield the files that were left out since they are faulty."""
    for layer in bench.loadouts.config.layers:
        if layer.fault is not None and layer.path is not None:
            yield _short(layer.path), (_unreadable(_short(layer.path), layer.fault),)


def _unreadable(name: str, error: MateriaError) -> Found:
    line = (error.where or "").removeprefix(name).split(":")[1:2]
    number = int(line[0]) if line and line[0].isdigit() else 1
    where = (error.where or name).removeprefix(f"{Path.cwd()}/")
    return Found(Problem(_UNREADABLE, where, error.what, error.hint or ""), name, number)


def _of_case(path: Path) -> Iterator[Found]:
    advice = "mend the loadout, or write the case anew if it is meant (cast.export.test)"
    try:
        failed = read_case(path).check()
    except MateriaError as error:
        failed, advice = [error.what], error.hint or advice
    for one in failed:
        yield Found(Problem(_FAILED_CASE, path.name, one, advice), _short(path.absolute()), 1)


# -- how findings are written ----------------------------------------------------------


def _text(checked: Checked) -> str:
    said: list[Any] = []
    for subject, found in checked.subjects.items():
        problems = tuple(one.problem for one in found if one.problem.severity == "problem")
        hints = tuple(one.problem for one in found if one.problem.severity == "hint")
        said.append(ReportView(outgoing_line(subject), Report(problems, hints)))
        said += [
            Line(outgoing_line(f"{one.file}:{one.line}: {one.problem.source}"))
            for one in found
            if one.file and one.problem in problems
        ]
    return blocks_as_text(said) if said else "nothing to check"


def _json(checked: Checked) -> str:
    findings = []
    for one in checked.found:
        said = {name: getattr(one.problem, name) for name in ("severity", "code", "loadout")}
        words = {name: outgoing(getattr(one.problem, name)) for name in ("message", "hint")}
        findings.append({**said, "path": one.problem.source, **words, "file": one.file, "line": one.line})
    document = {"ok": checked.ok, "checked": [*checked.subjects], "findings": findings}
    return json.dumps(document, ensure_ascii=False, indent=2)


def _github(checked: Checked) -> str:
    """Workflow commands, which GitHub shows at the lines of a pull request."""
    lines = []
    for one in checked.found:
        kind = "error" if one.problem.severity == "problem" else "notice"
        at = f"file={_escaped(one.file, more=True)},line={one.line}," if one.file else ""
        title = _escaped(f"{one.problem.code} {one.problem.source}", more=True)
        lines.append(f"::{kind} {at}title={title}::{_escaped(_sentence(one.problem))}")
    return "\n".join([*lines, _counts(checked)])


def _escaped(text: str, *, more: bool = False) -> str:
    """Escape what would end a value of a workflow command; ``more`` where it is a property."""
    text = outgoing(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if more else text


def _sentence(problem: Problem) -> str:
    return outgoing_line(f"{problem.message}; {problem.hint}" if problem.hint else problem.message)


def _counts(checked: Checked) -> str:
    problems = sum(one.problem.severity == "problem" for one in checked.found)
    hints = len(checked.found) - problems
    return f"{counted(len(checked.subjects), 'subject')} checked: {counted(problems, 'problem')}, {counted(hints, 'hint')}"


def _sarif(checked: Checked) -> str:
    """SARIF 2.1.0, as code scanning takes it."""
    results = [
        {
            "ruleId": one.problem.code,
            "level": "error" if one.problem.severity == "problem" else "note",
            "message": {"text": _sentence(one.problem)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(Path(one.file).as_posix())},
                        "region": {"startLine": one.line},
                    },
                    "logicalLocations": [{"fullyQualifiedName": outgoing_line(one.problem.source)}],
                }
            ]
            if one.file
            else [],
        }
        for one in checked.found
    ]
    rules = [{"id": code} for code in sorted({one.problem.code for one in checked.found})]
    driver = {"name": "materia", "version": __version__, "rules": rules}
    sarif = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(sarif, ensure_ascii=False, indent=2)


def _junit(checked: Checked) -> str:
    """JUnit's XML: each subject is a test, which fails by its problems; hints are its output."""
    suite = ET.Element("testsuite", name="materia check", tests=str(len(checked.subjects)))
    failures = 0
    for subject, found in checked.subjects.items():
        case = ET.SubElement(suite, "testcase", classname="materia", name=outgoing_line(subject))
        problems = [one for one in found if one.problem.severity == "problem"]
        failures += bool(problems)
        for one in problems:
            failure = ET.SubElement(case, "failure", type=one.problem.code, message=_sentence(one.problem))
            failure.text = outgoing_line(f"{one.file}:{one.line}: {one.problem.source}")
        hints = [outgoing_line(str(one.problem)) for one in found if one.problem.severity == "hint"]
        if hints:
            ET.SubElement(case, "system-out").text = "\n".join(hints)
    suite.set("failures", str(failures))
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


_WRITERS: Final[Mapping[str, Callable[[Checked], str]]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
    "junit": _junit,
}
FORMATS: Final = tuple(_WRITERS)
"""How findings can be written."""


def findings_text(checked: Checked, form: str) -> str:
    """Write findings in one of :data:`FORMATS`."""
    return _WRITERS[form](checked)

"""Test that the documentation is correct: generated parts are up to date, code runs, and links and names resolve."""

from __future__ import annotations

import json
import logging
import os
import pydoc
import re
import shlex
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from IPython.utils.capture import capture_output

import cast_helpers as h
import make_docs
import protocol_helpers as p
import stream_helpers as streams
from conformance.run import run_vector
from magics_helpers import new_shell
from materia_nb import Workbench
from materia_nb.agents import AgentError, CallEvent, NeedsApproval, NoteEvent, ToolCall, Usage, UsageEvent
from materia_nb.lessons.__main__ import main as lessons_main
from materia_nb.loadout import check_config, read_text
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from materia_nb.magics.registry import VERBS
from materia_nb.shell.commands import main, parse_command

ROOT = make_docs.ROOT
PAGES = [
    Path("README.md"),
    Path("CONTRIBUTING.md"),
    Path("config/README.md"),
    *(p.relative_to(ROOT) for p in sorted(ROOT.glob("docs/*.md"))),
]
LANGUAGES = {"python", "ipython", "json", "yaml", "sh", "text"}

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r"\s*^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")
MEMBER = re.compile(r"(?<!\.)\b(wb|cast)\.([a-z_]\w*)")
MAGIC = re.compile(r"%materia[ \n]([a-z]+(?:-[a-z]+)*)")


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str
    output: str | None = None
    """The expected output of a code block, which is the text block after it; a line "..." stands for omitted lines."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def text_of(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(*languages: str, page: Path | None = None) -> list[Block]:
    return [
        Block(
            one,
            text_of(one).count("\n", 0, match.start()) + 1,
            match[1],
            match[2],
            shown[1] if (shown := OUTPUT.match(text_of(one), match.end())) else None,
        )
        for one in (PAGES if page is None else [page])
        for match in FENCE.finditer(text_of(one))
        if match[1] in languages
    ]


def assert_output(block: Block, printed: str) -> None:
    """Compare the printed output of a block with the output in the documentation."""
    if block.output is None:
        return
    got = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()).removeprefix("Out[0]:\n")
    wanted = ".*".join(re.escape(part) for part in block.output.strip("\n").split("..."))
    assert re.fullmatch(wanted, got, re.DOTALL), f"{block} prints\n{got}"


def prose(page: Path) -> str:
    return FENCE.sub("", text_of(page))


def each(values: list[Any]) -> Any:
    return pytest.mark.parametrize("one", values, ids=str)


# -- what is generated ----------------------------------------------------------------


@pytest.fixture
def copy_of_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for path in (*make_docs.generated(), Path("config/default.json")):  # the bundled config is a copy of that file
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / path).read_bytes())
    monkeypatch.setattr(make_docs, "ROOT", tmp_path)
    return tmp_path


def test_generated_parts_of_the_docs_are_up_to_date(capsys):
    stale = make_docs.main(["--check"])
    assert not stale, capsys.readouterr().err


def test_error_for_stale_docs_names_the_file_and_command(copy_of_docs, capsys):
    page = copy_of_docs / make_docs.MAGICS
    page.write_text("old")
    assert make_docs.main(["--check"]) == 1
    told = capsys.readouterr().err
    assert "docs/commands.md" in told
    assert make_docs.COMMAND in told
    assert "loadout-format" not in told
    assert page.read_text() == "old"


def test_make_docs_updates_stale_documentation(copy_of_docs):
    page = copy_of_docs / make_docs.FORMAT
    page.write_text(page.read_text().replace("| `entry` |", "| `entrance` |"))
    (copy_of_docs / make_docs.PICTURE).unlink()
    assert make_docs.main(["--check"]) == 1
    assert make_docs.main([]) == 0
    assert make_docs.main(["--check"]) == 0
    assert "| `entry` |" in page.read_text()


def test_undocumented_model_raises_an_error():
    rows = make_docs.config_fields()
    with pytest.raises(SystemExit, match="no markers for"):
        make_docs.with_tables("<!-- generated: Config -->\n<!-- end -->\n", rows)


def test_readme_picture_is_a_self_contained_svg():
    svg = (ROOT / make_docs.PICTURE).read_text()
    assert svg.startswith("<svg ")
    assert svg.rstrip().endswith("</svg>")
    assert "Socket-5" in svg
    assert not re.search(r"<script|<image|(?:href|src)=|url\(", svg)


# -- blocks ---------------------------------------------------------------------------


def test_every_code_block_has_a_language():
    fences = [(page, match[1]) for page in PAGES for match in FENCE.finditer(text_of(page))]
    assert fences
    assert [fence for fence in fences if fence[1] not in LANGUAGES] == []


@pytest.fixture
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run the examples of a page in a project, and restore the logging settings that a page changes."""
    monkeypatch.chdir(project)
    logger = logging.getLogger("materia_nb")
    level = logger.level
    yield project
    logger.setLevel(level)


def test_every_cast_example_shows_how_the_cast_ends():
    """An example whose cast fails unnoticed would mislead readers."""
    silent = []
    for block in blocks("python"):
        runs = set(re.findall(r"\b(\w+)\.run\(", block.text)) - {"subprocess"}
        said = re.findall(r"^\s*assert .*?\b(\w+)\.(?:run\(|status\b|failure\b)", block.text, re.MULTILINE)
        silent += [f"{block}: {name}" for name in sorted(runs - set(said))]
    assert silent == []


@each(list({block.page: None for block in blocks("python")}))
def test_python_blocks_run_in_order(one, in_project, capsys):
    names: dict[str, Any] = {"__name__": "docs"}
    for block in blocks("python", page=one):
        padding = "\n" * block.line  # so that a traceback names the line of the page
        exec(compile(padding + block.text, str(one), "exec"), names)  # noqa: S102 - our own pages
        assert_output(block, capsys.readouterr().out)
    close(names)


@pytest.fixture
def shell(in_project):
    second_shell = new_shell()
    yield second_shell
    close(second_shell.user_ns)


@each(list({block.page: None for block in blocks("ipython")}))
def test_notebook_cells_run_in_order(one, shell):
    for block in blocks("ipython", page=one):
        with capture_output() as captured:
            result = shell.run_cell(block.text)
        fault = result.error_before_exec or result.error_in_exec
        assert fault is None, f"{block}: {fault}"
        displayed = [shown.data.get("text/plain", "") for shown in captured.outputs]
        assert_output(block, "\n".join([captured.stdout.strip("\n"), *displayed]).strip("\n"))


@each([block for block in blocks("sh") if block.output is not None])
def test_shell_commands_print_what_the_page_shows(one, in_project, capsys):
    for line in one.text.splitlines():
        words = shlex.split(line.partition("  #")[0])
        run = lessons_main if "materia_nb.lessons" in words else main
        run(words[3:] if words[0] == "python" else words[1:])
    assert_output(one, capsys.readouterr().out)


def close(names: dict[str, Any]) -> None:
    for value in list(names.values()):
        if isinstance(value, Workbench):
            value.close()


def test_readme_tour_ends_as_described(shell):
    for block in blocks("ipython", page=Path("README.md")):
        shell.run_cell(block.text)
    cast = shell.user_ns["wb"].current
    assert cast.status == "complete"
    assert [socket for socket, *_ in cast.route[:5]] == [
        "Socket-1",
        "Socket-2",
        "Socket-3",
        "Socket-2",
        "Socket-3",
    ]
    assert "There are four headings" in cast.steps.at(4).prompt.text


# Those of docs/problems-and-hints.md are faulty by intent, and held to what it says by tests/loadout/test_fixes.py.
@each([block for block in blocks("json", "yaml") if block.page.name != "problems-and-hints.md"])
def test_data_blocks_are_valid(one):
    value = json.loads(one.text) if one.language == "json" else read_text(one.text, "yaml")
    assert isinstance(value, dict)
    if "kind" in value:
        assert run_vector(value) == []
    elif "loadouts" in value:
        report = check_config(value)
        assert report.ok, str(report)
        assert not report.hints, str(report)


def test_smallest_loadout_is_the_same_in_yaml_and_json():
    page = Path("docs/loadout-format.md")
    assert read_text(blocks("yaml", page=page)[0].text, "yaml") == json.loads(blocks("json", page=page)[0].text)


@each(blocks("sh"))
def test_shell_blocks_contain_only_known_commands(one):
    """For commands that a test cannot run, the make targets, extras and modules must at least exist."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for line in filter(None, (line.partition("  #")[0].strip() for line in one.text.splitlines())):
        if match := re.fullmatch(r"make ([a-z-]+)(?: \w+=.*)?", line):
            assert match[1] in targets, line
        elif match := re.fullmatch(r'pip install -e "\.\[(\w+)\]"', line):
            assert match[1] in extras, line
        elif match := re.fullmatch(r"(?:materia|python -m materia_nb) (.+)", line):
            assert match[1] == "--help" or parse_command(shlex.split(match[1])), line
        elif match := re.fullmatch(r"python -m materia_nb\.lessons (\w+) \S+", line):
            assert match[1] == "levels", line
        elif match := re.fullmatch(r"jupyter lab my-lessons/(\S+)", line):
            assert (ROOT / "notebooks" / match[1]).exists(), line
        elif match := re.fullmatch(r"python ((?:[\w.-]+/?)+\.py)((?: [\w/.-]+)*)", line):
            assert all((ROOT / name).exists() for name in (match[1], *match[2].split())), line
        elif match := re.fullmatch(r"python -m (materia_nb[\w.]*)((?: [\w/.-]+)*?)(?: --output \S+)?", line):
            assert find_spec(match[1]), line
            assert all((ROOT / name).exists() for name in match[2].split()), line
        else:
            pytest.fail(f"{one}: not a command that can be checked: {line}")


def test_documented_conformance_command_works():
    line = blocks("sh", page=RUN_PAGE)[0].text.split()
    result = subprocess.run([sys.executable, *line[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.search(r"validate: \d+ passed, 0 failed", result.stdout)


# -- links ----------------------------------------------------------------------------


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors that GitHub generates for the headings of a page."""
    seen: defaultdict[str, int] = defaultdict(int)
    found = set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return frozenset(found)


@each(PAGES)
def test_links_and_anchors_resolve(one):
    for target in LINK.findall(prose(one)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (one.parent / name) if name else one
        assert (ROOT / path).exists(), f"{one}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{one}: {target}"


def test_every_page_is_at_most_two_clicks_from_the_index():
    reached = {Path("docs/index.md")}
    for _ in range(2):
        targets = {(page, target.partition("#")[0]) for page in reached for target in LINK.findall(prose(page))}
        linked = {Path(os.path.normpath(page.parent / target)) for page, target in targets if target.endswith(".md")}
        reached |= linked & set(PAGES)
    assert set(PAGES) - reached <= {Path("README.md")}


def test_thirty_common_questions_have_a_runnable_answer_or_a_link():
    answers = re.findall(r"^## .+\?\n((?:(?!## ).*\n?)+)", text_of(Path("docs/how-do-i.md")), re.MULTILINE)
    assert len(answers) == 30
    assert all("```" in answer or LINK.search(answer) for answer in answers)
    assert "(how-do-i.md)" in text_of(Path("docs/index.md"))


def test_rules_cited_in_the_docs_exist():
    cited = set()
    for path in [*ROOT.glob("materia_nb/**/*.py"), *(ROOT / page for page in PAGES)]:
        cited |= set(re.findall(r"\bR(\d{1,2})\b", path.read_text(encoding="utf-8")))
    assert cited
    assert {f"r{number}" for number in cited} <= anchors(Path("docs/rules.md"))


# -- names ----------------------------------------------------------------------------


def test_documented_magic_verbs_exist_and_every_magic_verb_is_documented():
    named = {(page, verb) for page in PAGES for verb in MAGIC.findall(text_of(page))}
    words = {name.partition(" ")[0] for name in VERBS}
    assert {one for one in named if one[1] not in words} == set()
    assert {name.replace(" ", "-") for name in VERBS} <= anchors(make_docs.MAGICS)


def test_documented_methods_and_attributes_exist(project):
    wb = Workbench(project)
    holders = {"wb": wb, "cast": wb.cast("hi", loadout="Hello-Utility")}
    named = {(page, *member) for page in PAGES for member in MEMBER.findall(text_of(page))}
    file_names = {"lock", "html", "py", "jsonl", "png"}
    unknown = {
        one for one in named if not hasattr(holders[one[1]], one[2]) and not (one[1] == "cast" and one[2] in file_names)
    }
    wb.close()
    assert unknown == set()


REFERENCE = sorted(
    {name for page in ROOT.glob("docs/api/*.rst") for name in re.findall(r"autoclass:: (\S+)", page.read_text())}
)


def test_reference_has_the_workbench_the_cast_and_their_groups(project):
    wb = Workbench(project)
    cast = wb.cast("hi", loadout="Hello-Utility")
    inner = {"files", "graph", "runner", "state"}  # a view, and values that other pages explain
    names = {holder: {name for name in dir(holder) if not name.startswith("_")} - inner for holder in (wb, cast)}
    members = [getattr(holder, name) for holder in names for name in names[holder]]
    groups = {type(member) for member in members if type(member).__module__.startswith("materia_nb.")}
    assert groups | {type(wb), type(cast)} <= {pydoc.locate(name) for name in REFERENCE}
    wb.close()


@pytest.mark.parametrize("name", REFERENCE)
def test_every_public_member_is_documented(name):
    """The generated reference omits members without a docstring."""
    members = {member: value for member, value in vars(pydoc.locate(name)).items() if not member.startswith("_")}
    routines = {member: value for member, value in members.items() if callable(value) or hasattr(value, "__get__")}
    assert [member for member, value in routines.items() if not value.__doc__] == []


def test_every_bundled_protocol_is_documented():
    _, *explained = re.findall(r"^\| `([a-z-]+)` \|", text_of(Path("docs/handoff-protocols.md")), re.MULTILINE)
    assert list(OWN_PROTOCOLS) == explained[: len(OWN_PROTOCOLS)]
    assigned = re.search(r"^\| `assignment` \|.*", text_of(make_docs.FORMAT), re.MULTILINE)[0]
    assert re.findall(r"`([a-z-]+)`", assigned)[1:] == [
        name for name, one in OWN_PROTOCOLS.items() if one.includes_assignment
    ]


# -- the run directory ----------------------------------------------------------------

RUN_PAGE = Path("docs/run-directory.md")
VISIT = {"socket", "materia", "materiaLabel", "visit", "itemKey", "itemLabel", "itemLabelShort"}
OUTPUT_FIELDS = {
    *("text", "artifact", "sha256", "usage", "meta", "changedFiles", "pinned", "by", "thinking", "cut", "worked"),
}


def events_of_the_page() -> dict[str, set[str]]:
    table = {}
    page = text_of(RUN_PAGE).split("<!-- generated: events -->")[1].split("<!-- end -->")[0]
    for types, data in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]*) \|", page, re.MULTILINE):
        fields = set(re.findall(r"`(\w+)`", data)) | (VISIT if re.match(r"visit\b", data) else set())
        fields |= OUTPUT_FIELDS if re.match(r"visit, output\b", data) else set()
        table |= dict.fromkeys(re.findall(r"\w+", types), fields)
    return table


def varied_casts(wb: Workbench) -> list[Any]:
    """Return casts that together write every kind of event: items, repairs, drafts, failures, budgets and retries."""
    materia = {
        "Plan": {"tools": "none", "generator": True, "prompt": "plan"},
        "Talk": {"tools": "none", "multiTurn": True, "prompt": "talk"},
        "Bad": {"type": "utility", "command": [sys.executable, "-c", "print('no json')"], "parse": "json"},
        "Gone": {"type": "utility", "command": ["./no-such-program"]},
    }
    for name in materia:
        wb.loadouts.define(
            f"T-{name}", {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": name}}, "materia": materia}
        )

    usage = {"input": 6, "output": 2}
    plan = {"Plan": ["no", {"text": "still no", "usage": usage}, {"text": '{"workItems": []}', "usage": usage}]}
    repaired = wb.cast("r", loadout="T-Plan", agents={"*": plan})
    repaired.edit.budget(9)
    repaired.labels.add(name="labelled")
    repaired.run()  # the repair turns are used up
    repaired.retry(limit=True)
    repaired.edit.redefine("Plan", {**wb.loadouts.config.document["materia"]["Plan"], "model": "test:small"})

    talked = wb.cast("t", loadout="T-Talk", agents={"*": lambda turn: turn.kind})
    talked.run()
    talked.refine("shorter")
    talked.accept()
    talked.run()

    wb.loadouts.define(
        "T-Final",
        {
            "entry": "Socket-1",
            "sockets": {"Socket-1": {"materia": "Plan", "parse": "json", "finalize": True}},
        },
    )
    worked = wb.cast(
        "w", loadout="T-Final", agents={"*": {"Plan": ["work", {"workItems": [], "event": [{"type": "x"}]}]}}
    )
    worked.run()

    wb.loadouts.define(
        "T-Nowhere",
        {
            "entry": "Socket-1",
            "sockets": {"Socket-1": {"materia": "Plan", "parse": "json", "assign": {"..": "$"}}},
        },
    )
    nowhere = wb.cast("n", loadout="T-Nowhere", agents={"*": lambda turn: {"workItems": []}})
    nowhere.run()
    nowhere.retry()

    way_around = [{"when": "failed", "to": "end"}]
    wb.loadouts.define(
        "T-Around", {"entry": "Socket-1", "sockets": {"Socket-1": {"materia": "Gone", "edges": way_around}}}
    )

    def write(turn):
        (turn.project / "page.md").write_text("A page.\n")
        return "no work items"

    kept = wb.cast("k", loadout="T-Plan", agents={"*": write}, files="not ignored")
    kept.run()

    failed = [wb.cast("f", loadout=f"T-{name}") for name in ("Bad", "Gone", "Around")]
    for cast in failed:
        cast.run()
    failed[0].retry()

    def answer(turn: Any) -> object:
        if turn.materia_id == "Plan":
            return {"workItems": [{"title": "a", "context": "b"}]}
        return {"satisfied": True} if turn.materia_id in {"Eval", "Maintain"} else "done"

    looped = wb.cast("l", loadout="Plan-Build-Eval", agents={"*": answer})
    looped.run()
    pinned = wb.cast("p", loadout="T-Gone", pins={"Gone": "there", "Socket-1": repaired})
    pinned.pins.remove("Socket-1")
    pinned.run()

    edited = wb.cast("e", loadout="Plan-Build-Eval", agents={"*": answer})
    edited.run(steps=1)
    edited.edit.items([{"title": "b", "context": "c"}])
    edited.edit.undo()
    edited.edit.prompt("task", "Otherwise.")
    edited.run(steps=2)
    edited.edit.output('{"satisfied": false}')
    edited.back(1, discard_edits=True)
    forked = edited.fork(1)
    edited.run()
    return [
        *asking_casts(wb),
        *budgeted_casts(wb),
        repaired,
        talked,
        worked,
        kept,
        *failed,
        looped,
        nowhere,
        pinned,
        edited,
        forked,
        *held_casts(wb),
        *stream_casts(wb),
    ]


def stream_casts(wb: Workbench) -> list[Any]:
    """Return three casts with lanes: one joins them, one has a failed lane, and one stores file snapshots."""
    scope = '{"scopeTransition": {"kind": "replace", "scope": {"id": "here", "cwd": "."}}}'
    code = f"import sys; sys.stdin.read(); sys.stdout.write({scope!r})"
    document = streams.streams_config(build=h.python(code, parallelSafe=True, parse="json"))
    wb.load(document)
    agents = streams.stream_agents(Check=lambda: '{"satisfied": true}')
    del agents["Build"]
    joined, failed = (wb.cast("l", loadout="T", agents={**agents, **more}) for more in ({}, {"Setup": lambda: 1 / 0}))
    joined.run()
    failed.run()
    kept = wb.cast("k", loadout="Ask", agents={"*": lambda: "x"}, files="not ignored")
    kept.run()
    return [joined, failed, kept]


def budgeted_casts(wb: Workbench) -> list[Any]:
    """Return a cast stopped by its budget, one with a budget warning, and one with a turn of unknown cost."""
    made = []
    for budget in ({"max_tokens": 5}, {"max_tokens": 10}, {"max_cost_usd": 1}):
        usage = {"input": 6, "output": 2}
        cast = wb.cast("s", loadout="Ask", agents={"Answer": {"Answer": {"text": "x", "usage": usage}}})
        cast.edit.budget(**budget)
        cast.run()
        made.append(cast)
    return made


def asking_casts(wb: Workbench) -> list[Any]:
    """Return a cast whose agent fails, is asked again, calls a tool and asks for approval."""

    class Uses:
        name = "uses"
        failed = False

        def answer(self, turn: Any) -> Any:
            turn.report(NoteEvent("I try"))
            if not self.failed:
                self.failed = True
                turn.report(UsageEvent(Usage(1, 1)))
                raise AgentError("gone", kind="transport")
            turn.report(CallEvent(ToolCall(id="1", tool="read", result="text")))
            return "done" if turn.calls else NeedsApproval((ToolCall(id="2", tool="bash"),))

    cast = wb.cast("u", loadout="Ask", agents={"*": Uses()})
    cast.run()
    cast.retry(turn=True)
    cast.approvals.approve(always=True)
    by_hand, skipped = (wb.cast("u", loadout="Ask", agents={"*": Uses()}) for _ in range(2))
    assert [one.run() for one in (by_hand, skipped)] == ["failed", "failed"]
    by_hand.reply("mine")
    skipped.skip("not today")
    return [cast, by_hand, skipped]


def held_casts(wb: Workbench) -> list[Any]:
    """Return casts whose agents pause, continue, ask for approval, and request another step first."""

    def report(status: str, **more: Any) -> str:
        return p.block(p.contract(agent_status__plan_status=status, **more))

    def wish(status: str, recommendation: str, **more: str) -> str:
        return json.dumps(p.envelope(status=status, routing={"recommendation": recommendation, "reason": "so", **more}))

    for protocol in ("agent-contract", "envelope"):
        wb.loadouts.define(
            f"H-{protocol}",
            {
                "entry": "Socket-1",
                "handoff": protocol,
                "sockets": {"Socket-1": {"materia": "H", "parse": "json"}, "Socket-2": {"materia": "Gone"}},
                "materia": {"H": {"tools": "none", "prompt": "help"}},
            },
        )
    ask = {"exact_content": "ls", "rollback": "none", "verification": "look", "approval_id": "P-" + "0" * 32}
    contracts = [
        report("APPROVAL_REQUEST", approval_request=ask),
        report("IN_PROGRESS"),
        p.block({**p.contract(), "memory_suggestions": ["The build needs an hour."]}),
    ]
    approved = wb.cast("a", loadout="H-agent-contract", agents={"*": {"H": contracts}})
    approved.run()
    approved.approvals.approve()
    approved.edit.remember(1)
    envelopes = [
        wish("BLOCKED", "ESCALATE"),
        wish("UNVERIFIED", "DETOUR", next_step_suggestion="Socket-2"),
        wish("VERIFIED", "ESCALATE"),
    ]
    answered = wb.cast("b", loadout="H-envelope", agents={"*": {"H": envelopes}})
    answered.run()
    answered.approvals.answer("here")
    asked = wb.cast("c", loadout="H-envelope", agents={"*": {"H": envelopes[2:]}})
    asked.run()
    asked.approvals.decide(satisfied=True)
    return [approved, answered, asked]


def test_documented_events_and_files_match_real_casts(project):
    """The page must list exactly the events, fields and files that casts write (R29)."""
    wb = Workbench(project)
    documented, seen = events_of_the_page(), set()
    page = text_of(RUN_PAGE)
    for cast in varied_casts(wb):
        for line in (cast.run_dir / "events.jsonl").read_text().splitlines():
            event = json.loads(line)
            seen.add(event["type"])
            assert event["type"] in documented
            assert event["data"].keys() - {"lane"} <= documented[event["type"]], event
        for path in cast.run_dir.rglob("*"):
            if path.is_file():
                name = re.sub(r"(Socket-\d+)|(WI-\d+)|(?<=[-/])\d+(?=[-.])", "*", str(path.relative_to(cast.run_dir)))
                name = re.sub(r"^[^/]+/handoffs/\w+-\w+", "<loadout>/handoffs/<socket>-<materia>", name)
                ending = name.rpartition("*")[2] or name
                assert ending.replace("*", "<n>") in page, name
    wb.close()
    assert set(documented) == seen


def test_modules_named_on_the_architecture_page_exist():
    modules = {path.name for folder in ("materia_nb", "scripts", "tests") for path in (ROOT / folder).rglob("*.py")}
    named = re.findall(r"`(?:[a-z_]+/)*([a-z_]+\.py)`", (ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    assert named
    assert sorted(set(named) - modules) == []

"""Test the views of envelopes and agent contracts: text, HTML, links and statuses."""

from __future__ import annotations

import json
import re

import pytest

import cast_helpers as h
from display_hostile import HOSTILE, assert_harmless
from materia_nb.agents.interface import NeedsApproval, Reply, ToolCall
from materia_nb.cast.views.step_views import HandoffView, step_view, visit_status_sections
from materia_nb.display.blocks import blocks_as_html, blocks_as_text
from materia_nb.display.sections import MAX_ROWS, section_blocks
from materia_nb.handoff.base import Pointer, Section
from materia_nb.handoff.contract_protocol import ContractProtocol
from materia_nb.handoff.envelope_protocol import EnvelopeProtocol
from materia_nb.store.rundir import file_within, find_evidence
from protocol_helpers import HOSTILE as VALUES
from protocol_helpers import block, cast_asking_for_approval, contract, envelope, paths_of, report, start, with_changes


def nothing(_):
    return None


def shown(cast, number=-1):
    view = HandoffView(cast.now, cast.steps.at(number))
    return repr(view), view._repr_mimebundle_()["text/html"]


# -- the envelope ----------------------------------------------------------------------


def judged(tmp_path, **changes):
    cast = start(tmp_path, "envelope", [json.dumps(envelope(**changes))] * 9)
    cast.run(steps=2)
    return cast


CONCERNS = [
    {"severity": "LOW", "description": "slow", "location": "a.py:1", "recommendation": "cache"},
    {"severity": "HIGH", "description": "wrong", "location": "b.py:7", "recommendation": "mend"},
    {"severity": "MEDIUM", "description": "odd", "location": "", "recommendation": "ask"},
]


def test_concerns_are_sorted_and_labelled_by_severity(tmp_path):
    text, html = shown(judged(tmp_path, concerns=CONCERNS))
    for where in (text, html):
        at = [where.index(word) for word in ("!!! HIGH", "!! MEDIUM", "! LOW")]
        assert at == sorted(at)
    assert re.search(r"!!! HIGH +wrong +b.py:7 +mend", text)


def test_envelope_fields_are_shown_with_readable_labels(tmp_path):
    text, html = shown(judged(tmp_path))
    for words in ("status      VERIFIED", "done        did it", "recommends  CONTINUE", "measured  n = 3"):
        assert words in text
    assert re.search(r"utf-8 +usual +garbled", text)
    assert re.search(r"flow_key +T", text)
    for words in ("utf-8", "pytest", "unparsed text", "parsed output"):
        assert words in html


def test_only_existing_files_become_links(tmp_path):
    (tmp_path / "a b.py").write_text("x")
    (tmp_path / "folder").mkdir()
    artifacts = [
        "a b.py",
        "gone.py",
        "folder",
        "/etc/hosts",
        "../../etc/hosts",
        "javascript:alert(1)",
        "//x/y",
    ]
    cast = judged(tmp_path, summary__evidence={"artifacts_produced": artifacts}, concerns=[
        {"severity": "LOW", "description": "d", "location": "a b.py:3-4", "recommendation": "r"},
    ])  # fmt: skip
    text, html = shown(cast)
    assert re.findall(r'href="([^"]*)"', html) == ["./a%20b.py"] * 2
    assert all(name in text for name in artifacts)
    assert_harmless(html)


def test_file_name_with_a_colon_is_not_treated_as_a_url(tmp_path):
    (tmp_path / "javascript:alert(1)").write_text("x")
    (tmp_path / '"><img src=x>').write_text("x")
    artifacts = ["javascript:alert(1)", '"><img src=x>']
    _, html = shown(judged(tmp_path, summary__evidence={"artifacts_produced": artifacts}))
    links = re.findall(r'href="([^"]*)"', html)
    assert links == ["./javascript%3Aalert%281%29", "./%22%3E%3Cimg%20src%3Dx%3E"]
    assert_harmless(html)


def test_links_stay_inside_the_project(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret").write_text("x")
    (project / "out").symlink_to(tmp_path / "secret")
    (project / "loop").symlink_to(project / "loop")
    run_dir = project / "run"
    run_dir.mkdir()
    (run_dir / "kept.md").write_text("x")
    assert file_within("kept.md", project, run_dir) == "run/kept.md"
    assert file_within(str(run_dir / "kept.md"), project, run_dir) == "run/kept.md"
    for text in ("out", "../secret", "loop", "", " ", ".", "x\0y", "n" * 5000, "\ud800", "run"):
        assert file_within(text, project, run_dir) is None
    assert find_evidence("run", (project,)) == run_dir.resolve()
    assert find_evidence("../secret", (project,)) is None
    assert find_evidence("out", (project,)) is None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x.md").write_text("x")
    assert find_evidence("x.md", (project, elsewhere)) is not None
    assert file_within("x.md", project, elsewhere) is None, "no link from the project reaches it"


def test_refused_envelope_shows_issues_and_warnings_separately(tmp_path):
    cast = start(
        tmp_path,
        "envelope",
        ['{"status": "DONE"}', json.dumps(envelope(status="VERIFIED", concerns=CONCERNS))],
    )
    cast.run(steps=2)
    text, html = shown(cast)
    assert re.search(r"where +issue +what to do", text)
    assert ">issue<" in html
    assert re.search("warning\n.*\n.*The status is VERIFIED, but a concern has severity HIGH.", text)
    assert ">warning<" in html
    assert "not done yet" not in text


def statuses_of(cast):
    lines = [line for section in visit_status_sections(cast.now, cast.steps[-1]) for line in section.lines]
    return [status for line in lines for status in line.partition(" (")[0].split(" → ")]


# -- the contract ----------------------------------------------------------------------


def test_contract_is_shown_with_its_status_path(tmp_path):
    (tmp_path / "seen.py").write_text("x")
    cast, _ = cast_asking_for_approval(
        tmp_path,
        report("IN_PROGRESS", agent_status__pending_steps=["look", {"then": 1}]),
        report("COMPLETE", evidence_report__files_checked=["seen.py", "gone.py"], loop_state={"iteration": 2}),
    )
    text, html = shown(cast)
    assert "operation      delete" in text
    assert re.search("rollback +make build", text)
    cast.approvals.approve()
    assert statuses_of(cast) == ["APPROVAL_REQUEST", "IN_PROGRESS", "COMPLETE"]
    text, html = shown(cast)
    assert "key_outputs" in text.partition("turn 2")[2]
    assert "key_outputs" not in text.partition("turn 2")[0], "of an earlier turn only the beginning is told"
    assert html.count(">key_outputs<") >= 3
    assert "APPROVAL_REQUEST → IN_PROGRESS → COMPLETE (may be followed by IN_PROGRESS)" in text
    assert re.search(r'status +IN_PROGRESS\n +pending +look\n +pending +\{"then":1\}', text)
    assert re.search(r"verification\n +result +pass", text)
    assert "empty: patterns_checked" in text
    assert re.findall(r'href="([^"]*)"', html) == ["./seen.py"]
    assert_harmless(html)


def test_unfinished_work_is_not_shown_as_refused(tmp_path):
    undone = {"iteration": 1, "max_iterations": 3, "metric": 0.5, "threshold": 1}
    cast = start(tmp_path, "agent-contract", [report("COMPLETE", loop_state=undone)])
    cast.run(steps=2)
    assert cast.now.next_socket == "Work"
    text, html = shown(cast)
    assert "not done yet" in text
    assert ">not done yet<" in html
    assert ">issue<" not in html
    assert statuses_of(cast) == [], "it is not recorded as a status"
    assert "refused" not in "\n".join(cast.why().lines)


def test_status_of_a_refused_contract_is_not_part_of_the_status_path(tmp_path):
    cast = start(
        tmp_path,
        "agent-contract",
        [report("NEEDS_INPUT"), report("COMPLETE"), report("IN_PROGRESS"), report("COMPLETE")],
    )
    cast.run()
    cast.approvals.answer("yes")
    assert statuses_of(cast) == ["NEEDS_INPUT", "IN_PROGRESS", "COMPLETE"]
    cast = start(tmp_path / "stall", "agent-contract", [report("IN_PROGRESS")] * 3)
    cast.run()
    assert len(cast.steps[-1].turns) == 3
    assert statuses_of(cast) == ["IN_PROGRESS", "IN_PROGRESS"], "the third was one too many"


def test_context_update_without_write_access_is_shown_as_a_warning(tmp_path):
    update = {"update_contracts": [{"contract": "secrets", "payload": {"a": 1}}]}
    cast = start(tmp_path, "agent-contract", [block({**contract(), **update})])
    cast.run(steps=2)
    text, html = shown(cast)
    assert re.search("(?s)warning\n.*secrets", text)
    assert html.count(">warning<") == 1


# -- hostile text ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "make, start_from", [(EnvelopeProtocol().layout, envelope()), (ContractProtocol().layout, contract())]
)
def test_field_values_of_any_type_are_escaped(make, start_from):
    for path in paths_of(start_from):
        for value in [*VALUES, *HOSTILE[:12]]:
            made = with_changes(start_from, {path: value})
            sections = make(made, nothing)
            assert_harmless(blocks_as_html(section_blocks(sections)))
            assert "\x1b" not in blocks_as_text(section_blocks(sections))


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if text.strip() and len(text) < 1000])
def test_hostile_text_in_every_field_is_escaped(tmp_path, hostile):
    try:
        json.dumps(hostile).encode()
        hostile.encode()
    except UnicodeEncodeError:
        hostile = hostile.encode("utf-8", "replace").decode()
    concern = dict.fromkeys(("description", "location", "recommendation"), hostile) | {"severity": "HIGH"}
    cast = judged(
        tmp_path,
        concerns=[concern],
        assumptions=[dict.fromkeys(("assumption", "why", "impact_if_wrong"), hostile)],
        summary={
            "what_i_did": f"x {hostile}",
            "key_decisions": [hostile],
            "evidence": {
                "artifacts_produced": [hostile],
                "commands_run": ["c", hostile],
                "measurements": {"n": hostile},
            },
        },
        routing__reason=f"x {hostile}",
    )
    text, html = shown(cast)
    assert_harmless(html)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)


def test_long_sections_are_truncated_with_a_note():
    rows = tuple((Pointer(str(number)), "x") for number in range(MAX_ROWS + 5))
    section = Section("many", ("n", "x"), rows)
    assert "… 5 more" in blocks_as_text(section_blocks([section]))
    assert "… 5 more" in blocks_as_html(section_blocks([section]))
    assert str(MAX_ROWS) not in blocks_as_html(section_blocks([section]))


# -- a step ----------------------------------------------------------------------------


def test_approval_request_shows_operation_and_prompt(tmp_path):
    call = ToolCall(id="1", tool="bash", args={"command": "make it"})

    class Asks:
        name = "asks"

        def answer(self, turn):
            return Reply("made") if turn.calls else NeedsApproval((call,))

    cast = h.start(tmp_path, h.one_config(), Asks())
    cast.step()
    shown = repr(step_view(cast.now))
    assert "bash make it (asks for approval)" in shown
    assert "command: make it" in shown
    assert "Do the widget" in shown
    assert "approved: " not in shown
    cast.approvals.approve()
    cast.step()
    done = repr(step_view(cast.now, ["bash make it", "and on"]))
    assert "approved: bash make it" in done
    assert "approved: and on" not in done
    assert "made" in done
    assert "make it" not in done.replace("bash make it", "")
    cast.close()

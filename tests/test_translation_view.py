"""A handoff in other formats, as a verb and in the panel."""

from __future__ import annotations

import json
import re

import pytest

from materia_nb.errors import MateriaError
from materia_nb.handoff import protocol
from materia_nb.translation_view import TranslationView, other_formats_html
from materia_nb.widgets.handoff import HandoffPanel
from protocol_helpers import FREE, envelope
from test_handoff_view import harmless
from test_holds import report, start

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def judged(tmp_path):
    cast = start(tmp_path, "envelope", [json.dumps(envelope(summary__what_i_did=HOSTILE))])
    cast.run(steps=2)
    return cast


def test_the_object_in_another_protocol_with_what_is_lost(judged):
    view = TranslationView(judged, judged.steps[-1], "agent-contract")
    block = f"```agent_contract_handoff\n{json.dumps(view.value)}\n```"
    assert protocol("agent-contract").read(block, FREE).value["agent_status"]
    assert view.title == "Step 2, Check: envelope as agent-contract"
    assert view.lost, "an envelope says more than a contract can hold"
    for path, text in view.lost:
        assert f"lost: {path}: {text}" in repr(view)
    assert '"agent_status"' in repr(view)
    harmless(view._repr_mimebundle_()["text/html"])


def test_its_own_protocol_loses_nothing(judged):
    view = TranslationView(judged, judged.steps[-1], "envelope")
    assert (view.value, view.lost) == (judged.steps[-1].reading.value, [])
    assert "nothing is lost" in repr(view)


def test_what_cannot_be_translated_says_so(judged):
    with pytest.raises(MateriaError, match="'envelop'") as error:
        TranslationView(judged, judged.steps[-1], "envelop")
    assert "envelope" in error.value.hint
    with pytest.raises(MateriaError, match="Only an object"):
        TranslationView(judged, judged.steps[0], "sparse")
    judged.enter()
    assert judged.steps[-1].reading is None
    with pytest.raises(MateriaError, match="no output"):
        TranslationView(judged, judged.steps[-1], "sparse")


def test_the_panel_has_all_formats_in_a_fold(judged):
    panel = HandoffPanel(judged)
    try:
        shown = panel._others.value
        assert re.findall(r"<summary><bdi[^>]*>([a-z -]+)", shown)[:1] == ["in other formats"]
        for name in ("sparse", "envelope", "agent-contract"):
            assert f">{name}" in shown
        assert re.search(r">agent-contract \(\d+ lost\)<", shown)
        harmless(shown)
        panel.select(1)
        assert panel._others.value == "", "text has no other format"
    finally:
        panel.close()


def test_a_contract_in_all_formats(tmp_path):
    cast = start(tmp_path, "agent-contract", [report("COMPLETE")])
    cast.run(steps=2)
    harmless(other_formats_html(cast, cast.steps[-1]))
    assert other_formats_html(cast, None) == ""

"""A handoff in other formats, as a verb and in the panel."""

from __future__ import annotations

import json
import re

import pytest

from display_hostile import harmless
from materia_nb.cast.views.step_views import TranslationView, handoff_blocks
from materia_nb.display.blocks import Fold, Heading
from materia_nb.errors import MateriaError
from materia_nb.handoff import protocol
from materia_nb.loadout.vocabulary import OWN_PROTOCOLS
from protocol_helpers import FREE, envelope, report, start

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def judged(tmp_path):
    cast = start(tmp_path, "envelope", [json.dumps(envelope(summary__what_i_did=HOSTILE))])
    cast.run(steps=2)
    return cast


def test_the_object_in_another_protocol_with_what_is_lost(judged):
    view = TranslationView(judged.now, judged.steps[-1], "agent-contract")
    block = f"```agent_contract_handoff\n{json.dumps(view.value)}\n```"
    assert protocol("agent-contract").read(block, FREE).value["agent_status"]
    assert view.title == "Step 2, Check: envelope as agent-contract"
    assert view.lost, "an envelope says more than a contract can hold"
    assert all(path in repr(view) for path, _ in view.lost)
    assert '"agent_status"' in repr(view)
    harmless(view._repr_mimebundle_()["text/html"])


def test_its_own_protocol_loses_nothing(judged):
    view = TranslationView(judged.now, judged.steps[-1], "envelope")
    assert (view.value, view.lost) == (judged.steps[-1].reading.value, [])
    assert "nothing is lost" in repr(view)


def test_what_cannot_be_translated_says_so(judged):
    with pytest.raises(MateriaError, match="'envelop'") as error:
        TranslationView(judged.now, judged.steps[-1], "envelop")
    assert "envelope" in error.value.hint
    with pytest.raises(MateriaError, match="Only an object"):
        TranslationView(judged.now, judged.steps[0], "sparse")
    judged.enter()
    assert judged.steps[-1].reading is None
    with pytest.raises(MateriaError, match="no output"):
        TranslationView(judged.now, judged.steps[-1], "sparse")


def other_formats(cast, step):
    """The titles in the fold that has a handoff in every protocol; empty where there is none."""
    folds = [one for one in handoff_blocks(cast, step) if getattr(one, "title", "") == "in other formats"]
    return [one.title if isinstance(one, Fold) else one.text for fold in folds for one in fold.inside]


def test_the_inspector_has_all_formats_in_a_fold(judged):
    found = other_formats(judged.now, judged.steps[-1])
    assert [one.split(" ")[0] for one in found] == list(OWN_PROTOCOLS)
    assert re.fullmatch(r"agent-contract \(\d+ lost\)", found[list(OWN_PROTOCOLS).index("agent-contract")])
    assert other_formats(judged.now, judged.steps[0]) == [], "text has no other format"


def test_a_contract_in_all_formats(tmp_path):
    cast = start(tmp_path, "agent-contract", [report("COMPLETE")])
    cast.run(steps=2)
    assert len(other_formats(cast.now, cast.steps[-1])) == len(OWN_PROTOCOLS)
    titles = [one.text for one in handoff_blocks(cast.now, cast.steps[-1]) if isinstance(one, Heading)]
    assert "status" in " ".join(titles).lower(), "it is laid out as its protocol means it"

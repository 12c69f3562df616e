"""Test the bug clinic, in which a diagnosis and a fix are judged by the behaviour of the loadout."""

from __future__ import annotations

import copy

import pytest

from materia_nb.cast.gallery import gallery
from materia_nb.errors import MateriaError
from materia_nb.lessons import clinic

MISTAKES = gallery().of("mistake")
each = pytest.mark.parametrize("card", MISTAKES, ids=lambda card: card.name)


def body(document, card):
    return {**document["loadouts"][card.loadout], "materia": document["materia"]}


@each
def test_clinic_accepts_the_stored_diagnosis_and_fix(card):
    patient = clinic(card.name)
    right = {"socket": card.diagnosis.socket, "step": card.diagnosis.step}
    verdict = str(patient.diagnose(**{name: value for name, value in right.items() if value is not None}))
    assert card.diagnosis.code in verdict
    assert card.diagnosis.code not in str(patient._repr_mimebundle_())
    assert "Fixed" in str(patient.fix(body(card.fixed, card)))
    with pytest.raises(MateriaError, match="not fixed yet") as raised:
        patient.fix(body(card.document, card))
    assert len(raised.value.what.splitlines()) > 1, "and why"


def test_wrong_diagnosis_does_not_reveal_the_answer():
    with pytest.raises(MateriaError) as raised:
        clinic("raw-bread").diagnose(socket="Socket-2", step=4)
    assert "late-retry" not in str(raised.value)
    with pytest.raises(MateriaError, match="not answered yet"):
        clinic("raw-bread").diagnose(socket="Socket-3")
    with pytest.raises(MateriaError, match="visit is not part of the diagnosis"):
        clinic("raw-bread").diagnose(visit=3)
    with pytest.raises(MateriaError, match="does not contain a mistake"):
        clinic("critic-loop")


def test_alternative_complete_fix_passes_and_partial_fix_does_not():
    card = gallery()["raw-bread"]
    own = copy.deepcopy(body(card.document, card))
    own["loops"]["items"] = own["loops"].pop("orders")
    own["loops"]["items"]["exits"][0]["condition"] = "satisfied"
    assert "Fixed" in str(clinic("raw-bread").fix(own))
    own["sockets"]["Socket-3"]["edges"].pop()
    with pytest.raises(MateriaError, match=r"no-edge-matched|should be"):
        clinic("raw-bread").fix(own)
    with pytest.raises(MateriaError, match="unknown-endpoint"):
        clinic("raw-bread").fix("entry: Socket-9\nsockets: {Socket-1: {materia: Order}}")

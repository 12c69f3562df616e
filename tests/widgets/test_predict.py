"""Test the heading of the prediction panel, and that closing it releases its resources."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import ipywidgets as ui

from materia_nb.widgets.base import widgets_in
from materia_nb.widgets.predict import PredictPanel


def shown(panel):
    return "".join(one.value for one in widgets_in(panel.view) if isinstance(one, ui.HTML))


def test_question_shows_the_state_of_the_cast(cast):
    with closing(PredictPanel(cast)) as panel:
        assert " · ".join(panel.question.state_lines) in shown(panel)
        assert panel.sure in list(widgets_in(panel.view))
        assert panel.next.layout.display == "none"
        assert list(panel.buttons) == list(panel.question.targets)
        assert "long dashes" in shown(panel)
        text, picture = panel.fallback()
        assert text.splitlines()[-1] == " | ".join(panel.buttons)
        assert picture == panel.picture.svg
    cast.run()
    with closing(PredictPanel(cast)) as panel:
        assert panel.question is None
        assert "no further step can be predicted" in shown(panel)
        assert panel.sure not in list(widgets_in(panel.view))
        assert not panel.buttons
        assert "no further step can be predicted" in panel.fallback()[0]


def test_closed_panel_removes_its_fork(cast):
    panel = PredictPanel(cast)
    folder = Path(panel.question.fork.run_dir)
    assert folder.is_dir()
    panel.close()
    assert not folder.exists()

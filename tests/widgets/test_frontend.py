"""Test that the front-end bundle is up to date and self-contained, and that each notebook contains it once."""

from __future__ import annotations

import re
from base64 import b64decode
from gzip import decompress
from pathlib import Path

import pytest

import cast_helpers as h
import make_front
from materia_nb.widgets import frontend
from materia_nb.widgets.cast_panel import CastPanel
from materia_nb.widgets.design_panel import DesignFront
from materia_nb.widgets.explorer import CastsFront
from materia_nb.widgets.predict import PredictPicture

SOURCES = sorted(make_front.SOURCES.glob("*.js"))


def test_bundle_matches_its_sources():
    assert not make_front.is_stale(), "the front end has changed: `make front` bundles it anew (needs npm)"


def test_changed_source_makes_the_bundle_stale(tmp_path):
    for name, text in (("a.js", "1"), ("b.css", "2")):
        (tmp_path / name).write_text(text)
    before = make_front.digest(tmp_path)
    (tmp_path / "a.js").write_text("3")
    after = make_front.digest(tmp_path)
    (tmp_path / "a.js").rename(tmp_path / "c.js")
    assert len({before, after, make_front.digest(tmp_path)}) == 3


def test_front_end_bundle_loads_no_external_resources():
    for text in (frontend.bundle(), frontend.FrontendWidget._esm):
        assert not re.search(r"(?m:^|[;}])import\b|\brequire\(", text)
        assert not re.search(r"https?://(?!www\.w3\.org/)", text)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_front_end_never_turns_text_into_markup(path: Path):
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", path.read_text("utf-8"))


def test_all_widgets_share_a_single_copy_of_the_bundle(tmp_path):
    panel = CastPanel(h.start(tmp_path, h.one_config()))
    fronts = [panel.front, panel.graph.front, DesignFront(), CastsFront(), PredictPicture([], print)]
    code = frontend._code_widget
    [reference] = {front.code for front in fronts}
    assert reference == frontend.reference(code)
    assert decompress(b64decode(code.packed)).decode() == frontend.bundle()
    views = re.search(r"export const widgets = (\{.*\});", (make_front.SOURCES / "index.js").read_text("utf-8"))[1]
    assert {front.view for front in fronts} == set(re.findall(r"(\w+)(?:: \{ render: \w+ \})?[, ]", views))
    assert all(len(front._esm) < 1000 for front in fronts)
    panel.close()
    assert code.comm is not None, "other panels still need it"
    code.close()
    assert DesignFront().code != reference

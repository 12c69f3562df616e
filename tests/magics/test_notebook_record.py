"""Test that the output stored in a notebook is readable without a kernel, widgets or trust."""

from __future__ import annotations

import base64
import io
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from call_counts import calls_of
from file_kernels import AsyncFileKernelManager
from materia_nb.display import blocks
from materia_nb.display.blocks import picture_bundle, png_of
from materia_nb.magics.cast_display import record_picture, record_text

CELLS = {
    "load": "%load_ext materia_nb",
    "cast": "%materia cast --loadout Hello-Utility say (hi",
    "shown": "wb.current",
    "step": "%materia step",
    "end": "%materia run",
    "silent": "1 + 1",
    "not ended": "%materia cast --loadout Hello-Utility again",
    "patch": "from materia_nb.magics import cast_display; cast_display.SHOW_AFTER_S = 0",
    "third": "%materia cast --loadout Hello-Utility for long",
    "run": "print('before')\n%materia run",
}


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Return the cells of a notebook by name, as executed by nbconvert."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS.values()])
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("project"))}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MATERIA_PROFILE_DIR", str(tmp_path_factory.mktemp("profile")))
        NotebookClient(book, timeout=60, resources=place, kernel_manager_class=AsyncFileKernelManager).execute()
    return dict(zip(CELLS, book.cells, strict=True))


def texts(cell):
    return [output["data"]["text/plain"] for output in cell.outputs if "data" in output]


def test_later_run_updates_the_stored_output_of_a_cast(executed):
    panel, record, picture = texts(executed["cast"])
    assert "The record of the cast is below" in panel
    assert picture.startswith("<picture of cast 20")
    assert "Hello-Utility: complete after 1 step" in record
    assert "data-record" in executed["cast"].outputs[2]["data"]["image/svg+xml"]
    assert "%materia open 20" in record


def test_stored_output_of_an_unfinished_cast_explains_how_to_continue(executed):
    record = texts(executed["not ended"])[1]
    assert "ready after 0 steps" in record
    assert "%materia resume 20" in record


def test_run_without_a_live_page_stores_no_progress_bar(executed):
    assert [output["output_type"] for output in executed["run"].outputs] == ["stream", "execute_result"]


def test_cast_displayed_twice_has_equal_stored_outputs(executed):
    assert texts(executed["cast"])[1] == texts(executed["shown"])[1]
    assert "after 1 step" in texts(executed["cast"])[1]


def test_stored_output_of_a_long_cast_shows_its_latest_steps(cast, monkeypatch):
    monkeypatch.setattr("materia_nb.magics.cast_display.MAX_STEPS", 2)
    cast.run(steps=5)
    shown = record_text(cast)["text/plain"]
    assert "... 3 earlier steps" in shown
    assert "Socket-1" not in shown


def test_picture_has_a_png_if_the_renderer_is_installed(cast, monkeypatch):
    pytest.importorskip("resvg_py")
    shown = picture_bundle("", record_picture(cast))
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert png_of("no picture") is None


def test_png_uses_a_palette_if_pillow_is_installed(cast, monkeypatch):
    pytest.importorskip("resvg_py")
    image, chops = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageChops")
    svg = record_picture(cast)
    small = png_of(svg)
    monkeypatch.setitem(sys.modules, "PIL", None)
    large = png_of(f"{svg} ")
    found, drawn = (image.open(io.BytesIO(png)) for png in (small, large))
    assert (found.mode, found.size) == ("P", drawn.size)
    assert len(small) < len(large) / 2
    difference = chops.difference(found.convert("RGB"), drawn.convert("RGB"))
    assert max(most for _, most in difference.getextrema()) < 64


def test_unchanged_picture_is_not_rendered_again(cast):
    pytest.importorskip("resvg_py")
    blocks._cached_png.cache_clear()
    svg = record_picture(cast)
    assert png_of(svg) == png_of(svg)
    assert blocks._cached_png.cache_info().misses == 1


def test_displaying_a_cast_stays_within_call_limits(wb):
    cast = wb.cast("a small tool", loadout="Plan-Build-Eval")
    assert 0 < calls_of(cast._repr_mimebundle_) <= 4000
    assert 0 < calls_of(cast._repr_mimebundle_) <= 1500, "the graph is laid out once"


def test_without_the_renderer_the_picture_is_svg_and_text(cast, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    assert set(picture_bundle("", record_picture(cast))) == {"image/svg+xml", "text/plain"}

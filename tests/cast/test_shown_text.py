"""Test that a socket that assigns from `$.text` displays prose (R62), while its stored output stays raw JSON."""

from __future__ import annotations

import json

import pytest

import cast_helpers as h
from materia_nb.cast.formatting import summarize_output
from materia_nb.cast.views.step_views import cast_page_html, step_view

PROSE = "It is **done**.\nTwo files were changed."
ANSWER = json.dumps({"text": PROSE, "satisfied": True})


def cast_of(tmp_path, **assign):
    document = h.config(
        {
            "Socket-1": h.at("Tell", ("satisfied", "Socket-2"), parse="json", assign=assign),
            "Socket-2": h.at("End"),
        },
        {"Tell": h.agent(), "End": h.agent("End")},
    )
    cast = h.start(tmp_path, document, {"Tell": lambda: ANSWER, "End": lambda: "e"})
    cast.step()
    return cast


def test_r62_assigned_text_is_shown_and_json_is_stored(tmp_path):
    cast = cast_of(tmp_path, report="$.text")
    step = cast.steps[0]
    assert (step.shown, step.output) == (PROSE, ANSWER)
    assert cast.state["report"] == PROSE
    assert "output\n    It is **done**." in repr(step_view(cast.now))
    assert cast_page_html(cast.now).count("Two files were changed.") >= 1
    assert summarize_output(step) == "It is **done**.\nTwo files were changed."
    cast.close()
    assert (cast.run_dir / step.artifact).read_text() == ANSWER


@pytest.mark.parametrize("assign", [{"whole": "$"}, {"all": "$", "said": "$.satisfied"}])
def test_r62_json_is_shown_without_an_assignment(tmp_path, assign):
    cast = h.start(
        tmp_path,
        h.one_config(h.python(f"print({ANSWER!r})", parse="json", assign=assign)),
    )
    cast.run()
    assert cast.steps[0].shown == cast.steps[0].output

"""The harness itself: that a notebook runs in a real JupyterLab and that we see what a person sees."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

import oldest_kernel
from browser.kernels import NEWEST, both_kernels
from browser.lab import DARK, LIGHT, Lab

SVG = """from IPython.display import SVG, display
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40"'
            ' fill="#3b6ea8"/><text x="10" y="25">socket</text></svg>'))"""


def test_runs_a_notebook_and_sees_its_outputs_in_both_themes(lab: Lab):
    lab.open(
        lab.notebook("md:# Title", SVG, "print('said'); 6 * 7", "raise ValueError('no such socket')", "1")
    )
    lab.run_all()

    [picture] = lab.outputs(1)
    assert "image/svg+xml" in picture.data
    # JupyterLab shows an SVG as an image, so what counts is that it could be decoded.
    shown = lab.cell(1).locator(".jp-RenderedSVG img")
    assert shown.evaluate("async (img) => { await img.decode(); return img.naturalWidth; }") == 120
    stream, value = lab.outputs(2)
    assert (stream.kind, stream.text, value.kind, value.text) == ("stream", "said\n", "execute_result", "42")
    assert lab.cell_text(2).split() == ["said", "42"]
    [error] = lab.outputs(3)
    assert error.kind == "error"
    assert error.error == "ValueError: no such socket"
    assert "ValueError: no such socket" in lab.cell_text(3)
    assert lab.outputs(4) == [], "a run ends at the first error"

    pictures = [lab.seen(dark=dark) for dark in (False, True)]
    assert [png[:4] for png in pictures] == [b"\x89PNG"] * 2
    assert pictures[0] != pictures[1]


@both_kernels
def test_kernel_is_the_one_that_was_asked_for(lab: Lab, kernel: str):
    lab.open(lab.notebook("import sys, ipykernel; print(sys.prefix, ipykernel.__version__)"))
    lab.run_cell(0)
    prefix, version = lab.outputs(0)[0].text.split()
    home, release = (
        (sys.prefix, metadata.version("ipykernel"))
        if kernel == NEWEST
        else (oldest_kernel.HOME, oldest_kernel.oldest())
    )
    assert Path(prefix).resolve() == Path(home).resolve()
    assert Version(version) == Version(release)


def test_offers_completions(lab: Lab):
    lab.open(lab.notebook("socket_first = socket_second = 1", ""))
    lab.run_cell(0)
    assert lab.complete(1, "socket_") == ["socket_first", "socket_second"]
    assert lab.complete(1, "socket_f") == ["socket_first"]


def test_interrupts_a_running_cell(lab: Lab):
    lab.open(lab.notebook("import threading; print('waiting'); threading.Event().wait()"))
    lab.start_cell(0)
    lab.cell(0).get_by_text("waiting", exact=True).first.wait_for()
    lab.interrupt()
    lab.wait_idle()
    assert lab.outputs(0)[-1].error == "KeyboardInterrupt: "


@pytest.mark.parametrize("theme", [DARK, LIGHT])
def test_background_follows_the_theme(lab: Lab, theme: str):
    lab.open(lab.notebook("1"))
    lab.set_theme(theme)
    shade = lab.page.evaluate("() => getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')")
    assert {"white": LIGHT, "#fff": LIGHT, "#111": DARK, "#111111": DARK}.get(shade.strip(), shade) == theme

"""Test the browser test harness, which runs a notebook in JupyterLab and reads what is visible to a user."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

from packaging.version import Version

import oldest_kernel
from browser.kernels import NEWEST, both_kernels
from browser.lab import Lab

SVG = """from IPython.display import SVG, display
display(SVG('<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40"'
            ' fill="#3b6ea8"/><text x="10" y="25">socket</text></svg>'))"""


def test_harness_runs_a_notebook_and_reads_its_outputs_in_both_themes(lab: Lab):
    lab.open(lab.notebook("md:# Title", SVG, "print('said'); 6 * 7", "raise ValueError('no such socket')", "1"))
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

    pictures = []
    for dark, shades in ((False, {"white", "#fff"}), (True, {"#111", "#111111"})):
        pictures.append(lab.seen(dark=dark))
        shade = lab.page.evaluate("() => getComputedStyle(document.body).getPropertyValue('--jp-layout-color0')")
        assert shade.strip() in shades
    assert [png[:4] for png in pictures] == [b"\x89PNG"] * 2
    assert pictures[0] != pictures[1]


@both_kernels
def test_notebook_runs_in_the_requested_kernel(lab: Lab, kernel: str):
    lab.open(lab.notebook("import sys, ipykernel; print(sys.prefix, ipykernel.__version__)"))
    lab.run_cell(0)
    prefix, version = lab.outputs(0)[0].text.split()
    home, release = (
        (sys.prefix, metadata.version("ipykernel"))
        if kernel == NEWEST
        else (oldest_kernel.HOME, oldest_kernel.oldest_version())
    )
    assert Path(prefix).resolve() == Path(home).resolve()
    assert Version(version) == Version(release)


def test_completions_are_offered_and_a_running_cell_can_be_interrupted(lab: Lab):
    waiting = "import threading; print('waiting'); threading.Event().wait()"
    lab.open(lab.notebook("socket_first = socket_second = 1", "", waiting))
    lab.run_cell(0)
    assert lab.complete(1, "socket_") == ["socket_first", "socket_second"]
    assert lab.complete(1, "socket_f") == ["socket_first"]
    lab.start_cell(2)
    lab.cell(2).get_by_text("waiting", exact=True).first.wait_for()
    lab.interrupt()
    lab.wait_idle()
    assert lab.outputs(2)[-1].error == "KeyboardInterrupt: "

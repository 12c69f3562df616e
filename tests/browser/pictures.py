"""Take the screenshots of panels for the documentation (``make pictures``); not part of the test suite.

Each screenshot shows only a panel, in the light and the dark theme, in a window of 1280 x 800. The screenshots in
``WIDE`` are also taken in a window of 1600 x 1000. They are stored with a colour palette, which halves their size.
Paths in a panel are replaced by neutral paths, so that no screenshot shows a path, port or name of this machine.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from browser.lab import DARK, LIGHT
from browser.picture import Picture
from browser.surface import Surface
from materia_nb.magics import verbs as _verbs  # noqa: F401 - importing it registers the verbs
from stream_helpers import stream_agents, streams_config

if TYPE_CHECKING:
    from browser.lab import Lab

PROJECT: Final = Path(__file__).resolve().parents[2]
PICTURES: Final = PROJECT / "docs" / "pictures"
WINDOWS: Final = {PICTURES: (1280, 800), PICTURES / "wide": (1600, 1000)}
"""Window sizes in pixels, by the folder that stores their screenshots."""
WIDE: Final = frozenset(
    {
        "fresh",
        "cast",
        "designer",
        "failed-step",
        "items",
        "compare",
        "lanes",
        "casts",
        "told",
        "done",
        "sockets-40",
    }
)
MOST_BYTES: Final = 80_000

PALETTE_SCRIPT: Final = """async (png) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d');
    canvas.drawImage(bitmap, 0, 0);
    const pixels = new Uint32Array(canvas.getImageData(0, 0, bitmap.width, bitmap.height).data.buffer);
    const counts = new Map();
    for (const one of pixels) counts.set(one, (counts.get(one) ?? 0) + 1);
    const colours = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
    // After the commonest colours, the commonest of each group of similar colours: a check has a rare colour.
    const similar = new Map(colours.toReversed().map((colour) => [colour & 0xf0f0f0, colour]));
    const palette = [...new Set([...colours.slice(0, 64), ...[...similar.values()].toReversed(), ...colours])].slice(0, 255);
    const places = new Map(palette.map((one, place) => [one, place]));
    const apart = (a, b) => [0, 8, 16].reduce((sum, bit) => sum + ((a >> bit & 255) - (b >> bit & 255)) ** 2, 0);
    const nearest = (one) => palette.reduce((best, other, place) => apart(one, other) < apart(one, palette[best]) ? place : best, 0);
    for (const one of counts.keys()) if (!places.has(one)) places.set(one, nearest(one));
    let text = '';
    for (const one of pixels) text += String.fromCharCode(places.get(one));
    return { width: bitmap.width, height: bitmap.height, palette, indices: btoa(text) };
}"""

PARTS: Final = {
    ".mnb-bar [data-act=step]": (0.5, 1),
    ".mnb-bar .mnb-pill": (0.5, 1),
    ".mnb-bar .mnb-counts": (-0.07, 0.5),
    ".mnb-canvas": (0.15, 0.2),
    ".mnb-inspector": (0.5, 0.75),
    ".mnb-dock": (0.5, 0.85),
}
"""The numbered parts of the annotated screenshot in order, with the position of each number as horizontal and vertical
fractions of the part.
"""
NO_NUMBERS: Final[Mapping[str, object]] = {}
NUMBER: Final = """(panel, parts) => {
    panel.querySelectorAll(".mark-of-a-part").forEach((mark) => mark.remove());
    const room = panel.getBoundingClientRect();
    parts.forEach(([selector, [right, down]], index) => {
        const part = panel.querySelector(selector).getBoundingClientRect(), mark = document.createElement("b");
        mark.textContent = String(index + 1);
        mark.className = "mark-of-a-part";
        mark.style.cssText = `position:absolute; z-index:99; left:${part.x - room.x + part.width * right - 11}px;
            top:${part.y - room.y + part.height * down - 11}px; width:22px; height:22px; border-radius:11px;
            background:#b3261e; color:#fff; font:bold 13px/22px sans-serif; text-align:center`;
        panel.append(mark);
    });
}"""

SHORTEN: Final = """(panel, folder) => {
    const texts = document.createTreeWalker(panel, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, '~/guide');
}"""

AGENTS = """
%load_ext materia_nb
%materia use Plan-Build-Eval

@wb.agent("Plan")
def plan():
    return {"workItems": [
        {"title": "Outline", "context": "Three headings, no more."},
        {"title": "First draft", "context": "One paragraph under each heading."},
        {"title": "Proofread", "context": "Spelling and links."},
    ]}

@wb.agent("Eval")
def judge(turn):
    if turn.visit == 1:
        return {"satisfied": False, "context": "There are four headings, not three."}
    return {"satisfied": True}

@wb.agent("Build")
def write(turn):
    return f"Wrote the {turn.item_label.lower()}."

@wb.agent("Maintain")
def tidy():
    return {"satisfied": True}

@wb.agent("Narrate")
def tell():
    return "The guide is ready."
"""
START = "%materia cast write a short guide"


def agent(prompt: str, **fields: object) -> dict[str, object]:
    return {"tools": "none", "prompt": prompt, **fields}


def edge(when: str, to: str, **fields: object) -> dict[str, object]:
    return {"when": when, "to": to, **fields}


TWO_EXITS = {
    "entry": "Plan",
    "sockets": {
        "Plan": {"materia": "Plan", "parse": "json", "edges": [edge("always", "Build")]},
        "Build": {"materia": "Build", "edges": [edge("always", "Eval")]},
        "Eval": {
            "materia": "Eval",
            "parse": "json",
            "edges": [edge("satisfied", "Keep"), edge("not_satisfied", "Build", maxTraversals=3)],
        },
        "Keep": {"materia": "Maintain", "parse": "json", "edges": [edge("always", "Build")]},
        "Publish": {"materia": "Narrate"},
        "Ask": {"materia": "Ask"},
    },
    "loops": {
        "items": {
            "sockets": ["Build", "Eval", "Keep"],
            "consumes": {"from": "Plan", "output": "workItems"},
            "exits": [
                {"id": "done", "from": "Keep", "condition": "satisfied", "targetSocketId": "Publish"},
                {"id": "open", "from": "Keep", "condition": "not_satisfied", "targetSocketId": "Ask"},
            ],
        }
    },
    "materia": {
        "Plan": agent("Plan {{request}}", generator=True),
        "Build": agent("Build it: {{lastOutput}}"),
        "Eval": agent("Judge it: {{lastOutput}}"),
        "Maintain": agent("Put it in order"),
        "Narrate": agent("Tell about it"),
        "Ask": agent("Ask what is missing"),
    },
}

FAILING = {
    "entry": "Fetch",
    "sockets": {
        "Fetch": {"materia": "Fetch", "edges": [edge("always", "Count")]},
        "Count": {"materia": "Count", "parse": "json", "edges": [edge("always", "Tell")]},
        "Tell": {"materia": "Tell"},
    },
    "materia": {
        "Fetch": {"type": "utility", "command": ["echo", "three lines"], "parse": "text"},
        "Count": {"type": "utility", "command": ["cat", "lines.csv"]},
        "Tell": agent("Tell {{lastOutput}}"),
    },
}


def define(name: str, loadout: object) -> str:
    return f"%%materia define loadout {name}\n{json.dumps(loadout)}"


def opened(lab: Lab, *cells: str) -> int:
    """Open and run a notebook, and return the index of its last cell, which displays the panel."""
    widen(lab, *next(iter(WINDOWS.values())))
    lab.open(lab.notebook(*cells))
    lab.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
    lab.run_all()
    errors = [output.text for cell in range(len(cells)) for output in lab.outputs(cell) if output.kind == "error"]
    assert errors == []
    return len(cells) - 1


def widen(lab: Lab, width: int, height: int) -> None:
    lab.page.set_viewport_size({"width": width, "height": height})


def with_palette(lab: Lab, picture: bytes) -> bytes:
    """Convert a PNG to a palette of 255 colours."""
    told = lab.page.evaluate(PALETTE_SCRIPT, base64.b64encode(picture).decode())
    width, height, indices = told["width"], told["height"], base64.b64decode(told["indices"])
    rows = b"".join(b"\0" + indices[at : at + width] for at in range(0, width * height, width))
    parts = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": b"".join(struct.pack("<I", one)[:3] for one in told["palette"]),
        b"IDAT": zlib.compress(rows, 9),
        b"IEND": b"",
    }
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts.items()
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def keep(lab: Lab, cell: int, name: str, what: str = ".mnb-panel", numbers: Mapping[str, object] = NO_NUMBERS) -> None:
    """Save screenshots of the panel in a cell without hover or focus effects, and with numbers such as ``PARTS``."""
    panel = lab.cell(cell).locator(what).first
    for folder, window in WINDOWS.items():
        if folder != PICTURES and name not in WIDE:
            continue
        widen(lab, *window)
        folder.mkdir(parents=True, exist_ok=True)
        for theme, ending in ((LIGHT, ""), (DARK, "-dark")):
            lab.set_theme(theme)
            panel.scroll_into_view_if_needed()
            lab.page.mouse.move(0, 0)
            lab.page.evaluate("() => document.activeElement?.blur()")
            # The browser decodes the cards of another theme, and the flow turns in another room: nobody is told when.
            lab.page.wait_for_timeout(900)
            panel.evaluate(SHORTEN, str(lab.folder))
            assert str(lab.folder.parents[2]) not in panel.inner_text()
            panel.evaluate(NUMBER, list(numbers.items()))
            picture = with_palette(lab, panel.screenshot(animations="disabled"))
            assert len(picture) <= MOST_BYTES
            (folder / f"{name}{ending}.png").write_bytes(picture)


def test_screenshot_shows_a_cast_that_has_just_begun(lab: Lab):
    cell = opened(lab, AGENTS, START)
    Surface(lab, cell).wait_for_status("ready")
    keep(lab, cell, "fresh")


def test_screenshot_shows_a_cast_at_a_breakpoint(lab: Lab):
    breaks = "wb.current.breakpoints.add('Socket-3')\nwb.current.edit.budget(50_000)"
    cell = opened(lab, AGENTS, START, "%materia run --steps 3", breaks, "%materia show")
    panel = Surface(lab, cell)
    panel.wait_for_status("ready")
    panel.press("Run")
    panel.wait_for_status("Breakpoint: Eval")
    keep(lab, cell, "parts", numbers=PARTS)
    keep(lab, cell, "cast")


def test_screenshot_shows_the_work_items(lab: Lab):
    cell = opened(lab, AGENTS, START, "%materia run --steps 6", "%materia show")
    panel = Surface(lab, cell)
    panel.tab("Items")
    panel.field("title of WI-3").fill("Proofread twice")
    panel.wait_for_text("changed, not applied yet")
    keep(lab, cell, "items")


def test_screenshot_shows_a_loop_with_two_exits(lab: Lab):
    cell = opened(
        lab,
        AGENTS,
        define("Two-Exits", TWO_EXITS),
        START,
        "%materia run --until Publish",
        "%materia show graph",
    )
    Picture(lab, cell=cell).wait_for_class("n:Publish", "current")
    keep(lab, cell, "loop-exits")


def test_screenshot_shows_a_failed_step(lab: Lab):
    cell = opened(
        lab,
        "%load_ext materia_nb",
        define("Report", FAILING),
        "%materia cast how many lines",
        "%materia show",
    )
    panel = Surface(lab, cell)
    panel.press("Run")
    panel.wait_for_status("failed · Count")
    keep(lab, cell, "failed-step")


def test_screenshot_shows_the_timeline(lab: Lab):
    cell = opened(lab, AGENTS, START, "%materia run", "%materia show")
    panel = Surface(lab, cell)
    panel.at.get_by_role("grid", name="steps").locator("[data-index='2']").click()
    panel.at.locator(".mnb-under", has_text="step 3").wait_for()
    panel.tab("Why")
    panel.wait_for_text("leads back to")
    keep(lab, cell, "timeline")


def test_screenshot_shows_the_end_of_a_cast(lab: Lab):
    cell = opened(lab, AGENTS, START, "%materia run", "%materia show")
    Surface(lab, cell).wait_for_status("done")
    keep(lab, cell, "done")


def test_screenshot_shows_the_prompt_of_an_agent(lab: Lab):
    cell = opened(lab, AGENTS, START, "%materia run --steps 3", "%materia show")
    panel = Surface(lab, cell)
    panel.press("Show and edit the prompt first")
    panel.tab("Prompt")
    panel.at.get_by_role("tab", name="Prompt", selected=True).first.wait_for()
    keep(lab, cell, "told")


def test_screenshot_shows_two_casts_side_by_side(lab: Lab):
    otherwise = "wb.current.agents.set('Eval', lambda: {'satisfied': True, 'context': 'There are three headings.'})"
    cell = opened(lab, AGENTS, START, "%materia run", "%materia show", otherwise) - 1
    panel = Surface(lab, cell)
    panel.at.get_by_role("grid", name="steps").locator("[data-index='1']").click()
    panel.choose_again("Fork from here")
    panel.wait_for_text("Up to that point, A and B do not differ")
    lab.run_cell(cell + 1)
    panel.press("Run")
    panel.wait_for_text("A and B first differ in step 3: Eval (Outline) answered differently")
    keep(lab, cell, "compare")


LANES = """
wb.loadouts.define("Lanes", %r)
wb.agent("Plan", %r)
wb.agent("Setup", lambda: "ready")
wb.agent("Build", lambda item: "built " + item["title"])
wb.agent("Tell", lambda: "told")
"""


def test_screenshot_shows_a_cast_with_lanes(lab: Lab):
    config = streams_config(2)
    loadout = {**config["loadouts"]["T"], "materia": config["materia"]}
    plan = stream_agents({"docs": [0, 3], "code": [1, 2, 4], "release": [5]})["Plan"]()
    made = LANES.replace('"Plan", %r', '"Plan", lambda: %r') % (loadout, plan)
    cell = opened(
        lab,
        "%load_ext materia_nb\nfrom materia_nb import Workbench\nwb = Workbench('.')",
        made,
        "%materia use Lanes",
        START,
    )
    panel = Surface(lab, cell)
    panel.press("Run")
    panel.wait_for_text("Your turn: docs · Check")
    panel.tab("Lanes 3")
    panel.wait_for_text("release is waiting for you.")
    keep(lab, cell, "lanes")


CASTS = """
wb.cast("a glossary of ten words").run()
named = wb.cast("breakfast, in three steps")
named.run()
named.labels.add(name="breakfast", tag="good")
def broken():
    raise RuntimeError("no paper in the tray")
for request, changed, steps in (
    ("tidy the readme", {"Build": broken}, None),
    ("release notes for 0.4", {}, 4),
    ("port the tests", {"Build": "person"}, None),
    ("a short guide", {}, None),
):
    wb.cast(request, agents=changed).run(steps=steps)
"""


def test_screenshot_shows_the_casts_of_a_project(lab: Lab):
    cell = opened(lab, AGENTS, CASTS, "wb.casts")
    casts = lab.cell(cell).locator(".mnb-casts")
    casts.get_by_role("row").filter(has_text="breakfast").first.click()
    casts.get_by_role("region", name="the selected cast").get_by_text("The guide is ready.").first.wait_for()
    keep(lab, cell, "casts", ".mnb-casts")


def test_screenshot_shows_an_answer_from_a_person(lab: Lab):
    cell = opened(lab, AGENTS, 'wb.agent("Build", "person")', START, "%materia run", "%materia show")
    panel = Surface(lab, cell)
    panel.wait_for_status("Your turn: Build")
    panel.field("the answer").fill("Three headings: why, how, and what next.")
    panel.wait_for_text("this answer is valid")
    keep(lab, cell, "answer")


ASKS = """
from materia_nb.agents import NeedsApproval, Reply, ToolCall
class Careful:
    name = "careful"
    def answer(self, turn):
        said = "The old build is in the way, so I will remove it first."
        return NeedsApproval((ToolCall(id="1", tool="bash", args={"command": "rm -rf build && make"}, said=said),))
wb.agent("Build", Careful())
"""


def test_screenshot_shows_a_command_that_waits_for_approval(lab: Lab):
    cell = opened(lab, AGENTS, ASKS, START, "%materia run --steps 2", "%materia show")
    Surface(lab, cell).wait_for_status("Your turn")
    keep(lab, cell, "approval")


def test_screenshot_shows_the_designer(lab: Lab):
    cell = opened(lab, AGENTS, "%materia design")
    Picture(lab, cell=cell).click("n:Socket-3")
    lab.page.wait_for_timeout(500)
    keep(lab, cell, "designer")


@pytest.mark.parametrize("count", [40, 200])
def test_screenshot_shows_many_sockets(lab: Lab, count: int):
    names = ("Outline", "Draft", "Proofread", "Check links", "Translate")
    sockets = {
        f"Socket-{n}": {
            "materia": names[n % len(names)],
            "edges": [edge("always", f"Socket-{n + 1}")] if n < count else [],
        }
        for n in range(1, count + 1)
    }
    materia = {name: agent(f"{name}: {{{{request}}}}") for name in names}
    long = {"entry": "Socket-1", "sockets": sockets, "materia": materia}
    cell = opened(
        lab,
        "%load_ext materia_nb",
        define("Long", long),
        f"def done():\n    return 'done'\nwb.agent('*', done)\n{START}",
        "%materia run --steps 17",
        "%materia show",
    )
    Surface(lab, cell).wait_for_status("ready")
    keep(lab, cell, f"sockets-{count}")


def test_screenshot_shows_a_panel_after_its_kernel_has_stopped(lab: Lab):
    cell = opened(lab, AGENTS, START)
    Surface(lab, cell).wait_for_status("ready")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    lab.cell(cell).get_by_text("The kernel of this panel is no longer running").wait_for()
    keep(lab, cell, "restarted")
    lab.page_errors[:] = [error for error in lab.page_errors if "Canceled future" not in error]

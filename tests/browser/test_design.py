"""Test the designer in JupyterLab with the mouse only, with the keyboard only, and with hostile text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from browser.lab import DARK, LIGHT
from browser.picture import Picture, wait_until_still
from browser.surface import press_button, violations
from materia_nb.loadout.vocabulary import CONDITION_SPECS

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator

    from browser.lab import Lab

pytestmark = pytest.mark.browser

HOSTILE: Final = "<img src=x onerror=window.__owned=1>"
MOST_ACTIONS: Final = 22
TOLD: Final = "print(panel.design.document)"
CANVAS: Final = "document.querySelector('.mnb-canvas')"


class Designer:
    """The designer, with one method for each user action; ``actions`` counts clicks, drags and typed words."""

    def __init__(self, lab: Lab, cell: int) -> None:
        self.lab, self.page, self.panel = lab, lab.page, lab.cell(cell)
        self.actions = 0
        self.panel.locator(".mnb-d-palette").wait_for()
        self.page.wait_for_function(f"() => {CANVAS}?._cyreg?.cy")

    def wait_for_text(self, text: str) -> None:
        """Wait until the bar of the designer shows the specified text."""
        self.panel.locator(".mnb-d-said, .mnb-d-ask").get_by_text(text).first.wait_for()

    def press(self, name: str, role: Any = "button") -> None:
        """Click the control with the specified name."""
        press_button(self.panel.get_by_role(role, name=name, exact=True).locator("visible=true").first)
        self.actions += 1

    def choose(self, name: str) -> None:
        """Click the choice with the specified name in the inspector."""
        self.panel.locator(".mnb-d-body .mnb-d-radios label").get_by_text(name, exact=True).click()
        self.actions += 1

    def select_part(self, **option: Any) -> None:
        """Select a part of the design in the list above the form, and wait for its form."""
        [value] = self.panel.locator(".mnb-d-seek").select_option(**option)
        self.page.wait_for_function(
            "(of) => document.querySelector('.mnb-d-inspector').dataset.of === JSON.stringify(JSON.parse(of))",
            arg=value,
        )

    def add(self, materia: str, id_: str) -> None:
        """Click a materia in the palette, and wait until its socket is drawn."""
        self.panel.locator(f'.mnb-d-entry[data-materia="{materia}"]').click()
        self.actions += 1
        self.wait_for_text(f"added {materia}")
        self.wait_for_socket(id_)

    def wait_for_socket(self, socket: str) -> None:
        """Wait until a socket is drawn and the picture has stopped moving."""
        self.page.wait_for_function(
            f"(id) => {{ const cy = {CANVAS}._cyreg.cy; return cy.getElementById(id).nonempty() && !cy.animated(); }}",
            arg=f"n:{socket}",
        )

    def at(self, socket: str) -> tuple[float, float, float]:
        """Wait until the graph has stopped moving; return the screen position of a socket's centre and half its width."""
        self.wait_for_socket(socket)
        x, y, half = self.page.evaluate(
            f"""(id) => {{
                const cy = {CANVAS}._cyreg.cy;
                const one = cy.getElementById(id);
                const at = one.renderedPosition(), box = cy.container().getBoundingClientRect();
                return [box.x + at.x, box.y + at.y, one.renderedWidth() / 2];
            }}""",
            f"n:{socket}",
        )
        return x, y, half

    def connect(self, source: str, to: str, words: str) -> None:
        """Drag an edge from the handle of a socket to another socket, and wait for a text in the bar."""
        self.drag(source, lambda: self.at(to)[:2])
        self.wait_for_text(words)

    def drag(self, source: str, to: Callable[[], tuple[float, float]]) -> None:
        """Drag from the handle of a socket to a position that is computed after the drag has begun."""
        x, y, _ = self.at(source)
        self.page.mouse.move(0, 0)
        self.page.mouse.move(x - 4, y)
        self.page.mouse.move(x, y)
        handle = self.panel.locator(".mnb-c-handle")
        handle.wait_for()
        self.page.wait_for_function(
            "(id) => document.querySelector('.mnb-c-handle').dataset.element === id", arg=f"n:{source}"
        )
        handle.hover()
        self.page.mouse.down()
        x, y = to()
        self.page.mouse.move(x - 3, y, steps=3)
        self.page.mouse.move(x, y)
        self.page.mouse.up()
        self.actions += 1

    def frame(self, *sockets: str) -> None:
        """Drag a selection frame around the specified sockets while Shift is held."""
        spots = [self.at(socket) for socket in sockets]
        self.page.keyboard.down("Shift")
        self.page.mouse.move(min(x - half for x, _, half in spots) - 12, min(y for _, y, _ in spots) - 34)
        self.page.mouse.down()
        self.page.mouse.move(max(x + half for x, _, half in spots) + 12, max(y for _, y, _ in spots) + 34, steps=3)
        self.page.mouse.up()
        self.page.keyboard.up("Shift")
        self.actions += 1

    def document(self, cell: int) -> dict[str, Any]:
        """Return the document of the design from the kernel."""
        self.lab.run_cell(cell)
        found: dict[str, Any] = json.loads(self.lab.outputs(cell)[-1].text)
        return found


@pytest.fixture
def designer(lab: Lab) -> Designer:
    """Return a new design in the second cell of a notebook whose third cell prints its document."""
    lab.page.set_viewport_size({"width": 1600, "height": 1000})
    lab.page.set_default_timeout(30_000)
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            "panel = get_ipython().run_line_magic('materia', 'design --new Eight'); panel",
            "import json; print(json.dumps(panel.design.document))",
        )
    )
    lab.run_all()
    return Designer(lab, 1)


MATERIA: Final = ("Plan", "Build", "Eval", "Maintain", "Auto-Plan", "Draft", "Critique", "Narrate")


def assert_expected_loadout(document: dict[str, Any]) -> None:
    """Assert that the loadout has eight sockets, eight edges, and two loops with one exit each."""
    sockets, loops = document["sockets"], document["loops"]
    assert [socket["materia"] for socket in sockets.values()] == [*MATERIA]
    assert [len(one.get("edges", ())) for one in sockets.values()] == [1, 1, 2, 1, 1, 1, 1, 0]
    assert [sorted(loop["sockets"]) for loop in loops.values()] == [
        ["Socket-2", "Socket-3", "Socket-4"],
        ["Socket-6", "Socket-7"],
    ]
    assert [one["consumes"]["from"] for one in loops.values()] == ["Socket-1", "Socket-5"]
    assert [[route["targetSocketId"] for route in one["exits"]] for one in loops.values()] == [
        ["Socket-5"],
        ["Socket-8"],
    ]
    retry = next(edge for edge in sockets["Socket-3"]["edges"] if edge["to"] == "Socket-2")
    assert retry["when"] == "not_satisfied"


def test_loadout_with_two_loops_can_be_built_by_mouse_alone(designer: Designer):
    """The cell is 848 pixels wide, and all sockets must be visible. Dropping an edge on an empty area creates a socket."""
    designer.page.set_viewport_size({"width": 1280, "height": 800})
    for number, materia in enumerate(MATERIA, 1):
        designer.add(materia, f"Socket-{number}")
    for source, to in ((1, 2), (2, 3), (3, 4), (3, 2), (4, 2), (5, 6), (6, 7), (7, 6)):
        words = f"connected {MATERIA[source - 1]} to {MATERIA[to - 1]}"
        designer.connect(f"Socket-{source}", f"Socket-{to}", words)
    for members in ((2, 3, 4), (6, 7)):
        designer.frame(*(f"Socket-{member}" for member in members))
        designer.press(f"Make loop ({len(members)})")
        designer.wait_for_text(f"over the work items of {MATERIA[members[0] - 2]}")
    designer.connect("Socket-4", "Socket-5", "to Auto-Plan")
    designer.connect("Socket-7", "Socket-8", "to Narrate")
    designer.lab.screenshot("design-eight", cell=1)
    assert_expected_loadout(designer.document(2))
    assert designer.actions <= MOST_ACTIONS

    x, y, half = designer.at("Socket-8")
    designer.drag("Socket-8", lambda: (x + half + 60, y))
    offered = designer.panel.get_by_role("menuitem").locator("visible=true")
    designer.page.keyboard.type("Narr")
    assert offered.all_inner_texts() == ["Narrate", "make the agent Narr", "make the utility Narr"]
    designer.page.keyboard.type("ator")
    designer.page.keyboard.press("Enter")
    designer.wait_for_text("created the agent Narrator; added Narrator; connected Narrate to Narrator")
    designer.wait_for_socket("Socket-9")
    designer.page.wait_for_function(
        "() => document.querySelector('.mnb-c-handle').dataset.element === 'n:Socket-9'"
    )  # so that the next drag begins at the new socket, although the mouse has not moved
    assert (
        designer.at("Socket-9")[0] - designer.at("Socket-9")[2]
        > designer.at("Socket-8")[0] + designer.at("Socket-8")[2] + 20
    )


def test_new_cards_are_placed_in_view_without_overlap(lab: Lab):
    """The cell is 848 pixels wide; edges must avoid cards immediately, and questions must also fit a narrow page."""
    lab.page.set_viewport_size({"width": 1280, "height": 800})
    lab.page.set_default_timeout(30_000)
    show = "panel = get_ipython().run_line_magic('materia', 'design --new Five'); panel"
    lab.open(lab.notebook("%load_ext materia_nb", show))
    lab.run_all()
    designer = Designer(lab, 1)
    for number, materia in enumerate(MATERIA[:5], 1):
        designer.add(materia, f"Socket-{number}")
    stands, bottom = lab.page.evaluate(
        f"""() => {{
            const cy = {CANVAS}._cyreg.cy, tools = document.querySelector(".mnb-c-tools").getBoundingClientRect();
            const boxes = cy.nodes(".socket").toArray().map((one) => one.renderedBoundingBox({{ includeOverlays: false }}));
            return [boxes.map((one) => [one.x1, one.y1, one.x2, one.y2]), tools.top - cy.container().getBoundingClientRect().top];
        }}"""
    )
    assert all(x1 >= 0 and y1 >= 0 and x2 <= 500 and y2 <= bottom for x1, y1, x2, y2 in stands)
    assert [y1 for _, y1, _, _ in stands] == sorted(y1 for _, y1, _, _ in stands)
    for source, to in ((1, 2), (2, 3), (3, 4), (4, 5)):
        words = f"connected {MATERIA[source - 1]} to {MATERIA[to - 1]}"
        designer.connect(f"Socket-{source}", f"Socket-{to}", words)
    designer.frame("Socket-2", "Socket-3", "Socket-4")
    designer.press("Make loop (3)")
    designer.wait_for_text("leads out of the loop")
    for width in (1280, 520):
        lab.page.set_viewport_size({"width": width, "height": 800})
        designer.panel.locator(".mnb-d-ask").scroll_into_view_if_needed()
        lab.page.wait_for_function(
            """() => [...document.querySelectorAll(".mnb-d-ask > *")].every((one) => {
                const { x, y, width, height } = one.getBoundingClientRect();
                return [0.02, 0.5, 0.98].every((at) => one.contains(document.elementFromPoint(x + at * width, y + height / 2)));
            })"""
        )
    assert violations(lab, "an exit is asked about") == []
    designer.press("Make an exit")
    designer.wait_for_text("created loop")

    _by_finger_and_by_keys_in_a_narrow_surface(designer)


def _by_finger_and_by_keys_in_a_narrow_surface(designer: Designer) -> None:
    """Check touch and keyboard use in a panel 400 pixels wide: control sizes, drawing edges, and menus."""
    lab = designer.lab
    fingers = lab.page.context.new_cdp_session(lab.page)
    fingers.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 1})
    fingers.send("Emulation.setEmulatedMedia", {"features": [{"name": "pointer", "value": "coarse"}]})

    def finger(kind: str, *points: tuple[float, float]) -> None:
        given = [{"x": x, "y": y} for x, y in points]
        fingers.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": given})

    lab.page.set_viewport_size({"width": 530, "height": 900})
    lab.page.evaluate("() => jupyterapp.shell.collapseLeft()")
    designer.panel.locator(".mnb-surface[data-narrow]").wait_for()
    designer.panel.locator(".mnb-surface").evaluate("(one) => one.scrollIntoView({ block: 'start' })")
    assert designer.panel.locator(".mnb-surface").evaluate(SMALL_CONTROLS) == []
    designer.wait_for_socket("Socket-5")
    x, y, _ = designer.at("Socket-5")
    finger("Start", (x, y))
    finger("End")
    designer.panel.locator(".mnb-d-sub").get_by_text("Socket-5", exact=True).wait_for()
    wait_until_still(lab, ".mnb-c-handle")
    box = designer.panel.locator(".mnb-c-handle").bounding_box()
    assert box is not None
    finger("Start", (box["x"] + 9, box["y"] + 9))
    for far in (10, 20, 30):
        finger("Move", (box["x"] + 9 + 3 * far, box["y"] + 9))
    finger("End")
    offered = designer.panel.get_by_role("menuitem")
    offered.get_by_text("the end of the cast").wait_for(state="attached")
    assert designer.panel.locator(".mnb-menu").evaluate(SMALL_CONTROLS) == []
    lab.page.keyboard.press("Escape")
    finger("Start", (x, y))
    offered.get_by_text("Connect from here").wait_for()
    finger("End")
    lab.page.keyboard.press("Escape")

    # And by keys there: undo, and when the edge of a socket is taken.
    lab.page.keyboard.press("Control+z")
    designer.wait_for_text("undone: created loop")
    x, y, _ = designer.at("Socket-2")
    lab.page.mouse.click(x, y)
    for key in ("e", "2"):
        lab.page.keyboard.press(key)
    designer.wait_for_text("edge 1 of Build now leads to Eval (satisfied)")
    fingers.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    fingers.detach()
    lab.page.evaluate("() => jupyterapp.shell.expandLeft()")


SMALL_CONTROLS: Final = """(part) => [...part.querySelectorAll("button, input:not([type=radio]), select, textarea, summary, .mnb-d-radios span")]
    .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest(".mnb-c-find"))
    .map((one) => { const { width, height } = one.getBoundingClientRect(), least = one.type === "checkbox" ? 24 : 44; return [one.className, one.textContent, width, height, least]; })
    .filter(([, , width, height, least]) => width < least || height < least)"""
"""JavaScript function that returns the controls that are too small to be touched reliably."""

# -- by keyboard alone ---------------------------------------------------------------------

FOCUS = """(one) => {
    if (!one.isConnected) return "redrawn";
    if (one === document.activeElement) return "reached";
    return document.activeElement.closest(".mnb-surface") ? "inside" : "outside";
}"""
"""JavaScript function that returns where the focus is in relation to a control that is to receive it."""


class KeyboardDesigner(Designer):
    """The designer, with methods that use only the keyboard."""

    def key(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def to(self, target: Locator) -> None:
        """Move the focus to a control with Tab or Shift+Tab, whichever is shorter; fail if the control cannot be
        reached.
        """
        target.wait_for()
        one = target.element_handle()
        onward = self.page.evaluate(
            "(one) => !!(document.activeElement.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING)", one
        )
        for way in ("Tab", "Shift+Tab") if onward else ("Shift+Tab", "Tab"):
            for presses in range(60):
                focus = self.page.evaluate(FOCUS, one)
                if focus == "reached":
                    return
                if presses and focus == "outside":
                    break
                if focus == "redrawn":
                    one = target.element_handle()
                else:
                    self.key(way)
        pytest.fail(f"Tab does not lead to {target}")

    def button(self, name: str) -> None:
        """Press a button of the inspector with Enter."""
        self.to(self.panel.locator(".mnb-inspector").get_by_role("button", name=name, exact=True))
        self.key("Enter")

    def select(self, words: str) -> None:
        """Select a part of the design in the list above the form."""
        self.to(self.panel.locator(".mnb-d-seek"))
        self.page.keyboard.type(words)
        self.panel.locator(".mnb-d-names").get_by_text(words, exact=True).first.wait_for()

    def connect_by_form(self, source: str, to: str, words: str) -> None:
        """Connect two sockets through the form, and wait for a text in the bar."""
        self.select(source)
        self.to(self.panel.locator(".mnb-d-inspector [role=tab][aria-selected=true]"))
        while self.page.evaluate("() => document.activeElement.dataset.tab") != "ways":
            self.key("ArrowRight")
        self.to(self.panel.get_by_role("combobox", name="to …"))
        self.page.keyboard.type(to)
        self.button("Connect")
        self.wait_for_text(words)


def test_loop_and_its_exit_can_be_built_by_keyboard_alone(designer: Designer):
    keys = KeyboardDesigner(designer.lab, 1)
    keys.panel.locator(".mnb-d-find").focus()  # as Tab from the cell above leads there
    for materia in MATERIA[:5]:
        keys.page.keyboard.type(materia)
        keys.key("Enter")
        keys.wait_for_text(f"added {materia}")
    # The count in the bar leads to the first finding: its part is selected, and its row has the focus.
    keys.to(keys.panel.get_by_role("button", name="hints: open the first"))
    keys.key("Enter")
    keys.panel.locator(".mnb-d-names").get_by_text("Build", exact=True).first.wait_for()
    assert keys.page.evaluate("() => document.activeElement.closest('tr').innerText").split()[2] == "Build"
    keys.lab.screenshot("design-first-hint", cell=1)
    for source, to in ((1, 2), (2, 3), (3, 4), (3, 2), (4, 2)):
        names = MATERIA[source - 1], MATERIA[to - 1]
        keys.connect_by_form(*names, "connected {} to {}".format(*names))
    for member in MATERIA[1:4]:
        keys.select(member)
        keys.button("Mark")
    keys.button("Make loop (3)")
    keys.wait_for_text("over the work items of Plan")
    keys.connect_by_form("Maintain", "Auto-Plan", "added an exit")
    document = designer.document(2)
    assert [socket["materia"] for socket in document["sockets"].values()] == [*MATERIA[:5]]
    [loop] = document["loops"].values()
    assert sorted(loop["sockets"]) == ["Socket-2", "Socket-3", "Socket-4"]
    assert loop["consumes"]["from"] == "Socket-1"
    assert [route["targetSocketId"] for route in loop["exits"]] == ["Socket-5"]

    # The ways out say what they wait for, in the tone of that.
    keys.select("Eval")
    ways = keys.panel.locator(".mnb-d-way .mnb-d-link")
    assert ways.all_inner_texts() == ["✗ not satisfied → Build", "always → Maintain"]
    tones = ways.evaluate_all(
        "(all) => all.map((one) => [...one.classList].filter((name) => name.startsWith('mnb-t-')))"
    )
    assert tones == [["mnb-t-no"], []]
    offered = keys.panel.locator(".mnb-d-body .mnb-d-radios label")
    assert offered.all_inner_texts() == [
        "automatic",
        *(condition_spec.choice for condition_spec in CONDITION_SPECS.values()),
    ]


# -- what is typed -----------------------------------------------------------------------------


def test_quickly_typed_text_is_complete_and_applied_to_the_edited_element(designer: Designer):
    page, panel = designer.page, designer.panel
    find = panel.locator(".mnb-d-find")
    find.focus()
    for materia in ("Blackbelt-Bootstrap", "Detect-VCS", "Interactive-Plan"):
        page.keyboard.type(materia)  # as fast as keys can be pressed
        page.keyboard.press("Enter")
        designer.wait_for_text(f"added {materia}")
        assert find.input_value() == ""
    page.keyboard.type("Wirter")
    page.keyboard.press("Enter")
    designer.wait_for_text("The materia 'Wirter' does not exist.")
    designer.press('New agent "Wirter"')
    designer.wait_for_text("created the agent Wirter")

    # A field that is left by a click on the picture, by Save, by undo: each time whole, and for its own part.
    prompt = panel.locator('.mnb-d-row[data-field="prompt"] textarea')
    prompt.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("Write it down.\nShortly. ")
    panel.get_by_role("button", name="{{request}}").click()
    page.keyboard.type("!")
    assert prompt.input_value() == "Write it down.\nShortly. {{request}}!"
    x, y, _ = designer.at("Socket-1")
    page.mouse.click(x, y)
    panel.locator(".mnb-d-sub").get_by_text("Socket-1", exact=True).wait_for()
    designer.wait_for_text("set prompt of Wirter")
    designer.press("Socket", "tab")
    label = panel.locator('.mnb-d-row[data-field="label"] input')
    label.click()
    page.keyboard.type("First of all")
    page.keyboard.press("Control+s")
    designer.wait_for_text("saved in ")
    document = designer.document(2)
    assert document["sockets"]["Socket-1"] == {"materia": "Blackbelt-Bootstrap", "label": "First of all"}
    assert [socket["materia"] for socket in document["sockets"].values()][1:] == [
        "Detect-VCS",
        "Interactive-Plan",
        "Wirter",
    ]
    stored = json.loads((designer.lab.folder / ".pi" / "pi-materia.json").read_text())
    assert stored["materia"]["Wirter"]["prompt"] == "Write it down.\nShortly. {{request}}!"

    # What is refused stays in its field, with the reason; Escape lets it go.
    panel.locator(".mnb-d-body input").first.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("two words")
    page.keyboard.press("Enter")
    panel.locator(".mnb-d-error").get_by_text("is not a valid socket id").wait_for()
    field = panel.locator('.mnb-d-row[data-field="id"] input')
    assert field.input_value() == "two words"
    assert field.get_attribute("aria-invalid") == "true"
    field.press("Escape")
    panel.locator(".mnb-d-error").get_by_text("cannot be the id").wait_for(state="detached")
    assert field.input_value() == "Socket-1"


def test_materia_is_changed_for_one_socket_unless_the_user_changes_it_everywhere(designer: Designer):
    page, panel = designer.page, designer.panel
    for number, materia in enumerate(("Detect-VCS", "Build"), 1):
        designer.add(materia, f"Socket-{number}")
    scope = panel.get_by_role("radiogroup", name="where changes to the materia apply")
    panel.get_by_text("This materia is also used by ").wait_for()
    prompt = panel.locator('.mnb-d-row[data-field="prompt"] textarea')
    prompt.click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" Keep it short.")
    page.keyboard.press("Tab")
    designer.wait_for_text("copied Build to Eight.Build")
    scope.wait_for(state="hidden")
    page.keyboard.type("m:x")  # the focus has moved to the next field and stays there
    page.keyboard.press("Enter")
    designer.wait_for_text("set model of Eight.Build to m:x")
    x, y, _ = designer.at("Socket-1")
    page.mouse.click(x, y)
    panel.locator(".mnb-d-sub").get_by_text("Socket-1", exact=True).wait_for()
    panel.locator('.mnb-d-row[data-field="label"] input').fill("VCS")
    designer.choose("everywhere")  # leaves the field, whose text is then sent with this choice
    designer.wait_for_text("set label of Detect-VCS to VCS")
    assert [socket["materia"] for socket in designer.document(2)["sockets"].values()] == ["Detect-VCS", "Eight.Build"]
    designer.press("Save")
    designer.wait_for_text("saved in ")
    stored = json.loads((designer.lab.folder / ".pi" / "pi-materia.json").read_text())["materia"]
    assert stored["Detect-VCS"] == {"label": "VCS"}
    assert stored["Eight.Build"]["prompt"].endswith(" Keep it short.")
    assert "Build" not in stored


# -- drafts -----------------------------------------------------------------------------------


AGENT: Final = """
from pathlib import Path
from materia_nb.shell.mcp_server import DesignServer
robot = DesignServer(Path.cwd(), by="robot")
steps = [("open_loadout", {"loadout": "Mine", "new": True}), ("add_socket", {"materia": "Plan"}), ("add_socket", {"materia": "Build"}),
         ("add_edge", {"source": "Socket-1", "to": "Socket-2"}), ("hand_over", {})]
print([result.text for name, given in steps if not (result := robot.call(name, given)).ok])
"""


def continue_draft(designer: Designer, steps: int, picture: str) -> None:
    """Accept an offered draft with ``steps`` steps after checking the offer and taking screenshots of it."""
    designer.wait_for_text(f"({steps} steps).")
    designer.lab.screenshot(picture)
    designer.lab.screenshot(f"{picture}-dark", dark=True)
    assert violations(designer.lab, "a draft is offered") == []
    designer.press("Continue with draft")


def test_draft_of_a_coding_agent_can_be_continued(lab: Lab):
    lab.page.set_viewport_size({"width": 1600, "height": 1000})
    show = "panel = get_ipython().run_line_magic('materia', 'design --new Mine'); panel"
    lab.open(lab.notebook("%load_ext materia_nb", AGENT, show))
    lab.run_all()
    designer = Designer(lab, 2)
    continue_draft(designer, 3, "design-handed-over")
    designer.wait_for_text("by robot (3 steps)")
    designer.wait_for_socket("Socket-2")
    designer.press("Undo")
    designer.wait_for_text("undone: connected Plan to Build")


def test_design_is_restored_after_a_kernel_restart_and_pressing_enter_casts_it_once(designer: Designer):
    page, panel, lab = designer.page, designer.panel, designer.lab
    for number, materia in enumerate(("Plan", "Build", "Eval"), 1):
        designer.add(materia, f"Socket-{number}")
    designer.connect("Socket-1", "Socket-2", "connected Plan to Build")
    before = designer.document(2)
    page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    panel.get_by_text("the new panel offers the draft of Eight, with all 4 steps").wait_for()
    lab.screenshot("design-kernel-gone")
    lab.run_cell(0)
    lab.run_cell(1)
    continue_draft(designer, 4, "design-draft-offered")
    designer.wait_for_text("continued with the draft of ")
    designer.wait_for_socket("Socket-3")
    assert designer.document(2) == before
    designer.press("Undo")
    designer.wait_for_text("undone: connected Plan to Build")

    # Enter begins one cast, and the key does not press the button that the focus goes back to.
    designer.press("Cast it")
    panel.get_by_label("Request: purpose of the cast").fill("an app")
    page.keyboard.press("Enter")
    panel.locator(".mnb-pill").first.wait_for()
    assert not panel.locator(".mnb-d-ask").is_visible()
    lab.set_source(2, "print(len(panel.bench.casts()))")
    lab.run_cell(2)
    assert lab.outputs(2)[-1].text.strip() == "1"


# -- a long row -------------------------------------------------------------------------------

ROW: Final = """
from materia_nb import Workbench
from materia_nb.widgets.graph_panel import GraphPanel
ids = [f"Socket-{number}" for number in range(1, 201)]
row = {one: {"materia": "Build", "edges": [{"when": "always", "to": to}]} for one, to in zip(ids, ids[1:])}
GraphPanel(Workbench(".").loadouts.define("Row", {"sockets": {**row, ids[-1]: {"materia": "Build"}}}).graph).view
"""


def test_fit_button_shows_a_complete_row_of_two_hundred_sockets(lab: Lab):
    lab.open(lab.notebook(ROW))
    lab.run_all()
    seen, whole = "cy.extent()", "cy.nodes().boundingBox()"
    across, down = (f"{seen}.{one}1 <= {whole}.{one}1 && {seen}.{one}2 >= {whole}.{one}2" for one in "xy")
    fit = lab.cell(0).get_by_role("button", name="show the whole graph")
    picture = Picture(lab, cell=0)
    picture.wait_until_still()  # else it is laid out anew for the room that it has
    picture.press(fit, f"{across} && {down}")


# -- hostile text -----------------------------------------------------------------------------


def test_hostile_text_is_shown_as_text_in_every_part(lab: Lab):
    lab.page.set_viewport_size({"width": 1280, "height": 900})
    lab.page.set_default_timeout(30_000)
    loadout = {
        "entry": "Socket-1",
        "label": HOSTILE,
        "description": HOSTILE,
        "sockets": {
            "Socket-1": {"materia": HOSTILE, "label": HOSTILE, "edges": [{"when": HOSTILE, "to": HOSTILE}]},
            "Socket-2": {"materia": HOSTILE, "parse": HOSTILE, "assign": {HOSTILE: HOSTILE}},
            HOSTILE: {"materia": "M", "edges": [{"when": "always", "to": HOSTILE}], "advance": HOSTILE},
        },
        "loops": {
            HOSTILE: {
                "sockets": ["Socket-1", HOSTILE],
                "label": HOSTILE,
                "consumes": {"from": HOSTILE, "as": HOSTILE},
                "exits": [{"id": HOSTILE, "from": HOSTILE, "condition": "always", "targetSocketId": HOSTILE}],
            }
        },
        "materia": {
            "M": {"label": HOSTILE, "tools": "none", "prompt": HOSTILE, "group": HOSTILE, "color": HOSTILE},
            HOSTILE: {"prompt": HOSTILE, "tools": [HOSTILE], "model": HOSTILE, "description": HOSTILE},
        },
    }
    lab.open(
        lab.notebook(
            "%load_ext materia_nb",
            f"%%materia define loadout Hostile\n{json.dumps(loadout)}",
            "panel = get_ipython().run_line_magic('materia', 'design Hostile'); panel",
        )
    )
    lab.run_all()
    designer = Designer(lab, 2)
    seek = designer.panel.locator(".mnb-d-seek")
    for place in range(1, seek.locator("option").count()):
        designer.select_part(index=place)
        for tab in designer.panel.locator(".mnb-d-inspector [role=tab]").all():
            tab.click()
    for tab in ("What can happen", "Changes 0"):
        designer.press(tab, "tab")
    lab.screenshot("design-hostile", cell=2)
    find = designer.panel.locator(".mnb-d-find")
    find.fill(HOSTILE + "2")
    find.press("Enter")
    designer.wait_for_text("does not exist")
    assert designer.panel.locator("img[src=x], [onerror]").count() == 0
    assert lab.page.evaluate("window.__owned") is None


# -- access ---------------------------------------------------------------------------------


def test_designer_has_no_accessibility_violations(lab: Lab):
    lab.page.set_viewport_size({"width": 1280, "height": 900})
    lab.page.set_default_timeout(30_000)
    lab.open(lab.notebook("%load_ext materia_nb", "%materia design Plan-Build-Eval"))
    lab.run_all()
    designer = Designer(lab, 1)
    lab.screenshot("design", cell=1)
    lab.screenshot("design", dark=True, cell=1)
    lab.set_theme(LIGHT)
    found = []

    def look(where: str, *rules: str) -> None:
        found.extend(violations(lab, where, *rules))

    def look_at_parts(*rules: str) -> None:
        seek = designer.panel.locator(".mnb-d-seek")
        for words, tabs in (
            ("Eval ·", ("Socket", "Edges 2", "JSON", "Materia")),
            ("loop items", ("Exits 2", "Fields")),
            ("exit always", ("Fields",)),
        ):
            label = next(text for text in seek.locator("option").all_inner_texts() if text.startswith(words))
            designer.select_part(label=label)
            for tab in tabs:
                designer.press(tab, "tab")
                look(f"{words}, {tab}", *rules)

    look("begun")
    look_at_parts()
    designer.press("What can happen", "tab")
    designer.press("Explore")
    designer.panel.get_by_text("can end").wait_for()
    for word, socket in {"reach": "Socket-5", "without": "Socket-3", "since": "Socket-2"}.items():
        designer.panel.get_by_label(word, exact=True).select_option(socket)
    designer.press("Ask")
    designer.panel.get_by_text("Proven: no cast with 0 to 3 items reaches Narrate without Eval since Build.").wait_for()
    assert designer.panel.get_by_label("since", exact=True).input_value() == "Socket-2"
    look("What can happen")
    lab.screenshot("design-explored", cell=1)
    lab.set_theme(DARK)  # in which only colours differ
    look("What can happen, dark", "color-contrast")
    look_at_parts("color-contrast")
    designer.press("more")
    designer.press("What do my changes change?", "menuitem")
    designer.panel.get_by_text("Every cast takes the same route in A and B.").wait_for()
    look("What do my changes change?, dark", "color-contrast")
    lab.screenshot("design-changes", dark=True, cell=1)
    designer.press("show only the tabs")
    look("its dock folded")
    designer.press("more")
    designer.press("Save as…", "menuitem")
    look("Save as")
    lab.screenshot("design-explored", dark=True, cell=1)
    assert found == [], json.dumps(found, indent=1)


def test_prompt_and_estimate_are_shown_before_a_cast(lab: Lab):
    lab.page.set_default_timeout(30_000)
    lab.open(lab.notebook("%load_ext materia_nb", "%materia design Plan-Build-Eval"))
    lab.run_all()
    designer = Designer(lab, 1)
    designer.select_part(value='["socket","Socket-2"]')
    told = designer.panel.locator(".mnb-d-told")
    told.get_by_text("left out: the work was not sent back").first.wait_for()
    told.locator("pre", has_text="[title of item 1]").wait_for()
    told.locator("label").get_by_text("last", exact=True).click()
    told.locator("pre", has_text="[title of item 5]").wait_for()
    told.locator("label").get_by_text("sent back", exact=True).click()
    told.locator("summary", has_text="Why it came back").click()
    told.locator("pre", has_text="The work was not satisfactory:").wait_for()
    assert violations(lab, "what an agent would be told") == []
    designer.press("Cast it")
    designer.panel.locator(".mnb-d-estimate", has_text="its cost is unknown").wait_for()

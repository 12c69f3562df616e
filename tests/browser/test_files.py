"""Test the Files tab of a panel, which shows the file changes of each step and can restore files."""

from __future__ import annotations

import pytest

from browser.lab import Lab
from browser.surface import Surface

pytestmark = pytest.mark.browser

CONFIG = {
    "files": "not ignored",
    "loadouts": {
        "Rain": {
            "sockets": {
                "Socket-1": {"materia": "Draft", "edges": [{"when": "always", "to": "Socket-2"}]},
                "Socket-2": {"materia": "Polish"},
            }
        }
    },
    "materia": {
        "Draft": {"tools": "coding", "prompt": "Write rain.md."},
        "Polish": {"tools": "coding", "prompt": "Polish rain.md."},
    },
}
AGENTS = f"""
import materia_nb
from pathlib import Path
wb = materia_nb.Workbench(".")
wb.load({CONFIG!r})
def draft(turn):
    Path(turn.project, "rain.md").write_text("Rain falls.\\nIt is <b>wet</b>.\\n")
    return "drafted"
def polish(turn):
    Path(turn.project, "rain.md").write_text("Rain falls.\\nIt is wet.\\nMostly down.\\n")
    Path(turn.project, "notes.md").write_text("done\\n")
    return "polished"
wb.agent("Draft", draft)
wb.agent("Polish", polish)
"""


def test_files_tab_shows_changes_and_restores_files(lab: Lab):
    lab.open(lab.notebook("%load_ext materia_nb", AGENTS, "%materia cast a page on rain"))
    lab.run_all()
    panel = Surface(lab, 2)
    panel.press("Run")
    panel.wait_for_text("complete")
    panel.tab("Files")
    panel.wait_for_text("notes.md, rain.md")
    lab.screenshot("files", cell=2)
    lab.screenshot("files", cell=2, dark=True)
    panel.tab("Timeline")
    panel.at.get_by_role("grid", name="steps").locator("[data-index='0']").click()
    panel.tab("Files")
    panel.wait_for_text("Going back restores 2 files to their contents after step 1")
    lab.screenshot("files-then", cell=2)
    panel.press("Go back with files")
    panel.wait_for_status("ready")
    panel.tab("Files")
    panel.wait_for_text("rain.md")

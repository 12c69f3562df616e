"""Example change: add the verb `rename-socket` for an existing operation of the designer."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import magics_helpers as m
from materia_nb import Workbench
from materia_nb.errors import MateriaError
from materia_nb.loadout import read_text
from materia_nb.magics.magic import next_words
from materia_nb.magics.registry import help_text

EDITS = {
    "magics/words.toml": ('"Loadouts and agents" = "load', '"Loadouts and agents" = "load rename-socket'),
    "magics/verbs/loadouts.py": (
        'method_verb(\n    "gallery",\n',
        '''@verb(
    "rename-socket",
    old={"completes": "socket"},
    example="%materia rename-socket Socket-1 Socket-9",
)
def rename_socket(call: Call, old: str, new: str) -> Any:
    """Give a socket of the chosen loadout another id, everywhere, and save it.

    Args:
        old: the id that it has
        new: the id that it is to have
    """
    design = call.bench.design(call.bench.loadouts.chosen)
    design.rename_socket(old, new)
    return Text(call.bench.loadouts.save(design))


method_verb(
    "gallery",
''',
    ),
}

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, closing(Workbench(folder, bundled=False)) as bench:
        path = Path(folder) / "ask.json"
        loadout, _, materia = m.ASK.partition("materia:\n")
        document = {"loadouts": {"Ask": read_text(loadout)}, "materia": read_text(materia)}
        path.write_text(json.dumps(document, indent=2), "utf-8")
        shell = m.new_shell(bench)
        m.line(shell, f"load {path}")
        m.line(shell, "use Ask")
        m.line(shell, "rename-socket Socket-2 Socket-9")
        written = path.read_text("utf-8")
        assert "Socket-2" not in written
        assert written.count("Socket-9") == 2, "the socket and the edge to it, in its file"
        with pytest.raises(MateriaError, match="Socket-7"):
            m.line(shell, "rename-socket Socket-7 Socket-8")
        assert "Give a socket of the chosen loadout another id" in str(help_text("rename-socket"))
        assert "rename-socket" in next_words(lambda: bench, [])
        offered = next_words(lambda: bench, ["rename-socket"])
        assert {"Socket-1", "Socket-9"} <= set(offered), offered
        m.end_shells()

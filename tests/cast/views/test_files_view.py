"""Test the view of the files that each step changed."""

from __future__ import annotations

import pytest

import cast_helpers as h
from materia_nb.cast import Cast
from materia_nb.cast.runner_factory import start_runner
from materia_nb.cast.views.compare_view import CompareView
from materia_nb.errors import MateriaError
from materia_nb.loadout.vocabulary import FILES_NOT_IGNORED


def start(project, document, agents, files="not ignored"):
    return Cast(start_runner(h.plan(project, document, files=files), "ship <b>it</b>", h.table(agents)))


@pytest.fixture
def cast(tmp_path):
    """Return a cast whose three steps write a file, extend it, and change nothing; a person changes the file in
    between.
    """
    (tmp_path / "a.py").write_text("old = 0\n")

    def agent(turn):
        path = turn.project / "a.py"
        if turn.visit == 1 and turn.socket_id != "Socket-3":
            path.write_text(f"{path.read_text()}{turn.socket_id[-1]} = '<b>'\n")
        return "x"

    cast = start(tmp_path, h.chain_config(3), agent)
    cast.step()
    (tmp_path / "a.py").write_text((tmp_path / "a.py").read_text() + "mine = 1\n")
    cast.run()
    return cast


def test_files_view_shows_the_changes_of_each_step(cast):
    assert [step.number for step in cast.files] == [1, 2]
    assert "a.py" in cast.files.as_text()
    assert "+2 = '<b>'" in cast.files.difference(2, "a.py")
    assert "+ 2 = &#x27;&lt;b&gt;&#x27;" in cast.files.as_html()
    assert "mine" not in cast.files.difference(1)
    assert "+mine" not in cast.files.difference(2)
    assert "'<b>'" not in cast.files.as_html()
    assert [(change.kind, change.added) for change in cast.files.changes(2)] == [("M", 1)]
    with pytest.raises(MateriaError, match="step 9"):
        cast.files.changes(9)


def test_step_table_counts_files(cast):
    table = cast.steps.table
    place = table.headers.index("files")
    assert [row[place] for row in table.rows] == ["1", "1", ""]


def test_files_view_without_snapshots_explains_how_to_enable_them(tmp_path):
    (tmp_path / "a").write_text("1\n")
    cast = start(tmp_path, h.chain_config(1), lambda _: "x", files="off")
    assert f"files={FILES_NOT_IGNORED!r}" in cast.files.as_text()


def test_comparison_lists_differing_files(cast):
    fork = cast.fork(1)
    fork.agents.set("*", lambda turn: (turn.project / "b.py").write_text("1") and "y")
    fork.run()
    said = CompareView(cast.now.compared_cast, fork.now.compared_cast).as_text()
    assert "files that differ between A and B" in said
    assert "b.py" in said


def test_exported_page_has_no_links_to_the_files_of_a_fork(cast, tmp_path):
    fork = cast.fork(1)
    page = fork.export.page(tmp_path / "page.html").read_text()
    assert ">Files<" in page
    assert "a.py" in page
    assert "files/a.py" not in page

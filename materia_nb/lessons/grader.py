"""How nbgrader gives the marks of an assignment: answers are read, and nothing of what was handed in is run.

The ``nbgrader_config.py`` of a course puts :class:`Marks` in the place in which nbgrader would run a student's notebook.
"""

from __future__ import annotations

from typing import Any

from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from materia_nb.lessons.assignments import MarkedAnswer, marks

_PREFIX = "test-"


class Marks(NbGraderPreprocessor):  # type: ignore[misc] # nbgrader has no types
    """Write under each marked cell whether its answer is right: an error is what nbgrader counts as no points."""

    def preprocess(self, nb: Any, resources: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Mark a notebook; see nbconvert's ``Preprocessor``."""
        course = resources["nbgrader"]
        found = {one.question: one for one in marks(course["assignment"], course["student"], nb)}
        for cell in nb.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if grade_id.startswith(_PREFIX) and cell.metadata.nbgrader.grade:
                cell.outputs = [_output(found.get(grade_id.removeprefix(_PREFIX)))]
        return nb, resources


_output_of: Any = NotebookNode


def _output(one: MarkedAnswer | None) -> Any:
    if one is not None and one.points:
        return _output_of(output_type="stream", name="stdout", text=f"{one.told}\n")
    reason = "There is no such question." if one is None else one.told
    return _output_of(output_type="error", ename="NotRight", evalue=reason, traceback=[reason])

"""MIME bundles for notebooks: what IPython is given to show, made so that showing never raises."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from materia_nb.display.escape import plain
from materia_nb.jsonvalue import JSON


def bundle(
    text: str,
    *,
    svg: str | None = None,
    html: str | None = None,
    json: JSON = None,
    mermaid: str | None = None,
) -> dict[str, Any]:
    """Put the forms of one thing together; ``text`` is for terminals and for comparing notebooks.

    Mermaid beside SVG makes JupyterLab write an SVG of its own into the notebook, so
    only one of them should be given.
    """
    forms = {
        "text/plain": text,
        "image/svg+xml": svg,
        "text/html": html,
        "application/json": json,
        "text/vnd.mermaid": mermaid,
    }
    return {kind: content for kind, content in forms.items() if content is not None}


class Shown:
    """Something that a notebook shows. A subclass says how in :meth:`content`."""

    def content(self) -> dict[str, Any]:
        """Return the MIME bundle; an error here is shown as text instead."""
        return bundle(plain(repr(self)))

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, Any]:
        try:
            found = self.content()
        except Exception as error:  # noqa: BLE001 - a repr that raises hides the cell's own result
            what = plain(f"{type(self).__name__} cannot be shown: {type(error).__name__}: {error}")
            found = {"text/plain": what}
        return {
            kind: content
            for kind, content in found.items()
            if (include is None or kind in include) and (exclude is None or kind not in exclude)
        }

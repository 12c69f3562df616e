"""How the files of a run directory are named (R29). Names are relative to it, with ``/``."""

from __future__ import annotations

from typing import Final

from materia_nb.engine.session import Session
from materia_nb.engine.state import Visit

_WORDS: Final = {
    "socket_refinement": "refinement",
    "socket_worked": "work",
    "socket_held": "held",
    "socket_continued": "continued",
}
"""What the artifact of an output is called that did not complete its socket, by its event; else ``refused``."""


def visit_name(visit: int, item_key: str | None) -> str:
    """``<visit>`` or ``<visit>-<itemKey>``, as output artifacts are named."""
    return str(visit) if item_key is None else f"{visit}-{item_key}"


def branch_suffix(branch: int) -> str:
    """What is put behind names once a cast was taken back, so that nothing of an abandoned branch is lost."""
    return f".branch-{branch}" if branch else ""


def output_name(socket: str, visit: int, item_key: str | None, suffix: str = ".md") -> str:
    """Where the output of a visit stands."""
    return f"sockets/{socket}/{visit_name(visit, item_key)}{suffix}"


def context_name(socket: str, visit: int, item_key: str | None, branch: int = 0) -> str:
    """Where the prompt of a visit stands."""
    middle = f"{socket}-{visit}" if item_key is None else f"{socket}-{item_key}-{visit}"
    return f"contexts/{middle}{branch_suffix(branch)}.md"


def name_of_output(session: Session, visit: Visit, kind: str) -> str:
    """Return where the output belongs that an event of type ``kind`` is about to tell."""
    branch = branch_suffix(len(session.abandoned))
    key = visit.item.key if visit.item else None
    if kind == "socket_complete":
        return output_name(visit.socket, visit.visit, key, f"{branch}.md")
    # Numbered by the turns of the visit, so that no recast or revival writes over an earlier one.
    number = len(session.steps[-1].turns) + 1
    return output_name(visit.socket, visit.visit, key, f"{branch}.{_WORDS.get(kind, 'refused')}-{number}.md")


def name_of_correction(session: Session) -> str:
    """Return where a person's correction of the latest step belongs."""
    step = session.steps[-1]
    suffix = f"{branch_suffix(step.branch)}.corrected-{len(step.turns) + 1}.md"
    return output_name(step.socket, step.visit, step.item_key, suffix)

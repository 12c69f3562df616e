"""Models of materia: agents and utilities."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Tag

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import as_object, materia_kind
from materia_nb.loadout.model_base import Model, known


class _Materia(Model):
    """What agents and utilities share."""

    type: str | None = known(
        "`agent` or `utility`. Left out: a utility if it has a command or script, else an agent.",
        "agent or utility",
        "R26",
    )
    label: JSON = known("A name for people; left out, its id.", "text")
    description: JSON = known("What it is for.", "text")
    group: JSON = known(
        "Under which heading the palette of the designer lists it; left out, `Utility` for a utility.", "text"
    )
    color: JSON = known(
        "Its colour in the pictures: `#rgb`, `#rrggbb`, or a name such as `teal`; left out, that of its kind.",
        "colour",
    )
    generator: bool | None = known(
        "Whether it produces work items. Its output is then json with `workItems`.",
        "true or false",
        "R4",
        "R9",
    )
    lock_state: JSON = known("Kept for the reference's editor.", "locked or unlocked")
    catalog_origin: JSON = known("Kept for the reference's editor.", "object")
    parallel: JSON = known(
        "Whether a generator hands its items to streams that run side by side. They are not run here: a loadout that "
        "places such a materia is not cast (`parallel-generation`).",
        "true or false",
    )
    parallel_safe: JSON = known("Kept: whether it may work in a stream beside others.", "true or false")
    parallel_planner: JSON = known("An older name of `parallel`.", "true or false")


class AgentMateria(_Materia):
    """A materia that a model, a person or a function answers for."""

    prompt: str | None = known(
        "What it is asked to do, with `{{...}}` variables. Required.", "text", "R26", "R31"
    )
    tools: JSON = known(
        "Which tools it may use: `none`, `readOnly`, `coding`, a list of names, or "
        '`{"type": "custom", "tools": [...]}`. Required.',
        "scope or list of names",
        "R26",
    )
    model: str | None = known("Which model answers; left out, the default of its agent.", "text", "R26")
    thinking: str | None = known("How long the model may think, in the words of its agent.", "text")
    multi_turn: bool | None = known(
        "Whether a person refines drafts before the final answer.", "true or false", "R26"
    )
    parse: str | None = known(
        "How its output is read.", "json or text", "R4", ignored="write it on the socket"
    )


class Script(Model):
    """A script that is shipped with this package."""

    kind: str | None = known("Always `shippedUtility`. Required.", "shippedUtility", "R25")
    name: str | None = known(
        "Its file name; a name in `.mjs` means the `.py` of that name. Required.", "file name", "R25"
    )
    runtime: JSON = known(
        "What ran it elsewhere.", "text", ignored="scripts run with the kernel's own Python"
    )


class UtilityMateria(_Materia):
    """A materia that is a process."""

    command: list[str] | None = known(
        "The program and its arguments. No shell is used. Either this or `script` is required.",
        "list of text",
        "R23",
        "R24",
    )
    script: Script | None = known("A shipped script in place of a command.", "object", "R25")
    params: dict[str, JSON] | None = known("Parameters, handed to the process on stdin.", "object", "R23")
    parse: str | None = known(
        "How its stdout is read: `json` or `text` (the default).", "json or text", "R4", "R6"
    )
    assign: dict[str, str] | None = known(
        "What is kept in the state, in order: dotted target -> source.", "object of sources", "R4", "R11"
    )
    timeout_ms: float | None = known("How long it may run; left out, 30000.", "milliseconds above 0", "R23")
    utility: JSON = known(
        "What is built into the reference engine.", "text", ignored="write command or script"
    )


def _kind(value: JSON) -> str:
    """Tell the two apart, as definitions and as models."""
    if isinstance(value, Model):
        return "utility" if isinstance(value, UtilityMateria) else "agent"
    return materia_kind(as_object(value))


AnyMateria = Annotated[
    Annotated[AgentMateria, Tag("agent")] | Annotated[UtilityMateria, Tag("utility")], Discriminator(_kind)
]

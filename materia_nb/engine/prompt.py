"""What an agent is told: what the cast is about, its own instructions, the item, the follow-up, what to return (R31, R32).

The layers are in this order and each has a name, so that a person can see where every line comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from materia_nb.engine.prompt_layers import CastLayer, cut, shown_to
from materia_nb.engine.state import FollowUp, Item, Visit
from materia_nb.errors import MateriaError, did_you_mean
from materia_nb.handoff.protocol import WORK_IS_OVER, Issue
from materia_nb.jsonvalue import JSON, pretty, without_points

LayerName: TypeAlias = Literal[
    "cast",
    "materia",
    "work item",
    "follow-up",
    "assignment",
    "multi-turn",
    "repair",
    "resume",
    "finalize",
    "return",
]
HEADINGS: Final[Mapping[LayerName, str]] = {
    "cast": "What the cast is about",
    "materia": "Instructions",
    "work item": "The work item",
    "follow-up": "Why it came back",
    "assignment": "What the protocol hands over",
    "multi-turn": "Working with a person",
    "repair": "What was wrong with the answer",
    "resume": "Going on",
    "finalize": "Handing over",
    "return": "What to return",
}
"""What people read above each layer; the names stay the keys by which a layer is changed."""
EXCERPT_CHARS: Final = 600
ISSUES_TOLD: Final = 40
ISSUE_CHARS: Final = 300


class Layer(NamedTuple):
    """One named part of a prompt: a text, or the cast layer or the item, which are written when they are read."""

    name: LayerName
    tells: str | CastLayer | Item

    @property
    def text(self) -> str:
        """What the agent reads."""
        if isinstance(self.tells, CastLayer):
            return self.tells.text
        return self.tells if isinstance(self.tells, str) else _item_text(self.tells)

    @property
    def brief(self) -> str:
        """The text, of the cast layer with less of the state and of the output before."""
        return self.tells.brief if isinstance(self.tells, CastLayer) else self.text

    @property
    def heading(self) -> str:
        """What people read above it."""
        return HEADINGS[self.name]


class Prompt:
    """What an agent is asked: named layers, in order. It is not changed once it is made."""

    __slots__ = ("_instruction", "_layers", "_reasons")

    def __init__(self, layers: tuple[Layer, ...], instruction: str, reasons: tuple[str, ...]) -> None:
        """Put a prompt together from its parts."""
        self._layers, self._instruction, self._reasons = layers, instruction, reasons

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its parts."""
        return self._layers

    @property
    def instruction(self) -> str:
        """The rendered prompt of the materia."""
        return self._instruction

    @property
    def reasons(self) -> tuple[str, ...]:
        """The follow-up reasons that it tells."""
        return self._reasons

    @property
    def begins(self) -> bool:
        """Whether it tells the whole task, so that whoever answers need not know what was said before."""
        return any(layer.name == "materia" for layer in self.layers)

    @property
    def text(self) -> str:
        """The layers as the agent reads them; one that a person emptied is left out."""
        return "\n\n".join(text for layer in self.layers if (text := layer.text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prompt):
            return NotImplemented
        return (self.instruction, self.layers, self.reasons) == (
            other.instruction,
            other.layers,
            other.reasons,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<prompt of {', '.join(layer.name for layer in self.layers)}>"


def work_prompt(
    instruction: str,
    wanted: str,
    visit: Visit,
    follow_up: tuple[FollowUp, ...],
    *,
    given: Mapping[str, JSON] | None = None,
    cast: CastLayer | None = None,
) -> Prompt:
    """Assemble the prompt of a first turn; ``given`` is the envelope that some protocols hand over before it."""
    item = visit.item
    layers = [Layer("cast", cast)] if cast is not None else []
    layers.append(Layer("materia", instruction))
    if item is not None:
        layers.append(Layer("work item", item))
    entries = shown_to(follow_up, visit.socket, item) if follow_up else ()
    if entries:
        layers.append(Layer("follow-up", _follow_up_text(entries)))
    if given:
        layers.append(Layer("assignment", f"What you were given:\n{pretty(without_points(dict(given)))}"))
    if visit.mode == "draft":
        layers.append(Layer("multi-turn", DRAFT_TEXT))
    elif wanted:
        layers.append(Layer("return", wanted))
    return Prompt(tuple(layers), instruction, tuple([entry.reason for entry in entries]) if entries else ())


def reworded(prompt: Prompt, name: str, text: str) -> Prompt:
    """Replace the text of one layer; an empty text leaves it out.

    Raises:
        MateriaError: the prompt has no such layer (``unknown_layer``).
    """
    names = [layer.name for layer in prompt.layers]
    if name not in names:
        raise MateriaError(
            f"This prompt has no layer {name!r}.",
            hint=did_you_mean(name, names) + f" (there are {', '.join(names)})",
            kind="unknown_layer",
        )
    layers = tuple(layer._replace(tells=text) if layer.name == name else layer for layer in prompt.layers)
    return Prompt(layers, text if name == "materia" else prompt.instruction, prompt.reasons)


DRAFT_TEXT: Final = (
    "Work this out together with the person: offer a draft in plain words. "
    "They may ask for changes; nothing is final until they say so."
)


def final_prompt(before: Prompt, wanted: str) -> Prompt:
    """Assemble the turn that asks for the result of a refined draft."""
    text = "The person is content. Now give the final result of this conversation."
    return _next(before, Layer("multi-turn", text), wanted)


def handoff_prompt(before: Prompt, wanted: str) -> Prompt:
    """Assemble the turn that asks for the handoff of work that is done."""
    return _next(before, Layer("finalize", WORK_IS_OVER), wanted)


def resume_prompt(before: Prompt, said: str, wanted: str) -> Prompt:
    """Assemble a turn that goes on with work that was interrupted, with what the agent is told now."""
    return _next(before, Layer("resume", said), wanted)


def repair_prompt(before: Prompt, wanted: str, issues: Sequence[Issue], output: str) -> Prompt:
    """Assemble a repair turn: what was wrong, an excerpt of at most 600 characters, what to return (R19)."""
    return _next(before, _repair_layer(issues, output), wanted)


def repair_again(first: Prompt, wanted: str, issues: Sequence[Issue], output: str) -> Prompt:
    """Assemble the repair turn of a revived cast: whoever answers it may not have seen the first turn."""
    before = [layer for layer in first.layers if layer.name != "return"]
    repair = _next(first, _repair_layer(issues, output), wanted)
    return Prompt((*before, *repair.layers), first.instruction, first.reasons)


def _next(before: Prompt, said: Layer, wanted: str) -> Prompt:
    """A later turn of a visit: what is said now, and what must be returned."""
    layers = (said, Layer("return", wanted)) if wanted else (said,)
    return Prompt(layers, before.instruction, before.reasons)


def _repair_layer(issues: Sequence[Issue], output: str) -> Layer:
    lines = ["That answer could not be used:"]
    lines += [
        "- " + cut(f"{issue.path}: {_coded(issue)}{issue.message} To mend it: {issue.fix}.", ISSUE_CHARS)
        for issue in issues[:ISSUES_TOLD]
    ]
    if len(issues) > ISSUES_TOLD:
        lines.append(f"- and {len(issues) - ISSUES_TOLD} more of this sort")
    excerpt = cut(output.strip(), EXCERPT_CHARS)
    if excerpt:
        lines += ["It began:" if excerpt.endswith("…") else "It was:", excerpt]
    lines.append("Give the whole answer again, corrected.")
    return Layer("repair", "\n".join(lines))


def _coded(issue: Issue) -> str:
    return f"{issue.code}: " if issue.code else ""


def _item_text(item: Item) -> str:
    value = item.value
    if isinstance(value, dict):
        title, context = value.get("title"), value.get("context")
        if isinstance(title, str) and isinstance(context, str):
            return f"The work item ({item.key}): {title}\n{context}"
    return f"The item ({item.key}):\n{value if isinstance(value, str) else pretty(without_points(value))}"


def _follow_up_text(entries: Sequence[FollowUp]) -> str:
    lines = ["This comes back to you because an earlier result was not satisfactory. Oldest reason first:"]
    for entry in entries:
        about = f" about {entry.item_label}" if entry.item_label else ""
        lines.append(f"- {entry.source} ({entry.label}){about}: {entry.reason}")
    return "\n".join(lines)

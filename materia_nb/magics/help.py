"""The help, made from the registry."""

from __future__ import annotations

from materia_nb.magics.registry import VERBS, Verb


def help_text(name: str | None = None) -> str:
    """Return the help of one verb, or the list of all verbs."""
    if name is not None:
        from materia_nb.magics.registry import find_verb

        return verb_help(find_verb(name))
    width = max((len(verb) for verb in VERBS), default=0)
    lines = ["Materia NB: load a loadout, cast it, look at every handoff.", ""]
    lines += [f"  {verb.name:<{width}}  {verb.summary}" for verb in VERBS.values()]
    lines += ["", "%materia help VERB says more about one. $name stands for the value of a variable."]
    return "\n".join(lines)


def verb_help(verb: Verb) -> str:
    """Return what one verb does, its usage, its arguments and an example."""
    lines = [verb.summary, "", f"  {verb.usage}"]
    if verb.cell == "may":
        lines.append(f"  %%materia {verb.name}   with the text in the cell")
    if verb.arguments:
        width = max(len(argument.name) for argument in verb.arguments)
        lines += ["", *(f"  {argument.name:<{width}}  {argument.help}" for argument in verb.arguments)]
    lines += ["", "For example:", *(f"  {line}" for line in verb.example.splitlines())]
    return "\n".join(lines)

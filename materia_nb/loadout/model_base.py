"""What all models of the config share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from materia_nb.jsonvalue import JSON


def known(
    description: str, shape: str, *rules: str, name: str | None = None, ignored: str | None = None
) -> Any:
    """Declare a field that may be left out.

    Args:
        description: what it does, in one or two sentences.
        shape: what its value looks like, for the documentation.
        rules: the R-numbers that it implements.
        name: how the config spells it, where that is no Python name in camel case.
        ignored: why it has no effect here, for fields that are accepted all the same.
    """
    facts: dict[str, JSON] = {"x-shape": shape, "x-rules": list(rules)}
    if ignored is not None:
        facts["x-ignored"] = ignored
    return Field(default=None, alias=name, description=description, json_schema_extra=facts)


class Model(BaseModel):
    """What all models share: unknown fields are kept (R28)."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True, frozen=True)

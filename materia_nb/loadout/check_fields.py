"""Checking an object of the config against its model: each error of pydantic becomes a problem with its path (R26)."""

from __future__ import annotations

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.fields import Fault, FieldRow, Model, row_named, step
from materia_nb.loadout.report import Findings, shown


def check_fields(
    findings: Findings, model: type[Model], raw: JSON, here: str = "", *, itself: str | None = None
) -> None:
    """Note what is wrong with the fields of an object, and of the objects inside it.

    ``here`` is the path in front of its fields, and ``itself`` its own, where that is another.
    """
    try:
        model.model_validate(raw)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            _note(findings, model, one, here, here if itself is None else itself)


def _note(findings: Findings, model: type[Model], error: ErrorDetails, here: str, itself: str) -> None:
    """Say an error in the words of the field that it is about, or of the model that an entry is not."""
    row: FieldRow | None = None
    whole_entry = True
    for part in error["loc"]:
        if row is not None and row.many and not whole_entry:
            here, whole_entry = row.entry(here, part), True
            continue
        model = model if row is None or row.part is None else row.part
        row, whole_entry, here = row_named(model, str(part)), False, step(here, str(part))
    if row is None or (whole_entry and row.part is not None):
        wanted = model if row is None or row.part is None else row.part
        wrong = f"this is {shown(error['input'])}, not {wanted.words}"
        findings.problem(wanted.code, here if row else itself, wrong, f"write {wanted.example}")
        return
    fault = error.get("ctx", {}).get("error")
    fault = fault if isinstance(fault, Fault) else Fault()
    what = fault.what or f"{here if whole_entry else row.field} is {shown(error['input'])}"
    if error["type"] == "missing":
        what = row.missing or f"{row.field} is missing"
    hint = fault.hint if fault.what or whole_entry else row.write or fault.hint
    findings.problem(row.code or model.code, here + fault.at, what, hint or _advice(row))


def _advice(row: FieldRow) -> str:
    if row.part is not None and not row.many:
        return f"write an object, such as {row.part.example}"
    return f"write {row.shape}" + ("" if row.required else ", or leave it out")

"""Problems of materia definitions (R25, R26)."""

from __future__ import annotations

from materia_nb.jsonvalue import JSON
from materia_nb.loadout.facts import (
    LANE_UTILITIES,
    TOOL_SCOPES,
    Object,
    as_list,
    is_number,
    is_object,
    is_text,
    materia_kind,
    replacement,
    script_file,
)
from materia_nb.loadout.report import INVALID_MATERIA, Findings, shown
from materia_nb.loadout.sources import check_assign


def check_materia(findings: Findings, name: str, raw: JSON) -> None:
    """Note what is wrong with the definition of the materia ``name``."""
    here = f"materia.{name}"
    if not is_object(raw):
        findings.problem(
            INVALID_MATERIA,
            here,
            f"materia {name!r} is {shown(raw)}, not an object",
            "write { ... } with its fields",
        )
        return
    kind = raw.get("type", "agent")
    if kind not in ("agent", "utility"):
        findings.problem(
            INVALID_MATERIA,
            f"{here}.type",
            f"materia {name!r} has the type {shown(kind)}",
            'write "agent" or "utility"',
        )
    if raw.get("parallel") is True and raw.get("generator") is not True:
        findings.problem(
            INVALID_MATERIA,
            f"{here}.parallel",
            f"materia {name!r} is parallel and no generator, so it has no items to hand to streams",
            'write "generator": true too, or remove parallel',
        )
    for flag in ("generator", "multiTurn", "parallel"):
        if flag in raw and not isinstance(raw[flag], bool):
            findings.problem(
                INVALID_MATERIA,
                f"{here}.{flag}",
                f"{flag} is {shown(raw[flag])}",
                "write true or false, without quotes",
            )
    if "parse" in raw and raw["parse"] not in ("json", "text"):
        findings.problem(
            INVALID_MATERIA, f"{here}.parse", f"parse is {shown(raw['parse'])}", 'write "json" or "text"'
        )
    if _is_ambiguous(raw):
        findings.problem(
            INVALID_MATERIA,
            name,  # the source that the conformance vectors give
            f"the materia {name!r} has both a prompt and something to run, and does not say which it is",
            'write "type": "agent" or "type": "utility"',
        )
        return
    if materia_kind(raw) == "utility":
        _check_utility(findings, here, name, raw)
    else:
        _check_agent(findings, here, name, raw)


def _is_ambiguous(raw: Object) -> bool:
    """Whether it could be an agent as well as a utility: no program may start for want of a field (R38)."""
    runs = raw.get("command") is not None or raw.get("script") is not None
    return raw.get("type") is None and raw.get("prompt") is not None and runs


def _check_agent(findings: Findings, here: str, name: str, raw: Object) -> None:
    if not is_text(raw.get("prompt")):
        wrong = f"is {shown(raw['prompt'])}" if "prompt" in raw else "is missing"
        findings.problem(
            INVALID_MATERIA,
            f"{here}.prompt",
            f"the prompt of the agent {name!r} {wrong}",
            'write what the agent is to do (or, if a process is meant, "type": "utility")',
        )
    _check_tools(findings, here, name, raw)
    for field in ("model", "thinking"):
        if field in raw and not isinstance(raw[field], str):
            findings.problem(
                INVALID_MATERIA,
                f"{here}.{field}",
                f"{field} is {shown(raw[field])}",
                "write a name in quotes",
            )


def _check_tools(findings: Findings, here: str, name: str, raw: Object) -> None:
    advice = 'write "none", "readOnly", "coding" or a list of tool names'
    if "tools" not in raw:
        findings.problem(
            INVALID_MATERIA, f"{here}.tools", f"the agent {name!r} does not say which tools it has", advice
        )
        return
    tools = raw["tools"]
    if isinstance(tools, str) and tools in TOOL_SCOPES:
        return
    if is_object(tools) and tools.get("type") == "custom":
        here, tools = f"{here}.tools", tools.get("tools")
    if isinstance(tools, list) and all(is_text(tool) for tool in tools):
        return
    if isinstance(tools, str):
        advice = f"{advice} ({findings.near(tools, TOOL_SCOPES)})"
    findings.problem(INVALID_MATERIA, f"{here}.tools", f"tools is {shown(tools)}", advice)


def _check_utility(findings: Findings, here: str, name: str, raw: Object) -> None:
    command, script = raw.get("command"), raw.get("script")
    if command is None and script is None:
        alias = raw.get("utility")
        findings.problem(
            INVALID_MATERIA,
            f"{here}.command" if alias is None else f"{here}.utility",
            f"the utility {name!r} has nothing to run"
            + ("" if alias is None else f": {shown(alias)} is built into another engine"),
            _instead(alias)
            or 'write "command": ["program", "argument", ...] or "script": {"kind": "shippedUtility", "name": "....py"}',
        )
    if command is not None:
        _check_command(findings, f"{here}.command", command)
    if script is not None:
        _check_script(findings, f"{here}.script", script)
    if "timeoutMs" in raw:
        timeout = raw["timeoutMs"]
        if not is_number(timeout) or timeout <= 0:
            findings.problem(
                INVALID_MATERIA,
                f"{here}.timeoutMs",
                f"timeoutMs is {shown(timeout)}",
                "write a number of milliseconds above 0, such as 30000",
            )
    if raw.get("params") is not None and not is_object(raw["params"]):
        findings.problem(
            INVALID_MATERIA, f"{here}.params", f"params is {shown(raw['params'])}", "write an object: { ... }"
        )
    check_assign(findings, INVALID_MATERIA, f"{here}.assign", raw.get("assign"))


def _instead(alias: JSON) -> str | None:
    """Say what to write in place of a utility that is built into the reference engine."""
    if alias in LANE_UTILITIES:
        return "it belongs to streams side by side, which are not run here: remove the materia"
    now = replacement(alias)
    return f"place the bundled materia {now} in its stead" if now else None


def _check_command(findings: Findings, here: str, command: JSON) -> None:
    if not isinstance(command, list) or not command:
        findings.problem(
            INVALID_MATERIA,
            here,
            f"command is {shown(command)}",
            'write a list of strings, such as ["python3", "script.py"]; no shell is used',
        )
        return
    for place, part in enumerate(as_list(command)):
        if not isinstance(part, str) or not part or (place == 0 and not part.strip()):
            findings.problem(
                INVALID_MATERIA,
                f"{here}[{place}]",
                f"part {place} of the command is {shown(part)}",
                "write each part as a string that is not empty",
            )
        elif "\0" in part:
            findings.problem(
                INVALID_MATERIA,
                f"{here}[{place}]",
                f"part {place} of the command holds a NUL character",
                "no program can be given one: remove it",
            )


def _check_script(findings: Findings, here: str, script: JSON) -> None:
    if not is_object(script):
        findings.problem(
            INVALID_MATERIA,
            here,
            f"script is {shown(script)}",
            'write {"kind": "shippedUtility", "name": "detect-vcs.py"}, or use command for a script of your own',
        )
        return
    if script.get("kind") != "shippedUtility":
        findings.problem(
            INVALID_MATERIA,
            f"{here}.kind",
            f"the kind of script is {shown(script.get('kind'))}",
            'write "shippedUtility", or use command for a script of your own',
        )
    name = script.get("name")
    if script_file(name) is None:
        findings.problem(
            INVALID_MATERIA,
            f"{here}.name",
            f"the name of the script is {shown(name)}",
            "write a plain file name that ends with .py, without a directory",
        )

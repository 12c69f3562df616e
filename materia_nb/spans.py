"""A journal as spans, the form in which tracing tools show what happened; as plain values, without OpenTelemetry.

A cast is a workflow, a visit of an agent's socket an agent that is invoked, a turn of it a chat, a tool call a tool
that is executed: names and attributes are those of the semantic conventions for generative AI, and ``materia.*`` where
these have none. What was asked and answered is left out unless it is asked for, as the conventions want it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from materia_nb.cast.runner import Runner
from materia_nb.engine import events as ev
from materia_nb.engine.conversation import ToolCall
from materia_nb.engine.events import from_json, to_json
from materia_nb.engine.evolve import begin_session, evolve
from materia_nb.engine.prompt import Prompt
from materia_nb.engine.rules import Rules
from materia_nb.engine.session import Session
from materia_nb.errors import MateriaError, scrubbed
from materia_nb.jsonvalue import JSON
from materia_nb.store.journal import JournalLine, read_journal
from materia_nb.store.rundir import RunDir

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

Attribute: TypeAlias = str | bool | int | float | tuple[str, ...]

_CONTENT_CHARS: Final = 20_000
"""How much of a text a span holds; the whole is in the run directory."""
_MESSAGE_CHARS: Final = 1_000
_UNTOLD: Final = frozenset(
    {"text", "patch", "inverse", "definition", "previous", "suggestion", "exactContent", "visits"}
)
"""Fields of what a person did that may hold what was asked or answered."""

_BY_PEOPLE: Final = (
    ev.RefinementMessage,
    ev.RefinementFinal,
    ev.HoldAnswered,
    ev.ApprovalAnswered,
    ev.HoldDecided,
    ev.BudgetSet,
    ev.Pinned,
    ev.Unpinned,
    ev.SuggestionKept,
    ev.StateEdited,
    ev.MateriaRedefined,
    ev.PromptEdited,
    ev.EditUndone,
    ev.SocketRecommitted,
    ev.ToolDecided,
    ev.ToolsAllowed,
    ev.Labelled,
    ev.CastBack,
    ev.CastRecast,
    ev.CastRevive,
    ev.TurnResent,
)
_TOLD: Final = (ev.BudgetWarning, ev.BudgetLimit, ev.EvidenceMissing, ev.MateriaTold)
_ASKED_ANEW: Final = (
    ev.RecoveryRetry,
    ev.RefinementMessage,
    ev.RefinementFinal,
    ev.HoldAnswered,
    ev.ApprovalAnswered,
    ev.ToolDecided,
    ev.TurnResent,
    ev.SocketWorked,
    ev.SocketContinued,
)
"""Events after which an agent is asked again, so that its turn begins with them."""


@dataclass(slots=True)
class Span:
    """One span: times in milliseconds since the epoch, ``parent`` its place in the list, ``error`` why it failed."""

    name: str
    start: int
    parent: int | None
    attributes: dict[str, Attribute]
    end: int = 0
    error: str | None = None
    events: list[tuple[str, int, dict[str, Attribute]]] = field(default_factory=list)


def spans_of(events: Iterable[ev.Event], rules: Rules, cast_id: str, *, content: bool = False) -> list[Span]:
    """Return the spans of a cast, the whole first and each behind its parent.

    Args:
        events: those of its journal, in order.
        rules: what it ran by.
        cast_id: its id.
        content: whether prompts, answers, and what tools were given and gave are told. Keys never are.
    """
    told = _Told(rules, cast_id, content=content)
    for event in events:
        told.take(event)
    return told.ended()


class _Told:
    def __init__(self, rules: Rules, cast_id: str, *, content: bool) -> None:
        self._rules, self._content = rules, content
        self._whole = Span(
            f"invoke_workflow {_cut(rules.graph.name, 100)}",
            0,
            None,
            {
                "gen_ai.operation.name": "invoke_workflow",
                "gen_ai.workflow.name": _cut(rules.graph.name, 200),
                "gen_ai.conversation.id": cast_id,
            },
        )
        self._spans = [self._whole]
        self._visit: int | None = None  # the place of the visit that is open
        self._about: Mapping[str, JSON] = {}
        self._asked = 0  # when the turn that waits began
        self._calls: dict[str, tuple[ToolCall, int]] = {}
        self._session: Session | None = None
        self._latest = 0
        self._said: Mapping[type[ev.Event], Callable[[Any], None]] = {
            ev.CastStart: self._begin,
            ev.SocketStart: lambda event: self._enter(event.about, event.visit, event.step, event.ts),
            ev.ToolCalled: self._called,
            ev.UtilityCommand: self._command,
            ev.CastEnd: self._end,
            ev.CastRecast: self._again,
            ev.CastRevive: self._again,
            ev.CastBack: lambda event: self._close(event.ts),
        }

    def take(self, event: ev.Event) -> None:
        self._latest = max(self._latest, event.ts)
        if isinstance(event, ev.Output):
            self._output(event)
        elif (said := self._said.get(type(event))) is not None:
            said(event)
        if isinstance(event, (*_BY_PEOPLE, *_TOLD)):
            self._tell(event)
        if isinstance(event, _ASKED_ANEW):
            self._asked = event.ts
        self._fold(event)

    def ended(self) -> list[Span]:
        self._close(self._latest)
        self._whole.end = self._latest
        return self._spans

    # -- the cast and its visits ------------------------------------------------------

    def _begin(self, event: ev.CastStart) -> None:
        self._whole.start = event.ts
        if event.forked_from:
            self._whole.attributes["materia.forked_from"] = str(event.forked_from.get("cast", ""))
        if self._content:
            self._whole.attributes["gen_ai.input.messages"] = _messages("user", event.request)

    def _enter(self, about: Mapping[str, JSON], visit: int | None, step: int | None, ts: int) -> None:
        self._close(ts)
        materia, label = str(about.get("materia", "")), _cut(str(about.get("materiaLabel", "")), 100)
        socket = self._rules.sockets.get(str(about.get("socket")))
        attributes: dict[str, Attribute] = {
            "materia.socket": str(about.get("socket", "")),
            "materia.id": materia,
        }
        if visit is not None:
            attributes["materia.visit"] = visit
        if step is not None:
            attributes["materia.step"] = step
        if (key := about.get("itemKey")) is not None:
            attributes["materia.item.key"] = str(key)
            if self._content:
                attributes["materia.item.label"] = _cut(str(about.get("itemLabel", "")), 200)
        utility = socket is not None and socket.socket.is_utility
        if not utility:
            attributes |= {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.id": materia,
                "gen_ai.agent.name": label,
            }
        self._spans.append(Span(f"{'utility' if utility else 'invoke_agent'} {label}", ts, 0, attributes))
        self._visit, self._about, self._asked = len(self._spans) - 1, about, ts

    def _again(self, event: ev.CastRecast | ev.CastRevive) -> None:
        """Begin another span for a visit that is done again."""
        self._whole.error = None
        self._whole.attributes.pop("error.type", None)
        if event.about.get("socket") is not None:
            self._enter(event.about, None, None, event.ts)

    def _close(self, ts: int) -> None:
        if self._visit is not None:
            self._tools(self._visit)
            self._spans[self._visit].end = ts
        self._visit = None

    def _command(self, event: ev.UtilityCommand) -> None:
        if self._visit is None:
            return
        attributes = self._spans[self._visit].attributes
        if event.code is not None:
            attributes["process.exit.code"] = event.code
        if event.timed_out:
            attributes["materia.timed_out"] = True

    # -- turns and tools ----------------------------------------------------------------

    def _output(self, event: ev.Output) -> None:
        place = self._visit
        if place is None:
            return
        visit = self._spans[place]
        socket = self._rules.sockets.get(visit.attributes["materia.socket"])  # type: ignore[arg-type]
        if socket is None or not socket.socket.is_utility:
            self._tools(self._turn(event, place))
        if isinstance(event, ev.SocketComplete):
            if event.next is not None:
                visit.attributes["materia.next"] = event.next
            self._close(event.ts)
        elif isinstance(event, ev.SocketRefused | ev.RecoveryExhausted):
            visit.error = "its output was refused"
            visit.attributes["error.type"] = "invalid_output"

    def _turn(self, event: ev.Output, parent: int) -> int:
        attributes = _model_attributes(event)
        model = attributes.get("gen_ai.request.model")
        name = "turn" if "gen_ai.operation.name" not in attributes else f"chat {model}" if model else "chat"
        if event.pinned is not None:
            attributes["materia.pinned"] = _cut(event.pinned, 200)
        span = Span(name, min(self._asked, event.ts), parent, attributes, event.ts)
        if isinstance(event, ev.RecoveryStart | ev.RecoveryExhausted):
            span.error = _cut(event.error or "the output was refused")
            attributes["error.type"] = "invalid_output"
        if self._content:
            if asked := self._prompt():
                attributes["gen_ai.input.messages"] = _messages("user", asked)
            if event.text is not None:
                attributes["gen_ai.output.messages"] = _messages("assistant", event.text, event.thinking)
        self._spans.append(span)
        self._asked = event.ts
        return len(self._spans) - 1

    def _called(self, event: ev.ToolCalled) -> None:
        self._calls[event.call.id] = (event.call, event.ts)

    def _tools(self, parent: int) -> None:
        """Add the tool calls of the turn that ended."""
        for call, ts in self._calls.values():
            attributes: dict[str, Attribute] = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": _cut(call.tool, 100),
                "gen_ai.tool.call.id": _cut(call.id, 100),
                "gen_ai.tool.type": "function",
            }
            if call.decided is not None:
                attributes["materia.tool.decided"] = call.decided
            if self._content:
                attributes["gen_ai.tool.call.arguments"] = _cut(_written(dict(call.args)), _CONTENT_CHARS)
                if call.result is not None:
                    attributes["gen_ai.tool.call.result"] = _cut(call.result, _CONTENT_CHARS)
            start = ts - round(call.seconds * 1000)
            span = Span(f"execute_tool {_cut(call.tool, 100)}", start, parent, attributes, ts)
            if not call.ok:
                span.error = attributes["error.type"] = "denied" if call.decided == "denied" else "tool_error"
            self._spans.append(span)
        self._calls = {}

    # -- how it ended, and what people did ------------------------------------------------

    def _end(self, event: ev.CastEnd) -> None:
        visit = None if self._visit is None else self._spans[self._visit]
        if event.ok:
            self._whole.attributes["materia.status"] = "complete"
        else:
            kind, why = event.kind or "failed", _cut(event.error or event.kind or "it failed")
            self._whole.attributes["materia.status"] = "aborted" if kind == "aborted" else "failed"
            for span in (self._whole, visit):
                if span is not None:
                    span.error, span.attributes["error.type"] = why, kind
        codes = [str(one.get("code")) for one in event.warnings or () if one.get("code")]
        if codes:
            self._whole.attributes["materia.warnings"] = tuple(dict.fromkeys(codes))
        self._close(event.ts)

    def _tell(self, event: ev.Event) -> None:
        """Tell what a person did, or an output said beside its handoff, where it happened."""
        span = self._whole if self._visit is None else self._spans[self._visit]
        if isinstance(event, ev.Labelled) and event.verdict:
            said: dict[str, Attribute] = {
                "gen_ai.evaluation.name": "verdict",
                "gen_ai.evaluation.score.label": event.verdict,
                "gen_ai.evaluation.explanation": _cut(event.note),
                "materia.step": event.step,
                "materia.by": _cut(event.by, 100),
            }
            self._whole.events.append(("gen_ai.evaluation.result", event.ts, said))
            return
        data = {key: value for key, value in to_json(event).items() if key not in ev.ABOUT}
        if not self._content:
            data = {key: value for key, value in data.items() if key not in _UNTOLD}
        attributes = {f"materia.{key}": _value(value) for key, value in data.items() if value is not None}
        span.events.append((f"materia.{event.type}", event.ts, attributes))

    # -- what was asked -------------------------------------------------------------------

    def _fold(self, event: ev.Event) -> None:
        """Follow the cast, where what its agents were asked is to be told: the journal keeps no prompts."""
        if not self._content:
            return
        try:
            if isinstance(event, ev.CastStart):
                self._session = begin_session(self._rules, event)
            elif self._session is not None:
                self._session = evolve(self._rules, self._session, event)
        except MateriaError:  # another engine's journal, or an output that is in a file
            self._session = None

    def _prompt(self) -> str:
        asked = "" if self._session is None else self._session.asked
        return asked.text if isinstance(asked, Prompt) else asked


def _model_attributes(event: ev.Output) -> dict[str, Attribute]:
    """Tell which model answered and what it used; nothing where a person or a function did."""
    found: dict[str, Attribute] = {"materia.output": event.type}
    model, provider, usage = event.meta.get("model"), event.meta.get("provider"), event.usage
    if model or (usage is not None and usage.tokens is not None):
        found["gen_ai.operation.name"] = "chat"
    if model:
        found["gen_ai.request.model"] = _cut(str(model), 100)
    if provider:
        found["gen_ai.provider.name"] = _cut(str(provider), 100)
    if usage is not None:
        told = {
            "gen_ai.usage.input_tokens": usage.input,
            "gen_ai.usage.output_tokens": usage.output,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            "materia.usage.reasoning_tokens": usage.reasoning,
            "materia.usage.cost": usage.cost,
        }
        found |= {name: value for name, value in told.items() if value is not None}
    return found


def _messages(role: str, text: str, thinking: str | None = None) -> str:
    parts = [{"type": "reasoning", "content": _cut(thinking, _CONTENT_CHARS)}] if thinking else []
    parts.append({"type": "text", "content": _cut(text, _CONTENT_CHARS)})
    return json.dumps([{"role": role, "parts": parts}], ensure_ascii=False)


def _value(value: JSON) -> Attribute:
    if isinstance(value, bool | int | float):
        return value
    return _cut(value if isinstance(value, str) else _written(value))


def _written(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, most: int = _MESSAGE_CHARS) -> str:
    text = scrubbed(text).encode("utf-8", "replace").decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"


# -- sending them ------------------------------------------------------------------------------


def send(
    runner: Runner,
    exporter: SpanExporter | None,
    endpoint: str | None,
    headers: Mapping[str, str] | None,
    *,
    content: bool,
) -> int:
    """Send the journal of a cast; see ``cast.export.otel``."""
    _needs("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SpanExportResult

    cast = runner.snapshot()
    lines = read_journal(cast.run_dir / "events.jsonl").lines
    known = [event for line in lines if (event := _event(line, runner.files)) is not None]
    spans = _made(spans_of(known, cast.rules, cast.id, content=content), _identity(cast.id, lines))
    sender = _otlp(endpoint, headers) if exporter is None else exporter
    try:
        for start in range(0, len(spans), _BATCH):
            if sender.export(spans[start : start + _BATCH]) is not SpanExportResult.SUCCESS:
                raise MateriaError(
                    f"The spans were not taken: {start} of {len(spans)} were sent.",
                    where=endpoint,
                    hint="is a collector there? OTLP over HTTP is sent to http://localhost:4318/v1/traces by default",
                    kind="not_exported",
                )
    finally:
        if exporter is None:
            sender.shutdown()
    return len(spans)


SERVICE: Final = "materia_nb"
_BATCH: Final = 256  # spans in one request


def _event(line: JournalLine, files: RunDir) -> ev.Event | None:
    """Read an event; the text of a long output stands in its artifact (R43)."""
    try:
        event = from_json(line.type, line.data, line.ts, lenient=True)
        if isinstance(event, ev.Output | ev.SocketRecommitted) and event.text is None and event.artifact:
            return event.replace(text=files.text_of(event.artifact))
    except MateriaError:
        return None  # it is of another engine and lacks a field, or its artifact is gone
    return event


def _identity(cast_id: str, lines: Sequence[JournalLine]) -> bytes:
    """Return what tells a cast from all others: the same each time that it is sent, so that it is the same trace."""
    begun = next((line for line in lines if line.type == "cast_start"), None)
    place = begun.data.get("place") if begun else None
    return sha256(repr((cast_id, begun.ts if begun else 0, place)).encode()).digest()


def _otlp(endpoint: str | None, headers: Mapping[str, str] | None) -> SpanExporter:
    _needs("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=endpoint, headers=None if headers is None else dict(headers))


def _needs(module: str) -> None:
    from importlib import import_module

    try:
        import_module(module)
    except ImportError as error:
        raise MateriaError(
            "Sending spans needs OpenTelemetry, which is not installed.",
            hint='pip install "materia-nb[otel]"',
            kind="no_otel",
        ) from error


def _made(told: Sequence[Span], identity: bytes) -> list[ReadableSpan]:
    """Return the spans as OpenTelemetry has them, with ids that depend on the cast and their place alone."""
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    release = _release()
    scope = InstrumentationScope(SERVICE, release)
    resource = Resource.create({SERVICE_NAME: SERVICE, SERVICE_VERSION: release})
    trace = int.from_bytes(identity[:16], "big") or 1

    def context_of(place: int) -> SpanContext:
        digest = sha256(identity + (place + 1).to_bytes(8, "big")).digest()
        return SpanContext(
            trace, int.from_bytes(digest[:8], "big") or 1, False, TraceFlags(TraceFlags.SAMPLED)
        )

    return [
        ReadableSpan(
            one.name,
            context_of(place),
            parent=None if one.parent is None else context_of(one.parent),
            resource=resource,
            attributes=one.attributes,
            events=[Event(name, attributes, _nanoseconds(ts)) for name, ts, attributes in one.events],
            status=Status() if one.error is None else Status(StatusCode.ERROR, one.error),
            start_time=_nanoseconds(one.start),
            end_time=_nanoseconds(max(one.start, one.end)),
            instrumentation_scope=scope,
        )
        for place, one in enumerate(told)
    ]


def _release() -> str:
    try:
        return version("materia-nb")
    except PackageNotFoundError:  # it runs from a folder that is not installed
        return ""


def _nanoseconds(milliseconds: int) -> int:
    return milliseconds * 1_000_000

"""Sending a cast to the tools that teams look at traces with: its journal as OpenTelemetry spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

from materia_nb.engine import events as ev
from materia_nb.engine.event_json import from_json
from materia_nb.errors import MateriaError
from materia_nb.insight.spans import Span, spans_of
from materia_nb.store.journal import Line, read_journal
from materia_nb.store.rundir import RunDir

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from materia_nb.cast.snapshot import Snapshot

NAME: Final = "materia_nb"
_BATCH: Final = 256  # spans in one request


def export(
    cast: Snapshot,
    exporter: SpanExporter | None = None,
    *,
    endpoint: str | None = None,
    headers: Mapping[str, str] | None = None,
    content: bool = False,
) -> int:
    """Send the spans of a cast; see ``Cast.export.otel``."""
    _needs("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SpanExportResult

    lines = read_journal(cast.run_dir / "events.jsonl").lines
    files = RunDir(cast.run_dir)
    known = [event for line in lines if (event := _event(line, files)) is not None]
    spans = _made(spans_of(known, cast.rules, cast.id, content=content), _identity(cast.id, lines))
    own = exporter is None
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
        if own:
            sender.shutdown()
    return len(spans)


def _event(line: Line, files: RunDir) -> ev.Event | None:
    """Read an event; the text of a long output stands in its artifact (R43)."""
    try:
        event = from_json(line.type, line.data, line.ts, lenient=True)
        if isinstance(event, ev.Output | ev.SocketRecommitted) and event.text is None and event.artifact:
            return replace(event, text=files.read_text(event.artifact))
    except MateriaError:
        return None  # it is of another engine and lacks a field, or its artifact is gone
    return event


def _identity(cast_id: str, lines: Sequence[Line]) -> bytes:
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
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    from opentelemetry.trace import Status, StatusCode, set_span_in_context

    release = _release()

    class Ids(IdGenerator):
        def __init__(self) -> None:
            self.given = 0

        def generate_trace_id(self) -> int:
            return int.from_bytes(identity[:16], "big") or 1

        def generate_span_id(self) -> int:
            self.given += 1
            return int.from_bytes(sha256(identity + self.given.to_bytes(8, "big")).digest()[:8], "big") or 1

    class Kept(SpanProcessor):
        def __init__(self) -> None:
            self.spans: list[ReadableSpan] = []

        def on_end(self, span: ReadableSpan) -> None:
            self.spans.append(span)

    kept = Kept()
    resource = Resource.create({SERVICE_NAME: NAME, SERVICE_VERSION: release})
    provider = TracerProvider(resource=resource, id_generator=Ids(), sampler=ALWAYS_ON)
    provider.add_span_processor(kept)
    tracer = provider.get_tracer(NAME, release)
    begun: list[Any] = []
    for one in told:
        parent = None if one.parent is None else set_span_in_context(begun[one.parent])
        span = tracer.start_span(
            one.name, parent or _nothing(), attributes=one.attributes, start_time=_nanoseconds(one.start)
        )
        for name, ts, attributes in one.events:
            span.add_event(name, attributes, _nanoseconds(ts))
        if one.error is not None:
            span.set_status(Status(StatusCode.ERROR, one.error))
        begun.append(span)
    for one, span in zip(told, begun, strict=True):
        span.end(_nanoseconds(max(one.start, one.end)))
    return kept.spans


def _release() -> str:
    try:
        return version("materia-nb")
    except PackageNotFoundError:  # it runs from a folder that is not installed
        return ""


def _nothing() -> Any:
    """Return a context without a span, so that one which happens to be open in the kernel is no parent."""
    from opentelemetry.context import Context

    return Context()


def _nanoseconds(milliseconds: int) -> int:
    return milliseconds * 1_000_000

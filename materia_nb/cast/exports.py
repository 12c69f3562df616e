"""A cast as something that others read: a page, a recording, a test, a trace: ``cast.export``; and recordings read again.

A recording holds no paths, no keys and nothing of the machine it was made on, so that a
notebook can ship one beside it and run the same way without a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from materia_nb.agents.interface import Reply, TurnKind, Usage
from materia_nb.agents.notebook_agents import RecordedAgent, RecordedTurn
from materia_nb.cast.cases import case_of, relative_to, write_case, written
from materia_nb.cast.runner import Runner
from materia_nb.engine import events as ev
from materia_nb.engine.conversation import call_from
from materia_nb.engine.event_json import from_json
from materia_nb.errors import MateriaError
from materia_nb.insight.spans import Span, spans_of
from materia_nb.jsonvalue import JSON
from materia_nb.loadout import read_config
from materia_nb.store.files import OwnFormat
from materia_nb.store.journal import Line, read_journal
from materia_nb.store.rundir import RunDir, write_prompt

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from materia_nb.cast.snapshot import Snapshot


class Exports:
    """Writes one cast for others, or sends it to them."""

    def __init__(self, runner: Runner) -> None:
        """Stand for the cast that ``runner`` runs."""
        self._runner = runner

    def __repr__(self) -> str:
        return f"<exports of {self._runner.files.path.name}: page, recording, test, otel ...>"

    def page(self, path: str | Path) -> Path:
        """Write the cast as one HTML page that needs nothing else, and return its path."""
        from materia_nb.cast.views.step_views import cast_page_html

        return written(Path(path), "page", cast_page_html(self._runner.snapshot()))

    def recording(self, path: str | Path) -> Path:
        """Write what was answered as a file that another cast can be answered from, and return its path."""
        text = json.dumps(recording_of(self._runner.snapshot()), ensure_ascii=False, indent=1) + "\n"
        return written(Path(path), "recording", text)

    def contexts(self) -> Path:
        """Write what each turn was told, a file a visit, into ``contexts/`` of the run directory; returns that folder.

        A cast whose config says ``artifacts: "all"`` writes them by itself (R63).

        Raises:
            MateriaError: the cast was opened to be looked at (``read_only``), or the disk refuses.
        """
        runner = self._runner
        with runner.lock():
            runner.begin()
            for step in runner.session.steps:
                write_prompt(runner.files, runner.rules, step)
        return runner.files.path / "contexts"

    def test(self, path: str | Path, *, follows: str | Path | None = None) -> Path:
        """Write the cast as a case that ``pytest`` runs, and return its path: ``NAME.materia-case.json``.

        It sends the recorded answers through the loadout and asks for the same route, end and state. Nothing
        runs. The ending is put behind a name that lacks it.

        Args:
            path: the file.
            follows: the config file whose loadout of that name is tested, as it is then; the loadout of this
                cast, kept in the case, if left out.

        Raises:
            MateriaError: its answers alone do not lead where it went (``no_test``), or it is shown as recorded.
        """
        self._runner.snapshot().needs_castable()
        target = Path(path).absolute()
        document = read_config(self._runner.files.path / "config.resolved.json")
        case = case_of(
            self._runner.rules, self._runner.session, document, relative_to(target.parent, follows)
        )
        return write_case(target, case)

    def otel(
        self,
        exporter: SpanExporter | None = None,
        *,
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: bool = False,
    ) -> int:
        """Send the journal as OpenTelemetry spans, so that the cast can be looked at in a tracing tool.

        The whole cast is one trace, the same one each time. Returns how many spans were sent::

            cast.export.otel(endpoint="http://localhost:4318/v1/traces")

        Args:
            exporter: any exporter of OpenTelemetry's SDK; OTLP over HTTP if left out.
            endpoint: where to; ``OTEL_EXPORTER_OTLP_ENDPOINT`` and the like count if left out.
            headers: sent along, such as a key of the collector.
            content: whether prompts, answers, and what tools were given and gave are told too. Keys never are.

        Raises:
            MateriaError: OpenTelemetry is not installed (``no_otel``), or nobody took the spans (``not_exported``).
        """
        if self._runner.journal is not None:
            with self._runner.lock():
                self._runner.begin()  # what waits to be written is written
        _needs("opentelemetry.sdk.trace")
        from opentelemetry.sdk.trace.export import SpanExportResult

        cast = self._runner.snapshot()
        lines = read_journal(cast.run_dir / "events.jsonl").lines
        known = [event for line in lines if (event := _event(line, self._runner.files)) is not None]
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


FORMAT: Final = "materia-nb recording 1"
_RECORDING: Final = OwnFormat("recording", FORMAT, "export recording FILE writes one of the current cast")
_META: Final = ("model", "provider", "finish")
"""What is recorded of the things that an agent gives beside an answer; others may hold paths or keys."""
_KINDS: Final[Mapping[str, TurnKind]] = {
    "work": "work",
    "repair": "repair",
    "draft": "refine",
    "final": "finalize",
    "resume": "resume",
}
"""What an agent is asked for in a turn of a recorded mode; the first draft of a visit is asked for as work."""


def recording_of(cast: Snapshot) -> dict[str, JSON]:
    """Return what agents and people answered in a cast, in order, as JSON.

    Utilities are not part of it: they run again. Of a cast that was taken back, only the steps
    that led to the present count, and of a visit that was recast, only its turns since; what the
    earlier ones used up is kept with the first of these.
    """
    turns: list[JSON] = []
    for step in cast.steps:
        if cast.rules.sockets[step.socket].socket.is_utility:
            continue
        earlier = [used for turn in step.turns[: step.left] for used in (*turn.spent, turn.usage) if used]
        for turn in step.turns[step.left :]:
            if turn.mode == "correction":
                continue
            entry: dict[str, JSON] = {
                "socket": step.socket,
                "visit": step.visit,
                "kind": turn.mode,
                "text": turn.text,
            }
            if turn.usage is not None:
                entry["usage"] = turn.usage.as_json()
            if spent := [*earlier, *turn.spent]:
                entry["spent"] = [used.as_json() for used in spent]
                earlier = []
            entry |= {name: said for name in ("thinking", "cut") if (said := getattr(turn, name))}
            if turn.calls:
                entry["calls"] = [call.as_json() for call in turn.calls]
            if meta := {name: turn.meta[name] for name in _META if name in turn.meta}:
                entry["meta"] = meta
            turns.append(entry)
    return {"format": FORMAT, "loadout": cast.graph.name, "request": cast.request, "turns": turns}


def read_recording(path: Path) -> RecordedAgent:
    """Make an agent of a recording's file.

    Raises:
        MateriaError: it cannot be read (``no_recording``), or is none (``bad_recording``).
    """
    return agent_of(_RECORDING.read(path), path.name, path)


def agent_of(recording: JSON, name: str, where: Path | str = "") -> RecordedAgent:
    """Make an agent that answers as a recording says; ``name`` is what it is called where it is shown."""
    turns = _RECORDING.checked(recording, where).get("turns")
    found: dict[tuple[str, int], list[RecordedTurn]] = {}
    for number, turn in enumerate(turns if isinstance(turns, list) else [None]):
        if not isinstance(turn, dict) or not isinstance(turn.get("text"), str):
            raise _RECORDING.bad(where, f"turns[{number}] has no text")
        socket, visit = turn.get("socket"), turn.get("visit")
        if not isinstance(socket, str) or not isinstance(visit, int):
            raise _RECORDING.bad(
                where, f"turns[{number}] does not say which visit of which socket it answers"
            )
        so_far = found.setdefault((socket, visit), [])
        so_far.append(_turn(turn, first=not so_far))
    return RecordedAgent(found, name=name)


def _turn(turn: Mapping[str, Any], *, first: bool) -> RecordedTurn:
    mode, usage, meta = turn.get("kind"), turn.get("usage"), turn.get("meta")
    kind: TurnKind | None = "work" if first and mode == "draft" else _KINDS.get(str(mode))
    told = {**(meta if isinstance(meta, dict) else {}), "recorded": True}
    calls = tuple(filter(None, map(call_from, _list(turn.get("calls")))))
    spent = tuple(filter(None, map(_usage, _list(turn.get("spent")))))
    said = {name: turn[name] for name in ("thinking", "cut") if isinstance(turn.get(name), str)}
    return RecordedTurn(Reply(str(turn["text"]), _usage(usage), told, **said), calls, kind, spent)


def _usage(given: object) -> Usage | None:
    if not isinstance(given, dict) or not given:
        return None
    return Usage(**{key: given[key] for key in ("input", "output", "cost") if key in given})


def _list(given: object) -> list[Any]:
    return given if isinstance(given, list) else []


NAME: Final = "materia_nb"
_BATCH: Final = 256  # spans in one request


def _event(line: Line, files: RunDir) -> ev.Event | None:
    """Read an event; the text of a long output stands in its artifact (R43)."""
    try:
        event = from_json(line.type, line.data, line.ts, lenient=True)
        if isinstance(event, ev.Output | ev.SocketRecommitted) and event.text is None and event.artifact:
            return replace(event, text=files.text_of(event.artifact))
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

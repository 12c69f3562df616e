"""A cast as OpenTelemetry spans: in memory, and over HTTP to a collector on this machine."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import cast_helpers as h
from magics_helpers import line, text
from materia_nb.agents.interface import Called, Reply, ToolCall, Usage
from materia_nb.cast import open_cast
from materia_nb.errors import MateriaError

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

KEY = "sk-very-secret-0001"


class Model:
    """Answers as a model would: with a tool call, usage, and its name."""

    name = "model"

    def __init__(self, answers):
        self.answers = {name: list(texts) for name, texts in answers.items()}

    def answer(self, turn):
        turn.tell(Called(ToolCall(id="c1", tool="read", args={"path": KEY}, result="text", seconds=0.25)))
        said = self.answers[turn.materia_id].pop(0)
        return Reply(said, Usage(10, 5, 0.01), {"model": "small", "provider": "openai"})


PLAN = json.dumps({"workItems": h.items("a")})


@pytest.fixture
def cast(tmp_path, monkeypatch):
    made = h.start(
        tmp_path,
        h.loop_config(),
        Model(
            {"Plan": ["no JSON", PLAN], "Build": ["built", "again"], "Check": [h.NO, h.YES], "Tell": ["told"]}
        ),
    )
    made.run()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # after the run, so that it is in the journal
    yield made
    made.close()


def sent(cast, **how):
    exporter = InMemorySpanExporter()
    count = cast.export.otel(exporter, **how)
    spans = exporter.get_finished_spans()
    assert len(spans) == count
    return {span.context.span_id: span for span in spans}


def named(spans, name):
    return [span for span in spans.values() if span.name == name]


def test_the_whole_is_one_tree_of_workflow_agents_chats_and_tools(cast):
    spans = sent(cast)
    (whole,) = [span for span in spans.values() if span.parent is None]
    assert whole.name == "invoke_workflow T"
    assert whole.attributes["gen_ai.conversation.id"] == cast.id
    assert whole.attributes["materia.status"] == "complete"
    agents = [one for one in spans.values() if one.attributes.get("gen_ai.operation.name") == "invoke_agent"]
    assert [
        (one.attributes["materia.socket"], one.attributes["materia.step"])
        for one in sorted(agents, key=lambda one: one.attributes["materia.step"])
    ] == [(step.socket, step.number) for step in cast.steps]
    for one in spans.values():
        assert one.context.trace_id == whole.context.trace_id
        assert whole.start_time <= one.start_time <= one.end_time or one.name.startswith("execute_tool")
        if one.name == "execute_tool read":
            assert one.end_time - one.start_time == 250_000_000
            assert spans[one.parent.span_id].name == "chat small"
        elif one.name == "chat small":
            assert spans[one.parent.span_id].name.startswith("invoke_agent ")
            assert one.attributes["gen_ai.usage.input_tokens"] == 10
            assert one.attributes["gen_ai.provider.name"] == "openai"
    assert len(named(spans, "chat small")) == sum(len(step.turns) for step in cast.steps)


def test_a_refused_answer_is_an_error_and_its_repair_none(cast):
    spans = sent(cast)
    (plan,) = named(spans, "invoke_agent Plan")
    chats = [one for one in named(spans, "chat small") if one.parent.span_id == plan.context.span_id]
    assert [one.status.status_code.name for one in chats] == ["ERROR", "UNSET"]
    assert plan.status.status_code is StatusCode.UNSET


def test_a_failure_is_that_of_its_socket_and_of_the_cast(tmp_path):
    def fails(turn):
        raise RuntimeError("gone")

    cast = h.start(tmp_path, h.chain_config(2), fails)
    cast.run()
    failed = [span for span in sent(cast).values() if span.status.status_code is StatusCode.ERROR]
    assert {span.name for span in failed} == {"invoke_workflow T", "invoke_agent M"}
    assert {span.attributes["error.type"] for span in failed} == {"agent_error"}
    cast.agents.default = lambda: "x"
    cast.retry()
    cast.run()
    spans = sent(cast)
    (whole,) = [span for span in spans.values() if span.parent is None]
    assert whole.status.status_code is StatusCode.UNSET
    assert [span.status.status_code.name for span in named(spans, "invoke_agent M")].count("ERROR") == 1
    cast.close()


def test_what_was_said_is_told_only_when_asked_for_and_keys_never(cast):
    quiet, loud = sent(cast), sent(cast, content=True)
    told = "".join(span.to_json() for span in quiet.values())
    assert "built" not in told
    assert "the widget" not in told
    chats = [one.attributes for one in loud.values() if one.name == "chat small"]
    (build,) = [one for one in chats if '"content": "built"' in one["gen_ai.output.messages"]]
    assert "Build a" in json.loads(build["gen_ai.input.messages"])[0]["parts"][0]["content"]
    assert named(loud, "execute_tool read")[0].attributes["gen_ai.tool.call.arguments"] == '{"path": "***"}'
    assert KEY not in told + "".join(span.to_json() for span in loud.values())


def test_it_is_the_same_trace_each_time(cast):
    assert set(sent(cast)) == set(sent(cast))
    fork = cast.fork(2)
    assert set(sent(fork)).isdisjoint(sent(cast))
    fork.close()


def test_what_people_did_are_events(cast):
    cast.labels.add(3, verdict="bad", note="too short", by="Ana")
    cast.back(2)
    cast.edit.set("plan.n", 1)
    (whole,) = [span for span in sent(cast).values() if span.parent is None]
    events = {event.name: event.attributes for event in whole.events}
    assert events["gen_ai.evaluation.result"]["gen_ai.evaluation.score.label"] == "bad"
    assert events["materia.cast_back"]["materia.step"] == 2
    assert "materia.patch" not in events["materia.state_edited"]


# -- over HTTP ------------------------------------------------------------------------------


@pytest.fixture
def collector():
    """An OTLP/HTTP collector on loopback: the requests that it got, decoded, and their headers."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                request = ExportTraceServiceRequest()
                request.ParseFromString(body)
                got.append((request, dict(self.headers)))
            self.send_response(200 if self.path == "/v1/traces" else 400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_collector_gets_them(cast, collector):
    address, got = collector
    count = cast.export.otel(endpoint=f"{address}/v1/traces", headers={"x-team": "rain"})
    ((request, headers),) = got
    (resource,) = request.resource_spans
    facts = {one.key: one.value.string_value for one in resource.resource.attributes}
    spans = [span for scope in resource.scope_spans for span in scope.spans]
    assert (len(spans), facts["service.name"], headers["x-team"]) == (count, "materia_nb", "rain")
    (whole,) = [span for span in spans if not span.parent_span_id]
    assert whole.name == "invoke_workflow T"
    assert {span.trace_id for span in spans} == {whole.trace_id}
    assert whole.end_time_unix_nano >= max(span.end_time_unix_nano for span in spans)


def test_a_collector_that_does_not_take_them_is_an_error(cast, collector):
    address, got = collector
    with pytest.raises(MateriaError, match="not taken") as caught:
        cast.export.otel(endpoint=f"{address}/elsewhere")
    assert (caught.value.kind, got) == ("not_exported", [])


def test_the_verb_and_the_environment(shell, collector, monkeypatch):
    address, got = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    line(shell, "use Plan-Build-Eval")
    line(shell, "cast a page")
    assert text(line(shell, "export otel")) == "Sent 1 span."
    assert len(got) == 1


def test_recordings_of_the_reference_engine_are_told_too():
    from pathlib import Path

    for path in sorted((Path(__file__).parents[1] / "data/recorded-casts").iterdir()):
        if (path / "events.jsonl").exists():
            spans = sent(open_cast(path), content=True)
            assert len(spans) > 1, path.name

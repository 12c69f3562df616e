"""The rate limit and the response cache of model agents."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from materia_nb.agents import model_requests
from materia_nb.agents.interface import AgentError, Usage
from materia_nb.platform import Stop
from model_helpers import EventRecorder, agent, failed, turn
from model_server import calls, refuses, says, serving


class RecordedStop(Stop):
    """A stop that records the requested waiting times instead of waiting."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        return self.is_set()


@pytest.fixture
def fixed_clock(monkeypatch):
    clock = SimpleNamespace(monotonic=lambda: 1000.0)
    monkeypatch.setattr(model_requests, "time", clock)
    return clock


def test_agents_of_one_provider_share_its_rate_limit(fixed_clock):
    stop = RecordedStop()
    with serving(says("a"), says("b"), says("c"), says("d")) as server:
        first, second = (agent(server, requests_per_minute=30) for _ in range(2))
        for asked in (first, second, first):
            asked.answer(turn(stop=stop))
        with serving(says("e")) as other:
            agent(other, requests_per_minute=30).answer(turn(stop=stop))
        fixed_clock.monotonic = lambda: 1009.0
        first.answer(turn(stop=stop))
    assert stop.waits == [0, 2, 4, 0, 0], "a request every two seconds, and another server has its own limit"


def test_each_retry_counts_for_the_rate_limit(fixed_clock):
    stop = RecordedStop()
    with serving(refuses(500, "busy"), says("b")) as server:
        agent(server, requests_per_minute=60, first_pause_s=0).answer(turn(stop=stop))
    assert [wait for wait in stop.waits if wait != pytest.approx(0, abs=0.5)] == [1]


def test_stop_ends_the_wait_for_the_rate_limit(fixed_clock):
    stop = RecordedStop()
    stop.set()
    with serving() as server:
        error = failed(agent(server, requests_per_minute=1), turn(stop=stop))
    assert error.kind == "interrupted"


def test_rate_limit_must_be_greater_than_zero():
    with serving() as server, pytest.raises(AgentError, match="greater than 0"):
        agent(server, requests_per_minute=0)


def test_identical_request_from_another_agent_gets_the_cached_answer(tmp_path):
    with serving(says("sunny", tokens=(11, 7)), says("rainy")) as server:
        assert agent(server, cache=tmp_path / "answers").answer(turn()).text == "sunny"
        heard = EventRecorder()
        again = agent(server, cache=tmp_path / "answers").answer(turn(heard))
        assert len(server.asked) == 1
        assert (again.text, again.usage) == ("sunny", Usage())
        assert heard.said == ["sunny"]
        assert heard.notes == ["The answer is from the cache."]
        assert agent(server, cache=tmp_path / "answers").answer(turn(prompt="Build more")).text == "rainy"
    assert len(server.asked) == 2


def test_request_with_different_settings_or_server_is_not_answered_from_the_cache(tmp_path):
    with serving(says("a"), says("b")) as server:
        assert agent(server, cache=tmp_path).answer(turn()).text == "a"
        assert agent(server, cache=tmp_path, settings={"temperature": 1.0}).answer(turn()).text == "b"
    with serving(says("c")) as server:
        assert agent(server, cache=tmp_path).answer(turn()).text == "c"


def test_repeated_requests_of_an_agent_get_different_answers_from_the_cache(tmp_path):
    with serving(says("a"), says("b")) as server:
        for _ in range(2):
            repeated = agent(server, cache=tmp_path)
            assert [repeated.answer(turn()).text for _ in range(2)] == ["a", "b"]
    assert len(server.asked) == 2


def test_each_answer_of_a_turn_with_tool_calls_is_cached_separately(tmp_path):
    (tmp_path / "note").write_text("the note")
    with serving(calls(("read", {"path": "note"})), says("read it")) as server:
        for _ in range(2):
            reply = agent(server, cache=tmp_path / "answers").answer(turn(tools=("read",), project=tmp_path))
            assert reply.text == "read it"
    assert len(server.asked) == 2


def test_failed_request_is_not_cached(tmp_path):
    with serving(refuses(400, "no"), says("now")) as server:
        failed(agent(server, cache=tmp_path), turn())
        assert agent(server, cache=tmp_path).answer(turn()).text == "now"


def test_damaged_cache_file_is_rewritten(tmp_path):
    with serving(says("a"), says("b")) as server:
        agent(server, cache=tmp_path).answer(turn())
        (path,) = tmp_path.iterdir()
        path.write_text("[")
        assert agent(server, cache=tmp_path).answer(turn()).text == "b"
        assert agent(server, cache=tmp_path).answer(turn()).text == "b"
    assert len(server.asked) == 2


def test_answer_that_cannot_be_stored_is_still_returned(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    heard = EventRecorder()
    with serving(says("a")) as server:
        assert agent(server, cache=tmp_path / "file").answer(turn(heard)).text == "a"
    assert heard.notes == ["The answer was not stored in the cache: File exists."]

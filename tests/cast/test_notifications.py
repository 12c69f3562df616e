"""Notifications about long runs of casts."""

from __future__ import annotations

import json
import logging
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from magics_helpers import line, new_shell
from materia_nb import Workbench
from materia_nb.errors import MateriaError


@pytest.fixture
def wb(project):
    bench = Workbench(project)
    bench.use("Ask")
    bench.agent("Answer", lambda: "ok")
    yield bench
    bench.close()


def fail():
    raise ValueError("no answer")


@pytest.mark.parametrize(
    "agent, reason, message",
    [
        (lambda: "ok", "complete", "Ask: complete after 1 step"),
        (fail, "failed", "Ask: failed after 1 step. Answer failed: Function fail failed with ValueError"),
        ("person", "person", "Ask: waiting after 1 step. waiting: Answer needs an answer; use `reply`"),
    ],
)
def test_notification_explains_why_a_run_stopped(wb, agent, reason, message):
    received = []
    wb.agent("Answer", agent)
    wb.casts.notify(received.append, after=0)
    cast = wb.cast("x")
    cast.run()
    (notification,) = received
    assert notification["message"].startswith(message)
    assert notification == {
        "cast": cast.id,
        "loadout": "Ask",
        "reason": reason,
        "message": notification["message"],
    }


def test_short_runs_and_manually_stopped_runs_send_no_notification(wb):
    received = []
    wb.casts.notify(received.append)
    wb.cast("x").run()
    wb.casts.notify(received.append, after=0)
    wb.load({
        "loadouts": {
            "Two": {
                "sockets": {
                    "Socket-1": {"materia": "Answer", "edges": [{"when": "always", "to": "Socket-2"}]},
                    "Socket-2": {"materia": "Answer"},
                }
            }
        }
    })  # fmt: skip
    wb.agent("Answer", lambda turn: wb.current.stop() or "ok")
    assert wb.cast("x", loadout="Two").run() == "stopped"
    wb.casts.notify(None)
    wb.agent("Answer", lambda: "ok")
    wb.cast("x").run()
    assert received == []


def test_command_gets_the_message_and_the_notification_as_json(wb, project):
    program = "import pathlib, sys; pathlib.Path('sent').write_text(sys.argv[1] + chr(10) + sys.stdin.read())"
    wb.casts.notify([sys.executable, "-c", program], after=0)
    cast = wb.cast("x")
    cast.run()
    message, body = (project / "sent").read_text().splitlines()
    assert message == "Ask: complete after 1 step"
    assert json.loads(body)["cast"] == cast.id


def test_webhook_receives_the_notification_as_json(wb):
    bodies = []

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.headers["Content-Type"] == "application/json"
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            """Keep the output of the tests clean."""

    with HTTPServer(("127.0.0.1", 0), Webhook) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        wb.casts.notify(f"http://127.0.0.1:{server.server_port}/hook", after=0)
        wb.cast("x").run()
        thread.join()
    assert [body["reason"] for body in bodies] == ["complete"]


def test_failing_receiver_is_logged_and_does_not_stop_the_cast(wb, caplog, monkeypatch):
    monkeypatch.setenv("SERVICE_API_KEY", "sk-abcdefghijklmnop1234")
    wb.casts.notify(["no-such-program-sk-abcdefghijklmnop1234"], after=0)
    with caplog.at_level(logging.WARNING, logger="materia_nb"):
        assert wb.cast("x").run() == "complete"
    assert "The notification was not sent" in caplog.text
    assert "abcdefghijklmnop1234" not in caplog.text


@pytest.mark.parametrize("receiver", ["", [], 3, [1]])
def test_invalid_receiver_is_refused(wb, receiver):
    with pytest.raises(MateriaError, match="cannot receive notifications"):
        wb.casts.notify(receiver)


def test_command_with_an_unclosed_quotation_mark_is_refused(wb):
    with pytest.raises(MateriaError, match="cannot be read: No closing quotation") as caught:
        wb.casts.notify('notify-send "Materia')
    assert caught.value.kind == "bad_receiver"


def test_notify_verb_sets_and_removes_a_command(project):
    shell = new_shell(Workbench(project))
    line(shell, "use Ask")
    shell.user_ns["answer"] = lambda: "ok"
    line(shell, "agent Answer $answer")
    program = project / "notify.py"
    program.write_text("import pathlib, sys\npathlib.Path('sent').write_text(sys.argv[-1])\n")
    assert "are on" in repr(line(shell, f"notify --after 0 {sys.executable} notify.py"))
    line(shell, "cast x")
    line(shell, "run")
    assert (project / "sent").read_text() == "Ask: complete after 1 step"
    (project / "sent").unlink()
    assert "are off" in repr(line(shell, "notify"))
    line(shell, "cast x")
    line(shell, "run")
    assert not (project / "sent").exists()


def test_notify_verb_accepts_a_function(project):
    shell = new_shell(Workbench(project))
    received = []
    shell.user_ns["receive"] = received.append
    shell.user_ns["answer"] = lambda: "ok"
    line(shell, "use Ask")
    line(shell, "agent Answer $answer")
    line(shell, "notify --after 0 $receive")
    line(shell, "cast x")
    line(shell, "run")
    assert [notification["reason"] for notification in received] == ["complete"]

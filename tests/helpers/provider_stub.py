"""A stub of the OpenAI, Anthropic and Google APIs on loopback, for running real coding agents without a model.

The last instruction in the conversation, such as ``[[write made.txt]]``, determines the answer:

    [[say TEXT]]        the text; without an instruction, the text "The page is written."
    [[write FILE]]      a call of the program's tool for writing files, then the text
    [[shell COMMAND]]   a call of the program's shell tool, then the text
    [[long]]            a text of 30,000 characters on one line
    [[cut]]             half of the text, with the finish reason for the maximum number of tokens
    [[refuse STATUS]]   an HTTP error with this status

Every answer reports 1,000 input tokens, of which 300 came from a cache, and 200 output tokens, of which 50 were thinking.
"""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from model_server import LoopbackServer

Json = dict[str, Any]

TEXT = "The page is written."
LONG_TEXT = " ".join(map(str, range(6_000)))  # Gemini CLI stops an answer that repeats itself
_INSTRUCTION = re.compile(r"\[\[(say|write|shell|long|cut|refuse) ?(.*?)\]\]")

_WRITE_TOOLS = {"Write": "file_path", "write_file": "file_path", "write": "path"}
_SHELL_TOOLS = {"Bash": "command", "bash": "command", "run_shell_command": "command", "exec_command": "cmd"}


class StubAnswer(NamedTuple):
    """An answer of the stub: a text or a tool call."""

    text: str = TEXT
    tool: str = ""
    arguments: Json = {}  # noqa: RUF012 - never changed
    cut: bool = False


class StubRequest(NamedTuple):
    """A request in a form that is common to all provider protocols."""

    protocol: str
    model: str
    tools: list[str]
    text: str
    after_tool: bool


def _strings(value: Any) -> list[str]:
    """Return all strings in a JSON value."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for inner in values for text in _strings(inner)]


def read_request(path: str, body: Json) -> StubRequest | None:
    """Parse a request for a model answer; return None for any other request."""
    path = path.partition("?")[0]
    if path.endswith("/chat/completions"):
        protocol, messages = "chat", body["messages"]
        after_tool = messages[-1]["role"] == "tool"
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    elif path.endswith("/responses"):
        protocol, messages = "responses", body["input"]
        after_tool = messages[-1].get("type", "").endswith("_output")
        tools = [tool.get("name", tool["type"]) for tool in body.get("tools") or ()]
    elif path.endswith("/messages"):
        protocol, messages = "anthropic", body["messages"]
        after_tool = '"tool_result"' in json.dumps(messages[-1])
        tools = [tool["name"] for tool in body.get("tools") or ()]
    elif "enerateContent" in path:
        protocol, messages = "google", body["contents"]
        after_tool = '"functionResponse"' in json.dumps(messages[-1])
        tools = [tool["name"] for part in body.get("tools") or () for tool in part.get("functionDeclarations", ())]
    else:
        return None
    model = body.get("model") or re.sub(r".*/models/|:.*", "", path)
    return StubRequest(protocol, model, tools, "\n".join(_strings(messages)), after_tool)


def answer_for(request: StubRequest) -> StubAnswer | int:
    """Return the answer to a request, or the HTTP status of an error."""
    instructions = _INSTRUCTION.findall(request.text)
    verb, argument = instructions[-1] if instructions else ("say", TEXT)
    if verb == "refuse":
        return int(argument)
    if verb == "cut":
        return StubAnswer(TEXT[:10], cut=True)
    if verb == "long":
        return StubAnswer(LONG_TEXT)
    if verb == "say" or request.after_tool:
        return StubAnswer(argument if verb == "say" else TEXT)
    names = _WRITE_TOOLS if verb == "write" else _SHELL_TOOLS
    tool = next((name for name in request.tools if name in names), None)
    if tool is None:
        return StubAnswer(f"There is no tool to {verb}.")
    arguments: Json = {names[tool]: argument}
    if verb == "write":
        arguments |= {"content": "written by the stub\n"}
        arguments |= {"filePath": argument} if names[tool] == "path" else {}  # opencode's name for pi's path
    else:
        arguments |= {"description": "a command of the stub"}
    return StubAnswer("", tool, arguments)


# -- the protocols -------------------------------------------------------------------------------


def _chat_stream(model: str, answer: StubAnswer) -> list[tuple[str, Json | str]]:
    base = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    pieces = [answer.text[start : start + 500] for start in range(0, len(answer.text), 500)]
    deltas: list[Json] = [{"role": "assistant", "content": piece} for piece in pieces]
    if answer.tool:
        function = {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
        deltas.append({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    finish = "length" if answer.cut else "tool_calls" if answer.tool else "stop"
    events: list[Json] = [{**base, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    events.append({**base, "choices": [], "usage": _CHAT_USAGE})
    return [*(("", event) for event in events), ("", "[DONE]")]


_CHAT_USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "total_tokens": 1200,
    "prompt_tokens_details": {"cached_tokens": 300},
    "completion_tokens_details": {"reasoning_tokens": 50},
}


def _chat_whole(model: str, answer: StubAnswer) -> Json:
    message = {"role": "assistant", "content": answer.text}
    choice = {"index": 0, "message": message, "finish_reason": "length" if answer.cut else "stop"}
    return {"id": "chat-1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]} | {
        "usage": _CHAT_USAGE
    }


def _responses_stream(model: str, answer: StubAnswer) -> list[tuple[str, Json | str]]:
    if answer.tool:
        item: Json = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
        item |= {"name": answer.tool, "arguments": json.dumps(answer.arguments)}
    else:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    end = "incomplete" if answer.cut else "completed"
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 300},
        "output_tokens": 200,
        "output_tokens_details": {"reasoning_tokens": 50},
        "total_tokens": 1200,
    }
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": model, "output": [item], "usage": usage}
    if answer.cut:
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    events = [
        {"type": "response.created", "response": {**response, "output": [], "usage": None, "status": "in_progress"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": item | ({} if answer.tool else {"content": []}),
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": f"response.{end}", "response": {**response, "status": end}},
    ]
    return [(event["type"], {**event, "sequence_number": number}) for number, event in enumerate(events)]


def anthropic_stream(model: str, answer: StubAnswer) -> list[tuple[str, Json | str]]:
    usage = {"input_tokens": 700, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 0, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    if answer.tool:
        block: Json = {"type": "tool_use", "id": "toolu_1", "name": answer.tool, "input": {}}
        delta: Json = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": answer.text}
    stop = "max_tokens" if answer.cut else "tool_use" if answer.tool else "end_turn"
    events: list[Json] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 200}},
        {"type": "message_stop"},
    ]
    return [(event["type"], event) for event in events]


def _google_whole(answer: StubAnswer) -> Json:
    part = {"functionCall": {"name": answer.tool, "args": answer.arguments}} if answer.tool else {"text": answer.text}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "MAX_TOKENS" if answer.cut else "STOP"}
    usage = {
        "promptTokenCount": 1000,
        "candidatesTokenCount": 150,
        "thoughtsTokenCount": 50,
        "cachedContentTokenCount": 300,
        "totalTokenCount": 1200,
    }
    return {"candidates": [{**candidate, "index": 0}], "usageMetadata": usage, "modelVersion": "stub"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send({"object": "list", "data": [{"id": "stub-model", "object": "model"}]})

    def do_POST(self) -> None:
        try:
            self.server.stub.answer(self, json.loads(self._body() or b"{}"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def send(self, body: Json, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events: list[tuple[str, Json | str]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, event in events:
            line = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write((f"event: {name}\n" * bool(name) + f"data: {line}\n\n").encode())
        self.close_connection = True


class ProviderStub(LoopbackServer):
    """The stub server; ``requests`` lists the requests for model answers, and ``url`` is its address without a path."""

    def __init__(self) -> None:
        self.requests: list[StubRequest] = []
        super().__init__(_Handler)
        self._http.stub = self

    def answer(self, handler: _Handler, body: Json) -> None:
        request = read_request(handler.path, body)
        if request is None:
            handler.send({"input_tokens": 100, "totalTokens": 100})  # for other requests, such as counting tokens
            return
        self.requests.append(request)
        answer = answer_for(request)
        if isinstance(answer, int):
            error = {"type": "stub_error", "message": f"the stub refuses with {answer}", "code": answer}
            handler.send({"type": "error", "error": error}, answer)
        elif request.protocol == "chat" and not body.get("stream"):
            handler.send(_chat_whole(request.model, answer))
        elif request.protocol == "chat":
            handler.stream(_chat_stream(request.model, answer))
        elif request.protocol == "responses":
            handler.stream(_responses_stream(request.model, answer))
        elif request.protocol == "anthropic":
            handler.stream(anthropic_stream(request.model, answer))
        elif "stream" in handler.path:
            handler.stream([("", _google_whole(answer))])
        elif body.get("generationConfig", {}).get("responseMimeType") == "application/json":
            choice = {
                "reasoning": "simple",
                "model_choice": "flash",
                "complexity_score": 1,
                "complexity_reasoning": "-",
            }
            handler.send(_google_whole(StubAnswer(json.dumps(choice))))  # Gemini CLI asks which model to use
        else:
            handler.send(_google_whole(answer))

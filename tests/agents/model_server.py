"""Local model server: the HTTP protocols of OpenAI (chat, Responses) and Anthropic on 127.0.0.1, by a script.

Each request gets the next answer, whole or streamed as the client asks; an answer can also be an error, a connection that
drops or one that stalls. `server.requests` has what was asked.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import zip_longest
from typing import Any

LONGEST_STALL = 30.0
Event = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Answer:
    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    """Name and arguments; a string is sent as it is, right or wrong."""
    thinking: str = ""
    piece: int = 7
    """Characters of text or of arguments in one event of a stream."""
    status: int = 200
    error: str = "the server says no"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """Sent instead of everything else."""
    drop: int | None = None
    """The connection is cut after so many events of a stream; 0 cuts before any answer."""
    stall: threading.Event | None = None
    """Nothing is sent until it is set."""
    stall_after: int = 0
    """Events that are sent before that."""
    usage: tuple[int, int] = (11, 7)
    finish: str = ""

    def listed(self) -> list[tuple[str, str, str]]:
        return [
            (f"call_{number}", name, args if isinstance(args, str) else json.dumps(args))
            for number, (name, args) in enumerate(self.calls)
        ]


Script = Sequence[Answer | Callable[[dict[str, Any]], Answer]]


class ModelServer:
    def __init__(self, script: Script, url: str) -> None:
        self.url = url
        self.openai = f"{url}/v1"
        """The base URL for OpenAI's client; Anthropic's takes `url`."""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self._script = list(script)
        self._lock = threading.Lock()

    def next(self, request: dict[str, Any], headers: dict[str, str]) -> Answer:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            if not self._script:
                return Answer(status=400, error="the script is over")
            found = self._script.pop(0)
        return found if isinstance(found, Answer) else found(request)

    @property
    def left(self) -> int:
        return len(self._script)


@contextmanager
def model_server(*script: Answer | Callable[[dict[str, Any]], Answer]) -> Iterator[ModelServer]:
    """A server that gives these answers, one after the other."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    http.block_on_close = False
    server = ModelServer(script, f"http://127.0.0.1:{http.server_port}")
    http.model = server  # type: ignore[attr-defined]
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        request = json.loads(self.rfile.read(size) or b"{}") | {"_path": self.path}
        protocol = {
            "/v1/chat/completions": _Chat,
            "/v1/responses": _Responses,
            "/v1/messages": _Messages,
        }.get(self.path)
        if protocol is None:
            self._send(404, json.dumps({"error": {"message": f"there is nothing at {self.path}"}}))
            return
        answer = self.server.model.next(request, dict(self.headers))  # type: ignore[attr-defined]
        with suppress(ConnectionError, BrokenPipeError):
            self._answer(protocol(answer, str(request.get("model", "scripted"))), bool(request.get("stream")))

    def _answer(self, protocol: _Protocol, streams: bool) -> None:
        answer = protocol.answer
        if answer.stall is not None and not (streams and answer.stall_after):
            answer.stall.wait(LONGEST_STALL)
        if answer.drop == 0:
            self.close_connection = True
            return
        if answer.body is not None:
            self._send(answer.status, answer.body)
        elif answer.status != 200:
            self._send(answer.status, json.dumps(protocol.problem()), answer.headers)
        elif streams:
            self._stream(protocol)
        else:
            self._send(200, json.dumps(protocol.whole()), answer.headers)

    def _send(self, status: int, body: str, headers: Mapping[str, str] | None = None) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, protocol: _Protocol) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        answer = protocol.answer
        for sent, (name, data) in enumerate(protocol.events()):
            if answer.drop is not None and sent >= answer.drop:
                self.close_connection = True
                return  # without the last chunk: the client sees that it was cut
            if answer.stall is not None and answer.stall_after and sent == answer.stall_after:
                answer.stall.wait(LONGEST_STALL)
            self._chunk((f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n")
        if protocol.ends_with_done:
            self._chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


class _Protocol:
    ends_with_done = False

    def __init__(self, answer: Answer, model: str) -> None:
        self.answer = answer
        self.model = model

    def problem(self) -> dict[str, Any]:
        return {
            "error": {
                "message": self.answer.error,
                "type": "invalid_request_error",
                "code": None,
                "param": None,
            }
        }

    def whole(self) -> dict[str, Any]:
        raise NotImplementedError

    def events(self) -> Iterator[Event]:
        raise NotImplementedError

    def pieces(self, text: str) -> list[str]:
        return [text[at : at + self.answer.piece] for at in range(0, len(text), self.answer.piece)]

    def interleaved(self) -> Iterator[tuple[int, str]]:
        """Pieces of all calls' arguments, a piece of each in turn."""
        columns = [
            [(index, piece) for piece in self.pieces(args)]
            for index, (_, _, args) in enumerate(self.answer.listed())
        ]
        for row in zip_longest(*columns):
            yield from (one for one in row if one is not None)


class _Chat(_Protocol):
    ends_with_done = True

    @property
    def _usage(self) -> dict[str, int]:
        asked, said = self.answer.usage
        return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}

    @property
    def _finish(self) -> str:
        return self.answer.finish or ("tool_calls" if self.answer.calls else "stop")

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.answer.text or None}
        if self.answer.thinking:
            message["reasoning_content"] = self.answer.thinking
        if self.answer.calls:
            message["tool_calls"] = [
                {"id": ident, "type": "function", "function": {"name": name, "arguments": args}}
                for ident, name, args in self.answer.listed()
            ]
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": self.model, "choices": [choice], "usage": self._usage}  # fmt: skip

    def events(self) -> Iterator[Event]:
        yield self._chunk({"role": "assistant"})
        for piece in self.pieces(self.answer.thinking):
            yield self._chunk({"reasoning_content": piece})
        for piece in self.pieces(self.answer.text):
            yield self._chunk({"content": piece})
        for index, (ident, name, _) in enumerate(self.answer.listed()):
            function = {"name": name, "arguments": ""}
            yield self._chunk(
                {"tool_calls": [{"index": index, "id": ident, "type": "function", "function": function}]}
            )
        for index, piece in self.interleaved():
            yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._chunk({}, self._finish)
        yield "", self._frame([]) | {"usage": self._usage}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Event:
        return "", self._frame([{"index": 0, "delta": delta, "finish_reason": finish}])

    def _frame(self, choices: list[Any]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": self.model,
            "choices": choices,
        }


class _Responses(_Protocol):
    def _response(self, output: list[Any], status: str) -> dict[str, Any]:
        asked, said = self.answer.usage
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "model": self.model, "status": status, "output": output,
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
            "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
            "usage": {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said,
                      "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}},
        }  # fmt: skip

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if self.answer.text:
            content = [{"type": "output_text", "text": self.answer.text, "annotations": []}]
            items.append(
                {
                    "type": "message",
                    "id": "msg_1",
                    "role": "assistant",
                    "status": "completed",
                    "content": content,
                }
            )
        items += [
            {"type": "function_call", "id": f"fc_{ident}", "call_id": ident, "name": name, "arguments": args, "status": "completed"}
            for ident, name, args in self.answer.listed()
        ]  # fmt: skip
        return items

    def whole(self) -> dict[str, Any]:
        return self._response(self._items(), self.answer.finish or "completed")

    def events(self) -> Iterator[Event]:
        number = 0

        def event(kind: str, **more: Any) -> Event:
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number} | more

        yield event("response.created", response=self._response([], "in_progress"))
        items = self._items()
        first = 1 if self.answer.text else 0
        for place, item in enumerate(items):
            begun = item | ({"arguments": ""} if item["type"] == "function_call" else {"content": []})
            yield event("response.output_item.added", output_index=place, item=begun)
        for piece in self.pieces(self.answer.text):
            yield event(
                "response.output_text.delta",
                output_index=0,
                content_index=0,
                item_id="msg_1",
                delta=piece,
                logprobs=[],
            )
        for index, piece in self.interleaved():
            item_id = items[first + index]["id"]
            yield event(
                "response.function_call_arguments.delta",
                output_index=first + index,
                item_id=item_id,
                delta=piece,
            )
        for place, item in enumerate(items):
            yield event("response.output_item.done", output_index=place, item=item)
        status = self.answer.finish or "completed"
        yield event("response.completed", response=self._response(items, status))


class _Messages(_Protocol):
    def problem(self) -> dict[str, Any]:
        kinds = {429: "rate_limit_error", 401: "authentication_error", 529: "overloaded_error"}
        kind = kinds.get(
            self.answer.status, "api_error" if self.answer.status >= 500 else "invalid_request_error"
        )
        return {"type": "error", "error": {"type": kind, "message": self.answer.error}}

    def _message(self, content: list[Any], stop: str | None) -> dict[str, Any]:
        asked, said = self.answer.usage
        usage = {"input_tokens": asked, "output_tokens": said}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": content,
                "stop_reason": stop, "stop_sequence": None, "usage": usage}  # fmt: skip

    @property
    def _stop(self) -> str:
        return self.answer.finish or ("tool_use" if self.answer.calls else "end_turn")

    def whole(self) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = []
        if self.answer.thinking:
            blocks.append({"type": "thinking", "thinking": self.answer.thinking, "signature": "s"})
        if self.answer.text:
            blocks.append({"type": "text", "text": self.answer.text})
        blocks += [
            {"type": "tool_use", "id": ident, "name": name, "input": json.loads(args)}
            for ident, name, args in self.answer.listed()
        ]
        return self._message(blocks, self._stop)

    def events(self) -> Iterator[Event]:
        yield "message_start", {"type": "message_start", "message": self._message([], None)}
        blocks: list[tuple[dict[str, Any], str, str, str]] = []
        if self.answer.thinking:
            blocks.append(
                (
                    {"type": "thinking", "thinking": "", "signature": ""},
                    "thinking_delta",
                    "thinking",
                    self.answer.thinking,
                )
            )
        if self.answer.text:
            blocks.append(({"type": "text", "text": ""}, "text_delta", "text", self.answer.text))
        for ident, name, args in self.answer.listed():
            block = {"type": "tool_use", "id": ident, "name": name, "input": {}}
            blocks.append((block, "input_json_delta", "partial_json", args))
        for index, (block, kind, key, text) in enumerate(blocks):
            yield (
                "content_block_start",
                {"type": "content_block_start", "index": index, "content_block": block},
            )
            for piece in self.pieces(text):
                delta = {"type": kind, key: piece}
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        stop = {"stop_reason": self._stop, "stop_sequence": None}
        yield (
            "message_delta",
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": self.answer.usage[1]}},
        )
        yield "message_stop", {"type": "message_stop"}

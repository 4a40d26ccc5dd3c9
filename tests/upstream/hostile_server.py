"""An MCP server of the handshake era that says and asks whatever its callers tell it to, several calls at once.

`do` takes steps: `send` a message (`times`, each with an id of its own where it asks something), `sleep`, `wait` for so
many answers, be `deaf` or fail to list its tools (`unlisted`) from then on. What it hears to its questions is its answer. Reading `do:…` takes the same steps, as JSON.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from typing import Any

READS = {"readOnlyHint": True}
TOOLS = [{"name": "do", "description": "Does it.", "inputSchema": {"type": "object"}, "annotations": READS}]
CAN = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}, "logging": {}}
lock = threading.Lock()
numbers = itertools.count(1)
answers: dict[str, Any] = {}
deaf = threading.Event()
unlisted = threading.Event()


def send(**message: Any) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def do(steps: list[dict[str, Any]]) -> list[Any]:
    mine: list[str] = []
    for step in steps:
        if step.get("deaf"):
            deaf.set()
        if step.get("unlisted"):
            unlisted.set()
        for _ in range(step.get("times", 1)):
            if "send" in step:
                more = {}
                if step.get("asks"):
                    mine.append(f"h{next(numbers)}" + "x" * step.get("long", 0))
                    more = {"id": mine[-1]}
                send(**more, **step["send"])
        if "nested" in step:  # too deep for whoever writes JSON by recursion
            text = "[" * step["nested"] + "]" * step["nested"]
            with lock:
                sys.stdout.write(step["around"].replace('"HERE"', text) + "\n")
                sys.stdout.flush()
        time.sleep(step.get("sleep", 0))
        until = time.monotonic() + 20
        while sum(one in answers for one in mine) < step.get("wait", 0) and time.monotonic() < until:
            time.sleep(0.01)
    return [answers.get(one) for one in mine]


def call(ident: Any, steps: list[dict[str, Any]], made: Any) -> None:
    send(id=ident, result=made(json.dumps(do(steps))))


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def handle(message: dict[str, Any]) -> None:
    ident, params = message["id"], message.get("params", {})
    uri = params.get("uri", "")
    match message["method"]:
        case "initialize":
            about = {"name": "hostile", "version": "1"}
            send(id=ident, result={"protocolVersion": "2025-11-25", "capabilities": CAN, "serverInfo": about})
        case "tools/list":
            error = {"code": -32603, "message": "no \x1b[1mlist"}
            send(id=ident, **({"error": error} if unlisted.is_set() else {"result": {"tools": TOOLS}}))
        case "tools/call":
            steps = params["arguments"].get("steps", [])
            threading.Thread(target=call, args=(ident, steps, said), daemon=True).start()
        case "resources/read":
            steps = json.loads(uri[3:]) if uri.startswith("do:") else []
            made = lambda text: {"contents": [{"uri": uri, "text": text}]}  # noqa: E731
            threading.Thread(target=call, args=(ident, steps, made), daemon=True).start()
        case "prompts/get":
            content = {"type": "text", "text": "x"}
            words = params["arguments"].get("description", "")
            send(id=ident, result={"description": words, "messages": [{"role": "user", "content": content}]})
        case _:
            send(id=ident, result={})


def main() -> None:
    for line in sys.stdin:
        while deaf.is_set():
            time.sleep(1)
        message = json.loads(line)
        if "method" not in message:
            answers[message["id"]] = message.get("result") or message.get("error")
        elif "id" in message:
            handle(message)


if __name__ == "__main__":
    main()

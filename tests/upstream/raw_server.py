"""An MCP server in plain Python, of the handshake era: starts at once, and misbehaves as it is told to.

`BEHAVE` in its environment says how; `DEFINE` is a file with the tools it lists; `WITNESS` is where effects go.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BEHAVE = os.environ.get("BEHAVE", "").split()
OBJECT: dict[str, Any] = {"type": "object"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
READS = {"readOnlyHint": True}
TOOLS = [
    {"name": name, "description": f"{name} it", "inputSchema": TEXT if name == "write" else OBJECT, **more}
    for name, more in {
        "write": {},
        "pid": {"annotations": READS},
        "crash": {},
        "look_and_crash": {"annotations": READS},
        "hang": {},
        "look_and_hang": {"annotations": READS},
        "fail": {},
        "refuse": {},
        "env": {"annotations": READS},
        "flood": {"annotations": READS},
        "endless": {"annotations": READS},
        "ask": {"annotations": READS},
        "sample": {"annotations": READS},
        "sample_late": {"annotations": READS},
        "log": {"annotations": READS},
        "touch": {"annotations": READS},
        "change": {"annotations": READS},
        "secret": {"annotations": READS},
        "nonsense": {},
    }.items()
]


def defined() -> Any:
    file = Path(os.environ.get("DEFINE", "/nonexistent"))
    return json.loads(file.read_text()) if file.exists() else TOOLS


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def witness(line: str) -> None:
    with open(os.environ["WITNESS"], "a") as file:
        file.write(line + "\n")


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def asked_back(method: str, params: dict[str, Any]) -> dict[str, Any]:
    send(id="back", method=method, params=params)
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == "back":
            return answer
    sys.exit(0)


def call(name: str, args: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "write":
            witness(args["text"])
            return text("written")
        case "pid":
            return text(str(os.getpid()))
        case "crash" | "look_and_crash":
            witness(name)
            os._exit(3)
        case "hang" | "look_and_hang":
            witness(name)
            while True:
                signal.pause()
        case "fail":
            return text("no such \x1b[31mthing", isError=True)
        case "env":
            return text(json.dumps(sorted(os.environ)))
        case "secret":
            return text(f"it is {os.environ['API_TOKEN']}")
        case _:
            return misbehave(name, args)


def misbehave(name: str, args: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "flood":
            line = (
                b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
            )
            while True:
                os.write(1, line * 100)
        case "endless":
            while True:
                os.write(1, b"x" * (1 << 20))
        case "change":
            Path(os.environ["DEFINE"]).write_text(json.dumps(args["tools"]))
            send(method="notifications/tools/list_changed")
            return text("changed")
        case "nonsense":
            return {"content": "this is no list"}
        case _:
            return talk(name, args)


def talk(name: str, args: dict[str, Any]) -> dict[str, Any]:
    """What a server may say and ask during a call."""
    match name:
        case "ask":
            schema = {"type": "object", "properties": {"word": {"type": "string"}}}
            message = args.get("message", "Your \x1b[1mword?")
            answer = asked_back("elicitation/create", {"message": message, "requestedSchema": schema})
            return text(json.dumps(answer.get("result")))
        case "sample":
            said = [sampled(args) for _ in range(args.get("times", 1))]
            failed = args.get("strict", False) and isinstance(said[0], str)
            return text(json.dumps(said), **({"isError": True} if failed else {}))
        case "sample_late":
            return text("soon")
        case "log":
            time.sleep(args.get("pause", 0))
            for _ in range(args.get("times", 1)):
                for params in args["lines"]:
                    send(method="notifications/message", params=params)
            return text("logged")
        case "touch":
            for uri in args["uris"]:
                send(method="notifications/resources/updated", params={"uri": uri})
            return text("touched")
        case _:
            raise LookupError(name)


def sampled(args: dict[str, Any]) -> Any:
    """What the client says to it: the model's answer, or why there is none."""
    said = {"role": "user", "content": {"type": "text", "text": args.get("text", "hello")}}
    answer = asked_back(
        "sampling/createMessage", {"messages": [said], "maxTokens": 1, **args.get("more", {})}
    )
    return answer.get("result") or answer["error"]["message"]


def handle(message: dict[str, Any]) -> None:
    ident, params = message["id"], message.get("params", {})
    match message["method"]:
        case "initialize":
            if "hang" in BEHAVE:
                signal.pause()
            about = {"name": "raw", "version": "1"}
            library = {"resources": {"subscribe": True}, "prompts": {}, "logging": {}}
            can = {"tools": {"listChanged": True}} | (library if "library" in BEHAVE else {})
            send(id=ident, result={"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": about})
        case "tools/list":
            if "hang_list" in BEHAVE:
                signal.pause()
            send(id=ident, result={"tools": defined()})
        case "ping":
            send(id=ident, result={})
        case "tools/call":
            try:
                send(id=ident, result=call(params["name"], params.get("arguments", {})))
                if params["name"] == "sample_late":
                    witness(json.dumps(sampled({})))
            except LookupError:
                send(id=ident, error={"code": -32602, "message": "no such \x1b[31mtool"})
        case method if "library" in BEHAVE:
            shelf(method, ident, params)
        case _:
            send(id=ident, error={"code": -32601, "message": "method not found"})


def shelf(method: str, ident: Any, params: dict[str, Any]) -> None:
    """Resources and prompts."""
    match method, params.get("uri", params.get("name")):
        case "resources/list", _:
            send(
                id=ident,
                result={"resources": [{"uri": "note://one", "name": "on\x1be", "mimeType": "text/plain"}]},
            )
        case "logging/setLevel", _:
            witness(f"level {params['level']}")
            send(id=ident, result={})
        case "resources/subscribe" | "resources/unsubscribe", uri:
            witness(f"{method.partition('/')[2]} {uri}")
            send(id=ident, result={})
        case "resources/read", "note://one":
            send(id=ident, result={"contents": [{"uri": "note://one", "text": "a \x07note"}]})
        case "resources/read", "note://many":
            image = {"uri": "note://many", "mimeType": "image/png", "blob": "A" * 40_000}
            send(id=ident, result={"contents": [image] * 8})
        case "prompts/list", _:
            asks = [{"name": "who", "required": True}]
            send(
                id=ident, result={"prompts": [{"name": "greet", "description": "Say it", "arguments": asks}]}
            )
        case "prompts/get", "greet":
            said = {"type": "text", "text": f"Greet {params['arguments']['who']}."}
            send(id=ident, result={"messages": [{"role": "user", "content": said}]})
        case _:
            send(id=ident, error={"code": -32002, "message": "there is none"})


def main() -> None:
    if "stubborn" in BEHAVE:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "child" in BEHAVE:  # like the wrappers of package managers, which leave the work to a child
        child = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        witness(str(child.pid))
    if "die" in BEHAVE:
        sys.stderr.write(f"cannot start: {os.environ.get('API_TOKEN', 'no')} \x1b[31mtoken\n")
        sys.exit(7)
    if "banner" in BEHAVE:
        sys.stdout.write("starting up...\n\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            handle(message)
    if "stubborn" in BEHAVE:
        while True:
            signal.pause()


if __name__ == "__main__":
    main()

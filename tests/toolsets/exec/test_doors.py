"""Programs that may reach something: hosts through the proxy, secrets by name, packages of the owner's list."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgate
from toolgate.project import vault_api as secrecy
from toolgate.storage.executions import Executions

from .running import POLICY, code, good

VALUE = "s3cr3t-value-of-the-test-0815"


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("authorization")))  # type: ignore[attr-defined]
        body = json.dumps({"you_sent": self.headers.get("authorization")}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Any]:
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    made.seen = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join(5)


def config(server: Any) -> dict[str, Any]:
    place = f"127.0.0.1:{server.server_address[1]}"
    personas = {"builder": {"phase": "contribute", "allow": ["exec.python"]}}
    return POLICY | {"personas": personas, "sandbox": {"network": {"private": [place]}}}


PROGRAM = """\
place = PLACE
print(get_json(f'http://{place}/in', auth_secret='API'))
for url in ('http://example.com/', f'http://localhost:{place.partition(":")[2]}/', 'http://127.0.0.1:1/'):
    try: print(get_json(url))
    except Exception as error: print('no', type(error).__name__)
"""


async def test_a_granted_host_gets_the_secret_and_nobody_else_is_reached(root: Path, server: Any) -> None:
    place = f"127.0.0.1:{server.server_address[1]}"
    async with toolgate.open(root, config(server)) as gate:
        await secrecy.keep(gate, "API", VALUE, ("127.0.0.1",), False, "test", "library")
        result = await gate.call(
            "exec.python",
            {"code": PROGRAM.replace("PLACE", repr(place)), "network": [place], "secrets": ["API"]},
        )
        found = good(result)
        assert found["exit_code"] == 0, found["stderr"]
        assert found["stdout"].count("no ") == 3
        assert server.seen == [("/in", f"Bearer {VALUE}")]
        assert VALUE not in str(result.as_dict())
        assert [(each["allowed"], each["injected"]) for each in found["requests"]] == [
            (True, ["API"]), (False, []), (False, []), (False, [])
        ]  # fmt: skip
        events = [row for row in await gate.events() if row.kind == "requested"]
        assert [row.call for row in events] == [result.meta.call_id] * 4
        traces = await gate.traces.find(Executions())
        assert [row.call for row in traces] == [result.meta.call_id]
        assert all(VALUE not in str(row) for row in (*await gate.events(), *traces))
        assert (await gate.verify()).ok


async def test_what_cannot_be_given_is_refused_before_anything_runs(root: Path, server: Any) -> None:
    async with toolgate.open(root, config(server)) as gate:
        asked: list[tuple[dict[str, Any], str]] = [
            ({"secrets": ["NONE"]}, "not_found"),
            ({"network": ["http://user@host/"]}, "invalid_args"),
            ({"network": {"hosts": ["a.example"], "methods": ["TRACE"]}}, "invalid_args"),
            ({"packages": ["numpy"]}, "not_allowed"),
        ]
        for args, problem in asked:
            assert code(await gate.call("exec.python", {"code": "1", **args})) == problem, args
        assert "unknown" not in {row.kind for row in await gate.events()}


async def test_a_package_of_the_owners_list_can_be_imported_and_no_other(root: Path, server: Any) -> None:
    settings = config(server) | {"sandbox": {"packages": ["PyYAML"]}}
    async with toolgate.open(root, settings) as gate:
        program = "import yaml\nprint(yaml.safe_load('a: 1'))"
        assert (
            good(await gate.call("exec.python", {"code": program, "packages": ["pyyaml"]}))["stdout"]
            == "{'a': 1}\n"
        )
        assert good(await gate.call("exec.python", {"code": program}))["exit_code"] == 1
        assert (
            good(await gate.call("exec.python", {"code": "import pydantic", "packages": ["pyyaml"]}))[
                "exit_code"
            ]
            == 1
        )


async def test_what_a_program_leaves_is_saved_without_secrets(root: Path, server: Any) -> None:
    async with toolgate.open(root, config(server)) as gate:
        await secrecy.keep(gate, "API", VALUE, ("127.0.0.1",), True, "test", "library")
        program = "value = get_secret('API')\nopen('x.txt', 'w').write(f'{value}' + '!')"
        found = good(await gate.call("exec.python", {"code": program, "secrets": ["API"]}))
        (left,) = found["files"]
        kept = (root / ".toolgate/scratch" / left["path"].partition(":")[2]).read_text()
        assert VALUE not in kept
        assert kept.endswith("!")

"""What the suite starts as a client: `client_program.py SOCKET ADDRESS`. It hands the address to the gateway in the test,
which is up already, and ends when that has done its calls."""

from __future__ import annotations

import json
import os
import socket
import sys

SECONDS = 90.0

if __name__ == "__main__":
    place, address = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(SECONDS)
        line.connect(place)
        context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
        line.sendall(json.dumps({"address": address, "context": context}).encode() + b"\n")
        sys.exit(0 if line.recv(10) == b"done" else 1)

"""Attacks through descriptors, and through sockets of every family."""

from __future__ import annotations

from .attack import ALL, Attack

_EVERY = "for handle in [each for each in range(1024) if each > 3]:\n    try: os.fstat(handle)\n    except OSError: continue\n"

HANDLES = [
    Attack("use what the host has left open",
           _EVERY + "    won(handle)\nheld()", ("closed handles",)),
    Attack("use the number of a file that the host has open", "refused(os.pread, HANDLE + 100, 99, 0)\nrefused(lambda: os.pread(HANDLE, 99, 0) if HANDLE > 3 else os.fstat(999))", ("closed handles",)),
    Attack("open its own standard streams again for more",
           "for each in range(3):\n    try: handle = os.open(f'/proc/self/fd/{each}', os.O_RDWR)\n    except OSError: held()\n"
           "    else:\n        try: os.pwrite(handle, b'x', 0)\n        except OSError: held()\n        else: won(each) if each == 0 else held('its own pipe')",
           ("closed handles", "not dumpable", "landlock")),
    Attack("write into what it was given to read", "import fcntl\nrefused(os.write, 0, b'x')\nrefused(os.ftruncate, 0, 1 << 30)\nrefused(fcntl.fcntl, 0, 1033, 0)", ("closed handles",), stdin=b"given"),
    Attack("keep the line and talk as the zygote does",
           "import json, socket\nline = socket.socket(fileno=os.dup(3))\n"
           "for op in ('up', 'ready', 'started', 'ended', 'refused', 'broken'):\n    line.sendall(json.dumps({'op': op, 'job': 1, 'code': 0, 'error': 'x'}).encode() + b'\\n')\n"
           "    answer = json.loads(line.recv(1000))\n    won(answer) if 'error' not in answer else held()", ("line limits",)),
    Attack("hand the host a handle over the line (SCM_RIGHTS)",
           "import array, json, socket\nline = socket.socket(fileno=os.dup(3))\na, b = os.pipe()\n"
           "try: line.sendmsg([b'{\"op\":\"x\"}\\n'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [b, b, b]))])\n"
           "except OSError: held(); raise SystemExit  # the kernel counts handles under way, and another attack sends a thousand\n"
           "line.recv(1000)\nos.close(b)\n"
           "os.set_blocking(a, False)\nheld() if os.read(a, 1) == b'' else won('the host holds it')", ("line limits",)),
    Attack("hand the host a thousand handles over the line",
           "import array, socket\nline = socket.socket(fileno=os.dup(3))\nline.setblocking(False)\nsent = 0\ntry:\n    for _ in range(1000):\n"
           "        line.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 200))])\n        sent += 1\nexcept OSError: pass\nheld(sent)", ("line limits", "rlimits")),
    Attack("receive a handle from the host over the line",
           "import socket\nline = socket.socket(fileno=os.dup(3))\nline.sendall(b'{\"op\":\"x\"}\\n')\n"
           "word, found, *_ = socket.recv_fds(line, 1000, 8)\nwon(found) if found else held()", ("closed handles",)),
    Attack("make the host spin with urgent data on the line (MSG_OOB)",
           "import socket, time\nline = socket.socket(fileno=os.dup(3))\nrefused(line.send, b'x', socket.MSG_OOB)", ("seccomp",)),
    Attack("close every handle, then go on", "os.closerange(0, 4)\nimport time\ntime.sleep(0.1)\nos._exit(7)", ("own process",), ends=("exit 7",)),
    Attack("shut the line down in one direction", "import socket\nline = socket.socket(fileno=os.dup(3))\nline.shutdown(socket.SHUT_WR)\nline.setblocking(True)\nheld()", ("line limits",)),
    Attack("put another file in the place of the line", "a, b = os.pipe()\nos.dup2(a, 3)\nos.dup2(a, 1)\nos.write(2, b'held\\n')", ("own process",), ends=("any",)),
    Attack("use all handles there are",
           "found = []\ntry:\n    while len(found) < 100_000: found.append(os.dup(0))\nexcept OSError as error: print('held', len(found)) if len(found) < 300 else won(len(found))\nelse: won(len(found))",
           ("rlimits",)),
    Attack("hide more handles in sockets that nobody reads",
           "import array, socket\na, b = socket.socketpair()\na.setblocking(False)\nsent = 0\ntry:\n    for _ in range(100_000):\n"
           "        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0] * 100))])\n        sent += 100\nexcept OSError: pass\nheld() if sent < 1000 else won(sent)", ("rlimits",)),
]  # fmt: skip


def _socket(family: str, kind: str = "SOCK_STREAM", protocol: int = 0) -> str:
    return f"import socket\nrefused(socket.socket, {family}, socket.{kind}, {protocol})"


_FAMILIES = [
    ("AF_NETLINK (the machine's interfaces)", _socket("16", "SOCK_RAW")),
    ("AF_PACKET (the wire itself)", _socket("17", "SOCK_RAW", 0x300)),
    ("AF_VSOCK (the machine's hypervisor)", _socket("40")),
    ("AF_ALG (the kernel's ciphers)", _socket("38", "SOCK_SEQPACKET")),
    ("AF_BLUETOOTH", _socket("31", "SOCK_RAW", 1)),
    ("AF_XDP", _socket("44", "SOCK_RAW")),
    ("AF_CAN", _socket("29", "SOCK_RAW", 1)),
    ("AF_TIPC and AF_RDS, AF_KCM, AF_NFC, AF_SMC", "import socket\nfor family in (30, 21, 41, 39, 43):\n    refused(socket.socket, family, 5)"),
    ("raw IP", _socket("2", "SOCK_RAW", 1)),
    ("every family there is, of every type",
     "import socket\nopened = []\nfor family in range(64):\n    for kind in range(1, 11):\n        for flags in (0, 0o2000000):\n            try: opened.append((family, kind, call('socket', family, kind | flags, 0)))\n"
     "            except OSError: pass\nwon(opened) if opened else held()"),
]  # fmt: skip
_REACH = [
    Attack("connect to a service of the machine (TCP)", "import socket\nrefused(socket.create_connection, ('127.0.0.1', TCP), 2)", ("seccomp", "network", "landlock")),
    Attack("connect to a service of the machine (IPv6)", "import socket\nrefused(socket.create_connection, ('::1', TCP6), 2)", ("seccomp", "network", "landlock")),
    Attack("send to a service of the machine (UDP)", "import socket\nrefused(lambda: socket.socket(2, 2).sendto(b'x', ('127.0.0.1', UDP)))", ("seccomp", "network")),
    Attack("connect to a socket in the file system", "import socket\nrefused(lambda: socket.socket(1).connect(NAMED))", ("seccomp", "mounts")),
    Attack("connect to an abstract socket", "import socket\nrefused(lambda: socket.socket(1).connect(chr(0) + ABSTRACT))", ("seccomp", "network", "landlock")),
    Attack("send from one half of a pair to a socket in the file system",
           "import socket\nrefused(lambda: socket.socketpair(1, 2)[0].sendto(b'x', DATAGRAM))\nrefused(lambda: socket.socketpair(1, 5)[0].sendto(b'x', DATAGRAM))\n"
           "refused(lambda: socket.socketpair()[0].sendto(b'x', DATAGRAM))", ("seccomp", "mounts")),
    Attack("connect the line anew, to somewhere else", "import socket\nline = socket.socket(fileno=os.dup(3))\nrefused(line.connect, NAMED)\nrefused(call, 'connect', 3, text('x' * 16), 16)", ("seccomp", "mounts")),
    Attack("listen for others", "import socket\nrefused(socket.create_server, ('0.0.0.0', 0))\nrefused(socket.create_server, ('127.0.0.1', 0))", ("seccomp", "network", "landlock")),
    Attack("ask a name server", "import socket\nrefused(socket.getaddrinfo, 'example.com', 80)", ("seccomp", "network")),
    Attack("fetch a page with the library", "import urllib.request\nrefused(urllib.request.urlopen, f'http://127.0.0.1:{TCP}/', timeout=2)", ("seccomp", "network", "landlock")),
    Attack("open a connection without a socket call (io_uring)", "refused(call, 'io_uring_setup', 8, space(120))", ("seccomp", "rlimits")),
]  # fmt: skip
SOCKETS = [
    Attack(f"open a socket of {name}", code, ("seccomp",), modes=ALL) for name, code in _FAMILIES
] + _REACH

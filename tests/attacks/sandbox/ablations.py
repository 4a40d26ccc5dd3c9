"""For each layer an attack that only this layer stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Ablation:
    layer: str
    name: str
    mode: str
    code: str
    """Prints BREACH where it gets through. `CANARY` and the other names of the scene are there."""
    language: str = "python"
    network: bool = False
    package: bool = False
    """With a directory of packages, which holds a file of the user's that has no mode, and a program."""
    processes: int = 1
    limits: dict[str, Any] = field(default_factory=dict)
    also_off: tuple[str, ...] = ()
    """Left out in both runs."""

    @property
    def title(self) -> str:
        return f"{self.layer}: {self.name}"


_FORKS = "n=0; while [ $n -lt 40 ]; do sleep 3 & n=$((n+1)); done 2>/dev/null; [ $n -ge 40 ] && echo BREACH"
_CONNECT = "import socket\ntry: socket.create_connection(('127.0.0.2', 3128), 2); won()\nexcept OSError as error: held(error)"

ABLATIONS = [
    Ablation("mounts", "learn whether a file of the host's exists, and its size", "root", "refused(os.stat, CANARY)"),
    Ablation("mounts", "change the mode of a file of the user's", "userns", "refused(os.chmod, CANARY, 0o640)"),
    Ablation("processes", "leave a process behind", "root", "(setsid sleep 7.25 >/dev/null 2>&1 &); sleep 0.3; echo held", "shell", processes=8),
    Ablation("processes", "see a program of somebody else's", "userns", "try: os.getsid(os.getppid() or 99999); won()\nexcept OSError: held()"),
    Ablation("network", "with a network grant, reach a service of the machine on the proxy's port", "root", _CONNECT, network=True),
    Ablation("host name", "learn the machine's name", "root", "won() if os.uname().nodename == NODE else held()"),
    Ablation("cgroup", "learn which control group the host is in", "root", "found = read('/proc/self/cgroup').decode()\nwon(found) if '/..' not in found and any(line.split(':', 2)[2] != '/' for line in found.splitlines()) else held()"),
    Ablation("uid", "start more processes than it may (root is not counted)", "root", _FORKS, "shell", processes=8),
    Ablation("uid", "read a file of root's in a package", "root", "refused(read, '/packages/given/owned')", package=True),
    Ablation("capabilities", "read a file that its owner has locked", "userns", "refused(read, '/packages/given/locked')", package=True),
    Ablation("rlimits", "take more memory than it may", "userns", "try: x = bytearray(900 << 20); won()\nexcept MemoryError: held()"),
    Ablation("rlimits", "open more files than it may", "landlock", "found = []\ntry:\n    for _ in range(600): found.append(os.dup(0))\n    won()\nexcept OSError: held()"),
    Ablation("landlock", "run a program from a package", "root", "/packages/given/program && echo BREACH", "shell", package=True, processes=8),
    Ablation("landlock", "read a file of the user's", "landlock", "refused(read, CANARY)"),
    Ablation("landlock", "write into the machine's random device", "userns", "refused(lambda: os.write(os.open('/dev/random', os.O_WRONLY), b'x'))"),
    Ablation("seccomp", "make a user namespace", "userns", "refused(call, 'unshare', 0x10000000)"),
    Ablation("seccomp", "open a socket of the kernel's (AF_NETLINK)", "root", "import socket\nrefused(socket.socket, 16, 3, 0)"),
    Ablation("seccomp", "change the mode of a file of the user's", "landlock", "import stat\ntry: os.chmod(CANARY, 0o640)\nexcept OSError: pass\nwon() if os.stat(CANARY).st_mode & 0o777 == 0o640 else held()"),
    Ablation("seccomp", "change the mode of a library of the user's, through a handle for reading", "landlock", "handle = os.open(BASE + '/given/program', os.O_RDONLY)\ntry: os.fchmod(handle, 0o711)\nexcept OSError: pass\nwon() if os.fstat(handle).st_mode & 0o777 == 0o711 else held()", package=True),
    Ablation("seccomp", "hold up whoever writes a library of the user's, with a lease", "landlock", "import fcntl\nrefused(fcntl.fcntl, os.open(BASE + '/given/program', os.O_RDONLY), 1024, 0)", package=True),
    Ablation("seccomp", "send urgent data to the host", "landlock", "import socket\nrefused(socket.socket(fileno=os.dup(3)).send, b'x', socket.MSG_OOB)"),
    Ablation("ipc", "share memory with other programs (with seccomp left out, too)", "root", "refused(call, 'shmget', KEY, 4096, 0)", also_off=("seccomp",)),
]  # fmt: skip

REDUNDANT = {
    "ipc": "stops nothing alone: seccomp refuses every call it is about. Its row leaves seccomp out in both runs.",
    "capabilities": "stop nothing alone in root mode, where the change of user takes them away as well.",
    "network": "stops nothing alone without a network grant: seccomp lets no socket be made.",
}
"""Where a layer stands behind another one."""

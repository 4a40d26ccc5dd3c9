"""Attacks that use up what there is: memory, processes, disk, names, time, output."""

from __future__ import annotations

from .attack import ALONE, Attack

_SMALL = {"memory_bytes": 128 << 20}

BOMBS = [
    Attack("allocate until nothing is left", "found = []\ntry:\n    while True: found.append(bytearray(16 << 20)) if len(found) < 200 else won(len(found)) or os._exit(0)\nexcept MemoryError: n = len(found); found.clear(); held(n)", ("rlimits",), limits=_SMALL),
    Attack("reserve a terabyte", "import mmap\nrefused(mmap.mmap, -1, 1 << 40)\nrefused(bytearray, 1 << 40)", ("rlimits",)),
    Attack("allocate in memory shared with nobody", "import mmap\nfound = []\ntry:\n    for _ in range(100): found.append(mmap.mmap(-1, 16 << 20, flags=mmap.MAP_SHARED))\nexcept OSError: held(len(found))\nelse: won()", ("rlimits",), limits=_SMALL),
    Attack("one enormous string", "refused(lambda: len('x' * (1 << 34)))\nrefused(lambda: len('%099999999999d' % 1))", ("rlimits",), limits=_SMALL),
    Attack("a number too large to print", "try: n = 10 ** 10 ** 8; won(len(str(n)))\nexcept (MemoryError, ValueError, OverflowError): held()", ("rlimits", "host limits"), limits={"cpu_s": 1, "wall_s": 3}, ends=("cpu", "time")),
    Attack("a regular expression that never ends", "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')\nwon()", ("rlimits", "host limits"), limits={"cpu_s": 1, "wall_s": 3}, ends=("cpu", "time")),
    Attack("a decompression bomb", "import zlib\nbomb = zlib.compress(bytes(64 << 20), 9)\ntry:\n    found = [zlib.decompress(bomb) for _ in range(40)]\n    won(len(found))\nexcept MemoryError: held()", ("rlimits",), limits=_SMALL),
    Attack("recurse until the stack is gone", "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): return f()\nclass A:\n    def __repr__(self): return repr([self])\ntry: repr(A())\nexcept (RecursionError, MemoryError): held()", ("own process",), ends=("killed", "memory", "exit 1")),
    Attack("crash the interpreter", "ctypes.string_at(0)", ("own process",), ends=("killed",)),
    Attack("jump into nowhere", "ctypes.CFUNCTYPE(None)(0xdeadbeef)()", ("own process",), ends=("killed",)),
    Attack("start threads without end",
           "import threading, time\nstop = threading.Event()\nn = 0\ntry:\n    while n < 2000: threading.Thread(target=stop.wait, daemon=True).start(); n += 1\nexcept RuntimeError: held(n)\nelse: won(n)\nstop.set()\nos._exit(0)", ("rlimits",)),
    Attack("fork without end", "n = 0\nwhile n < 1000:\n    try: pid = os.fork()\n    except OSError: break\n    n += 1\n    if pid == 0: os._exit(0)\nwon(n) if n else held()", ("seccomp", "rlimits")),
    Attack("spin for ever", "while True: pass", ("rlimits", "host limits"), limits={"cpu_s": 1, "wall_s": 4}, ends=("cpu", "time", "processes")),
    Attack("sleep for ever", "import time\ntime.sleep(1000)", ("host limits",), limits={"wall_s": 0.5}, ends=("time",)),
    Attack("time out before it has begun", "import time\ntime.sleep(1000)", ("host limits",), limits={"wall_s": 0.0005}, ends=("time",)),
    Attack("spin in many threads, to count more time than there is", "import threading, hashlib\nfor _ in range(8): threading.Thread(target=lambda: [hashlib.sha256(bytes(1 << 20)) for _ in range(10 ** 6)], daemon=True).start()\nwhile True: pass", ("rlimits",), limits={"cpu_s": 1, "wall_s": 4}, ends=("cpu", "time", "processes")),
    Attack("fill the disk with one file", "with open('f', 'wb') as stream:\n    try:\n        for _ in range(200): stream.write(bytes(1 << 20)); stream.flush()\n    except OSError as error: held(error.errno)\n    else: won()", ("rlimits", "mounts"), limits={"disk_bytes": 16 << 20}, ends=("disk",)),
    Attack("fill the disk with many files",
           "written = 0\ntry:\n    for n in range(64):\n        with open(f'f{n}', 'wb', buffering=0) as stream: written += stream.write(bytes(8 << 20))\nexcept OSError: held(written)\n"
           "else:\n    import time; time.sleep(2); won(written)", ("mounts", "host limits"), limits={"disk_bytes": 16 << 20}, ends=("disk",)),
    Attack("fill the disk with files that have no name any more",
           "import time\nfound, written = [], 0\ntry:\n    for n in range(64):\n        stream = open('f', 'wb', buffering=0); os.unlink('f'); found.append(stream); written += stream.write(bytes(4 << 20))\nexcept OSError: held(written)\nelse:\n    won(written)",
           ("mounts",), modes=("root", "userns"), limits={"disk_bytes": 16 << 20}),
    Attack("reserve disk at once (fallocate)", "def trick():\n    with open('f', 'wb') as stream: call('fallocate', stream.fileno(), 1, 0, 1 << 34)\n    return os.stat('f').st_blocks\nrefused(trick)", ("mounts", "seccomp"), limits={"disk_bytes": 16 << 20}),
    Attack("a file with a hole of a terabyte", "refused(lambda: open('f', 'wb').truncate(1 << 40))", ("rlimits", "mounts")),
    Attack("a hole that the host would read as zeros", "with open('f', 'wb') as stream: stream.truncate(60 << 20)\nheld()", ("collector",)),
    Attack("use up all names there are", "n = 0\ntry:\n    for n in range(20_000): open(f'f{n}', 'x').close()\nexcept OSError: held(n)\nelse:\n    import time; time.sleep(2); won(n)", ("mounts", "host limits"), limits={"inodes": 500}, ends=("inodes",)),
    Attack("directories as deep as they go", "n = 0\ntry:\n    for n in range(400):\n        os.mkdir('d'); os.chdir('d')\nexcept OSError: pass\nheld(n)", ("mounts", "collector", "host limits"), ends=("inodes",)),
    Attack("a name as long as a path can be", "try:\n    for n in range(30): os.mkdir('n' * 250); os.chdir('n' * 250)\nexcept OSError: pass\nopen('end', 'w').write('x')\nheld()", ("collector",), ends=("inodes",)),
    Attack("print without end", "while True: os.write(1, b'x' * 65536)", ("host limits",), ends=("output",)),
    Attack("print errors without end", "while True: os.write(2, b'no end\\n' * 1000)", ("host limits",), ends=("output",)),
    Attack("print on both, byte by byte, without a line's end", "while True: os.write(1, b'\\0'); os.write(2, b'\\0')", ("host limits",), limits={"output_bytes": 50_000}, ends=("output",)),
    Attack("ask for more time by ignoring every signal",
           "import signal\nfor each in range(1, 65):\n    try: signal.signal(each, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    try: signal.pause()\n    except BaseException: pass", ("killed by handle",), limits={"wall_s": 0.5}, ends=("time",)),
    Attack("stop itself, so that nobody can end it", "import signal, time\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(1000)", ("killed by handle",), limits={"wall_s": 0.5}, ends=("time",)),
    Attack("refuse to end", "import atexit, time\natexit.register(time.sleep, 1000)\nclass A:\n    def __del__(self): time.sleep(1000)\nx = A()\nheld()", ("host limits",), limits={"wall_s": 0.5}, ends=("time",)),
    Attack("hide in a thread after the program's end", "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nheld()", ("host limits",), limits={"wall_s": 0.5}, ends=("time",)),
    Attack("end the first thread and live on in another",
           "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\nheld()\ncall('exit', 0)", ("killed by handle",), limits={"wall_s": 0.5}, ends=("time",)),
    Attack("end from a thread while the others run", "import threading, time\nthreading.Thread(target=lambda: os._exit(9)).start()\ntime.sleep(1000)", ("own process",), ends=("exit 9",)),
    Attack("become a daemon (double fork, setsid)",
           "refused(os.setsid)\ndef trick():\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n            import time; time.sleep(100)\n        os._exit(0)\nrefused(trick)", ("seccomp", "processes")),
    Attack("queue signals and timers until the kernel has no memory", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [34])\nn = 0\ntry:\n    for n in range(20_000): call('timer_create', 1, None, space(8))\nexcept OSError: pass\nheld(n) if n < 2000 else won(n)", ("rlimits",)),
    Attack("fill pipes and sockets with what nobody reads",
           "import fcntl, socket\nkept, total = [], 0\ntry:\n    while True:\n        a, b = os.pipe(); kept += [a, b]; os.set_blocking(b, False)\n        try: fcntl.fcntl(b, 1031, 1 << 20)\n        except OSError: pass\n        total += os.write(b, bytes(1 << 20))\nexcept OSError: pass\nwon(total) if total > 32 << 20 else held(total)", ("rlimits", "seccomp")),
]  # fmt: skip
BOMBS += [
    Attack("fill the disk with files that have no name any more, where the host's disk is used",
           "import time\nfound = []\ntry:\n    for n in range(100_000):\n        stream = open('f', 'wb', buffering=0); os.unlink('f'); found.append(stream); stream.write(bytes(4 << 20))\nexcept OSError: held()\nelse: won()",
           ("rlimits", "host limits"), modes=ALONE, limits={"disk_bytes": 4 << 20, "files": 16}, ends=("disk",)),
]  # fmt: skip

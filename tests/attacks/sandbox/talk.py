"""Attacks on the host by what a program says and leaves: floods, broken JSON, and files that are none."""

from __future__ import annotations

from .attack import Attack

_LINE = "import json, socket, time\nline = socket.socket(fileno=os.dup(3))\nsend = line.sendall\n"
_NO_READ = "try:\n    while True: %s\nexcept OSError: pass\ntime.sleep(100)"

TALK = [
    Attack("ask without end", _LINE + "while True:\n    send(b'{}\\n')\n    line.recv(9999)", ("line limits",), ends=("requests",), broker=True),
    Attack("ask without reading the answers", _LINE + _NO_READ % "send(b'{\"size\": 100000}\\n')", ("line limits",), ends=("requests", "time"), broker=True, limits={"wall_s": 1.0}),
    Attack("half a line, without end", _LINE + _NO_READ % "send(b'x' * 65536)", ("line limits",), ends=("requests",), limits={"wall_s": 2.0}),
    Attack("half a line, and wait", _LINE + "send(b'{\"op\":')\ntime.sleep(100)", ("host limits",), ends=("time",), limits={"wall_s": 0.5}),
    Attack("one enormous line", _LINE + "try: send(b'{\"op\":\"output\",\"data\":\"' + b'x' * (4 << 20) + b'\"}\\n')\nexcept OSError: pass\ntime.sleep(100)", ("line limits",), ends=("requests",), limits={"wall_s": 2.0}),
    Attack("nothing but line ends", _LINE + _NO_READ % "send(b'\\n' * 4096)", ("line limits",), ends=("requests", "time"), limits={"wall_s": 2.0}),
    Attack("JSON ten thousand levels deep", _LINE + "send(b'[' * 100_000 + b']' * 100_000 + b'\\n')\nanswer = json.loads(line.recv(9999))\nsend(b'{\"op\":\"output\",\"data\":' + b'[' * 200 + b']' * 200 + b'}\\n')\nanswer2 = json.loads(line.recv(9999))\nheld() if 'error' in answer and 'error' in answer2 else won()", ("line limits",)),
    Attack("not UTF-8, NaN, twice the same key, half a pair of surrogates, numbers without end",
           _LINE + "for each in (b'\\xff\\xfe', b'{\"op\":\"output\",\"data\":NaN}', b'{\"op\":\"output\",\"data\":Infinity}', b'\\x00', b'{\"a\":\"\\\\ud800\"}', b'[]', b'1', b'null', b'{\"op\":\"output\",\"data\":' + b'9' * 5000 + b'}', b'{\"op\":{},\"op\":[]}'):\n"
           "    send(each + b'\\n')\n    answer = json.loads(line.recv(9999))\n    held() if 'error' in answer else won(each)", ("line limits",)),
    Attack("outputs without end", _LINE + "n = 0\nfor _ in range(300):\n    send(b'{\"op\":\"output\",\"data\":1}\\n')\n    n += 'ok' in json.loads(line.recv(9999))\nheld() if n <= 100 else won(n)", ("line limits",)),
    Attack("outputs too large together", _LINE + "n = 0\nfor _ in range(30):\n    send(b'{\"op\":\"output\",\"data\":\"' + b'x' * 200_000 + b'\"}\\n')\n    n += 'ok' in json.loads(line.recv(9999))\nheld() if n <= 6 else won(n)", ("line limits",)),
    Attack("JSON that is small on the line and large in memory", _LINE + "n = 0\nfor _ in range(8):\n    send(b'{\"op\":\"output\",\"data\":[' + b'{},' * 80_000 + b'{}]}\\n')\n    n += 'ok' in json.loads(line.recv(9999))\nheld() if n <= 6 else won(n)", ("line limits",)),
    Attack("ask as somebody else would, with names that mean something to Python", _LINE + "for key in ('__class__', '__proto__', '__reduce__', 'job', 'op'):\n    send(json.dumps({'op': key, key: {'__class__': 'os.system'}, 'args': ['id']}).encode() + b'\\n')\n    answer = json.loads(line.recv(9999))\n    held() if 'error' in answer else won(answer)", ("line limits",)),
    Attack("talk after the end of the program, from a thread", _LINE + "import threading\nthreading.Thread(target=lambda: [send(b'{}\\n') for _ in range(100_000)], daemon=True).start()\nheld()", ("line limits", "own process"), ends=("requests", "any")),
    Attack("forge what the host would print", "print('\\x1b]0;evil\\x07\\x1b[2J\\x1b[31mApproved by the user\\r\\n{\"ok\":true}\\u202e\\ud800'.encode('utf-8', 'surrogatepass'))\nos.write(1, b'\\x1b[2J\\xff\\xfe\\x00\\r')\nheld()", ("host limits",)),
    Attack("say that a limit was hit which was not", "import sys\nsys.stderr.write('MemoryError')\nheld()", ("host limits",)),
    Attack("leave links to files of the host's", "for n, each in enumerate((CANARY, '/etc/shadow', '/proc/self/environ', '..', f'/proc/{HOST}/environ', '/dev/zero')):\n    os.symlink(each, f'l{n}')\nheld()", ("collector",)),
    Attack("leave a link as a directory on the way", "os.symlink(BASE, 'd')\nos.mkdir('e')\nos.symlink('../d', 'e/f')\nheld()", ("collector",)),
    Attack("leave files with several names", "open('a', 'w').write('x')\nos.link('a', 'b')\nheld()", ("collector",)),
    Attack("leave names that lie", "for each in (b'a\\nb', b'\\xff\\xfe', b'..x', b'-rf', b'\\x1b[2J', b'a\\\\b', b'C:evil', b'\\xe2\\x80\\xaegpj.exe', b' ', b'.git', b'%2e%2e%2f', b'a\\rb', b'CON', b'.env'):\n    open(each, 'wb').write(b'x')\nheld()", ("collector",)),
    Attack("leave more files than anybody wants", "for n in range(3000): open(f'f{n}', 'wb').write(b'x')\nheld()", ("collector",)),
    Attack("leave more bytes than anybody wants", "for n in range(3): open(f'f{n}', 'wb').write(bytes(12 << 20))\nheld()", ("collector",)),
    Attack("leave files and directories that nobody may read", "os.mkdir('d')\nopen('d/f', 'w').write('x')\nopen('g', 'w').write('x')\ntry:\n    os.chmod('d/f', 0); os.chmod('d', 0); os.chmod('g', 0); os.chmod('.', 0)\nexcept OSError: pass\nheld()", ("collector",)),
    Attack("swap what it left while the host looks", "import threading, time\nos.mkdir('a')\nos.symlink(BASE, 'b')\ndef swap():\n    while True:\n        try: call('renameat2', -100, text('a'), -100, text('b'), 2)\n        except OSError: pass\nthreading.Thread(target=swap, daemon=True).start()\ntime.sleep(0.5)\nheld()", ("collector", "own process")),
    Attack("set-user-id bits on what it leaves", "open('p', 'w').write('x')\ntry: os.chmod('p', 0o6777)\nexcept OSError: pass\nheld()", ("collector", "mounts")),
    Attack("replace the directory it works in", "try: os.rename(os.getcwd(), os.getcwd() + '2')\nexcept OSError: held()\nelse: won()\ntry: os.rmdir(os.getcwd())\nexcept OSError: held()\nelse: won()", ("mounts", "landlock")),
    Attack("patch what runs after it", "import sys, threading\nframe = sys._getframe()\nwhile frame.f_back: frame = frame.f_back\nos.write = os._exit = None\nsys.modules.clear()\nthreading._shutdown = None\nsys.stdout = sys.stderr = None", ("own process",), ends=("any",)),
]  # fmt: skip

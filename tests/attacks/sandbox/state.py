"""Attacks on the next job: what one program leaves behind for another, or finds of one that ran before."""

from __future__ import annotations

from .attack import Attack

_MARK = "mark-of-the-first-program"

STATE = [
    Attack("leave a module for the next program", "import sys, types\nsys.modules['evil'] = types.ModuleType('evil')\nimport json\njson.dumps = lambda *_: 'BREACH'\nheld()",
           ("own process",), then="import json, sys\nwon() if 'evil' in sys.modules or json.dumps(1) != '1' else held()"),
    Attack("leave a builtin for the next program", "import builtins\nbuiltins.open = builtins.print = None\nbuiltins.evil = 1\nheld()", ("own process",), then="import builtins\nwon() if hasattr(builtins, 'evil') or open is None else held()"),
    Attack("leave environment, directory, umask and signals", "import signal\nos.environ['EVIL'] = '1'\nos.mkdir('d')\nos.chdir('d')\nos.umask(0o777)\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nheld()",
           ("own process",), then="import signal\nwon() if 'EVIL' in os.environ or os.getcwd().endswith('/d') or os.umask(0o22) != 0o22 or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL else held()"),
    Attack("leave a file for the next program", "open('left', 'w').write('x')\nos.makedirs(os.environ['TMPDIR'] + '/d', exist_ok=True)\nheld()", ("mounts", "own process"), then="import tempfile\nwon(os.listdir('.')) if set(os.listdir('.')) - {'.tmp'} or os.listdir(tempfile.gettempdir()) else held()"),
    Attack("leave a trace or a profile function", "import sys, threading\nsys.settrace(lambda *_: won())\nthreading.settrace(lambda *_: won())\nsys.setprofile(None)\nsys.settrace(None)\nheld()", ("own process",), then="import sys, threading\nwon() if sys.gettrace() or threading.gettrace() else held()"),
    Attack("leave an import hook or a path", "import sys\nsys.path.insert(0, '/work')\nsys.meta_path.insert(0, None)\nsys.path_hooks.clear()\nheld()", ("own process",), then="import sys\nwon(sys.path) if '/work' in sys.path or None in sys.meta_path or not sys.path_hooks else held()"),
    Attack("leave something in memory that is shared with the zygote",
           "import mmap, math\nctypes.memset(id(math.pi) + 16, 0, 8)\nheld()", ("own process",), then="import math\nwon(math.pi) if math.pi < 3 else held()"),
    Attack("find the code of an earlier program in memory", f"secret_of_the_first = '{_MARK}'.upper()\nheld()", ("own process", "clean start"),
           then="start = libc.sbrk\nstart.restype = ctypes.c_void_p\nend = start(0)\nfound = b''\nsize = 1 << 20\n"
                "while size <= 16 << 20:\n    a, b = os.pipe()\n    os.set_blocking(b, False)\n"
                "    try: n = call('write', b, ctypes.c_void_p(end - size), 65536)\n    except OSError: break\n    finally: os.close(a), os.close(b)\n    size += 1 << 20\n"
                "size -= 1 << 20\nmemory = ctypes.string_at(end - size, size) if size > 0 else b''\n"
                "won() if ('mark-of-the-first-' + 'program').upper().encode() in memory else held(size)"),
    Attack("learn something of the zygote from its arguments", "import sys\nwon(sys.argv) if len(sys.argv) != 1 or sys.flags.isolated != 1 else held()\nrefused(read, '/proc/self/cmdline') if not os.path.exists('/proc/self') else held()", ("clean start",)),
    Attack("find anything in the environment", "allowed = {'HOME', 'TMPDIR', 'PATH', 'LANG', 'LC_CTYPE', 'PYTHONHASHSEED'}\nlibc.getenv.restype = ctypes.c_char_p\nwon(dict(os.environ)) if set(os.environ) - allowed or libc.getenv(b'SCENE_SECRET') else held()", ("clean start",)),
    Attack("foresee the random numbers of the next program", "import random\nopen('n', 'w').write(str(random.random()))\nheld()", ("own process",), then="import random, secrets, uuid, tempfile\nheld(random.random())"),
    Attack("import a package that nobody gave it", "import sys, importlib.util\nnames = ('pip', 'setuptools', 'pydantic', 'toolgate', 'orjson', 'numpy', 'yaml')\nfound = [each for each in names if importlib.util.find_spec(each)]\nwon(found) if found else held()", ("clean start", "mounts")),
]  # fmt: skip

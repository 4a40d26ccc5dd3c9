"""Attacks with system calls that a program has no business with, and on the filter itself."""

from __future__ import annotations

from .attack import Attack

_MACHINE_CODE = (
    "import mmap, platform\nif platform.machine() != 'x86_64':\n    held('another machine')\n    raise SystemExit\n"
    "page = mmap.mmap(-1, 4096, prot=7)\npage.write(bytes.fromhex('%s'))\n"
    "run = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))\nresult = run()\n"
    "won(result) if result > 0 else held(result)"
)  # fmt: skip
# 32-bit getpid (20) by int 0x80; x32's getpid (0x40000027); 32-bit socketcall (102).
_INT80 = "b814000000cd80c3"
_X32 = "b8270000400f05c3"
_SOCKETCALL = "b866000000bb01000000cd80c3"

KERNEL = [
    Attack("call the 32-bit kernel by int 0x80", _MACHINE_CODE % _INT80, ("seccomp",), ends=("killed",)),
    Attack("open a socket by the 32-bit socketcall", _MACHINE_CODE % _SOCKETCALL, ("seccomp",), ends=("killed",)),
    Attack("call the x32 kernel", _MACHINE_CODE % _X32, ("seccomp",), ends=("killed",)),
    Attack("make a user namespace, to be root in it", "refused(call, 'unshare', 0x10000000)", ("seccomp",)),
    Attack("make a namespace with clone", "refused(call, 'clone', 0x10000000 | 17, 0, 0, 0, 0)", ("seccomp",)),
    Attack("make a namespace of time with clone", "refused(call, 'clone', 0x80 | 17, 0, 0, 0, 0)", ("seccomp",)),
    Attack("make a namespace with clone3, whose flags no filter sees",
           "import struct\nargs = ctypes.create_string_buffer(struct.pack('11Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))\nrefused(call, 'clone3', args, 88)", ("seccomp",)),
    Attack("mount a file system", "refused(call, 'mount', text('tmpfs'), text('/work'), text('tmpfs'), 0, None)", ("seccomp", "capabilities")),
    Attack("mount with the newer calls", "for name, args in (('fsopen', (text('tmpfs'), 0)), ('open_tree', (-100, text('/'), 1)), ('fspick', (-100, text('/'), 0)), ('move_mount', (3, text(''), -100, text('/work'), 4)),"
           " ('mount_setattr', (-100, text('/'), 0, space(32), 32))):\n    refused(call, name, *args)", ("seccomp", "capabilities")),
    Attack("take a mount away", "refused(call, 'umount2', text('/proc'), 2)\nrefused(call, 'umount2', text('/'), 2)", ("seccomp", "capabilities")),
    Attack("change the root (chroot, pivot_root)", "os.mkdir('d')\nrefused(os.chroot, 'd')\nrefused(call, 'pivot_root', text('.'), text('d'))", ("seccomp", "capabilities")),
    Attack("load a program into the kernel (bpf)", "refused(call, 'bpf', 0, space(128), 128)", ("seccomp",)),
    Attack("watch the machine (perf_event_open)", "refused(call, 'perf_event_open', space(128), 0, -1, -1, 0)", ("seccomp",)),
    Attack("handle page faults of its own (userfaultfd)", "refused(call, 'userfaultfd', 1)", ("seccomp",)),
    Attack("read keys of the user's session", "refused(call, 'keyctl', 0, -3, 0, 0, 0)\nrefused(call, 'add_key', text('user'), text('x'), text('x'), 1, -4)\nrefused(call, 'request_key', text('user'), text('x'), None, 0)", ("seccomp",)),
    Attack("change its personality", "refused(call, 'personality', 0x0040000)", ("seccomp",)),
    Attack("type into a terminal (TIOCSTI), or open one's line (TIOCLINUX)", "import fcntl\nfor each in (0, 1, 2, 3):\n    refused(fcntl.ioctl, each, 0x5412, b'x')\n    refused(fcntl.ioctl, each, 0x541C, b'x')", ("seccomp",)),
    Attack("clone a file or change its flags with an ioctl", "import fcntl\nwith open('f', 'w') as stream:\n    refused(fcntl.ioctl, stream, 0x40049409, 0)\n    refused(fcntl.ioctl, stream, 0x40086602, bytes(8))", ("seccomp", "landlock")),
    Attack("run a program that exists only in memory (memfd_create, execveat)", "refused(call, 'memfd_create', text('x'), 0)\nrefused(call, 'execveat', 0, text(''), 0, 0, 0x1000)", ("seccomp",)),
    Attack("run a program of the machine", "refused(os.execv, '/bin/sh', ['sh', '-c', 'echo BREACH'])\nimport subprocess\nrefused(subprocess.run, ['/bin/true'])", ("seccomp", "mounts", "landlock")),
    Attack("run a program of its own", "import shutil, sys\nopen('p', 'wb').write(b'#!/bin/sh\\necho BREACH\\n')\ntry: os.chmod('p', 0o755)\nexcept OSError: pass\nrefused(os.execv, 'p', ['p'])", ("seccomp", "mounts", "landlock")),
    Attack("start a process (fork, vfork, clone, posix_spawn)",
           "def trick(name, *args):\n    if name not in CALLS: return held()\n    try: pid = call(name, *args)\n    except OSError as error: return held(error.errno)\n    if pid == 0: os._exit(0)\n    won(name)\n"
           "trick('fork')\ntrick('vfork')\ntrick('clone', 17, 0, 0, 0, 0)\ntrick('clone', 0x4100, 0, 0, 0, 0)\nrefused(os.posix_spawn, '/bin/true', ['true'], {})\nrefused(os.fork)", ("seccomp",)),
    Attack("start a process with the library", "import multiprocessing\nrefused(multiprocessing.get_context('fork').Process(target=won).start)", ("seccomp",)),
    Attack("use the older and newer waits for events of others (fanotify, inotify)", "refused(call, 'fanotify_init', 0, 0)\nrefused(call, 'inotify_init1', 0)", ("seccomp",)),
    Attack("shared memory and queues of System V", "refused(call, 'shmget', 0, 4096, 0o1600)\nrefused(call, 'msgget', 0, 0o1600)\nrefused(call, 'semget', 0, 1, 0o1600)", ("seccomp", "ipc")),
    Attack("message queues of POSIX", "refused(call, 'mq_open', text('x'), 0o102, 0o600, None)", ("seccomp", "ipc", "rlimits")),
    Attack("set the clock", "refused(call, 'clock_settime', 0, space(16))\nrefused(call, 'adjtimex', space(256)) if 'adjtimex' in CALLS else None", ("seccomp", "capabilities")),
    Attack("load a module, reboot, swap, change quotas, read the kernel's log", "for name, args in (('init_module', (space(8), 8, text(''))), ('finit_module', (0, text(''), 0)), ('reboot', (0xfee1dead, 672274793, 0, 0)), ('swapon', (text('f'), 0)),"
           " ('quotactl', (0, 0, 0, 0)), ('syslog', (3, space(64), 64)), ('acct', (text('f'),)), ('kexec_load', (0, 0, 0, 0))):\n    refused(call, name, *args)", ("seccomp", "capabilities")),
    Attack("change the machine's name", "refused(call, 'sethostname', text('evil'), 4)", ("seccomp", "capabilities", "host name")),
    Attack("flush every disk of the machine again and again", "refused(call, 'syncfs', 0)\ntry: call('sync')\nexcept OSError: held()\nelse: won()", ("seccomp",)),
    Attack("lock memory, so that it cannot be swapped", "refused(call, 'mlockall', 3)\nrefused(call, 'mlock', space(4096), 4096)\nrefused(call, 'memfd_secret', 0)", ("seccomp", "rlimits")),
    Attack("move memory and policies between nodes", "refused(call, 'move_pages', 0, 0, 0, 0, 0, 0)\nrefused(call, 'migrate_pages', VICTIM, 0, 0, 0)\nrefused(call, 'set_mempolicy', 0, 0, 0)\nrefused(call, 'process_madvise', 3, 0, 0, 4, 0)", ("seccomp",)),
    Attack("use calls that are newer than the filter", "refused(call, 'read', 0) if False else None\nfor number in (*range(463, 600), 9999):\n    try: CALLS['new'] = number; call('new', 0, 0, 0)\n    except OSError: continue\n    won(number)\nheld()", ("seccomp",)),
    Attack("hide a flag in the upper half of an argument", "refused(call, 'clone', (1 << 40) | 17, 0, 0, 0, 0)\nrefused(call, 'socket', (1 << 40) | 1, 1, 0)\nrefused(call, 'prctl', (1 << 40) | 38 ^ 38 | 4, 1, 0, 0, 0)\nrefused(call, 'ioctl', 1, (1 << 40) | 0x5412, text('x'))", ("seccomp",)),
    Attack("put a filter of its own in front, to fool what comes after", "refused(call, 'seccomp', 1, 0, space(16))\nrefused(call, 'prctl', 22, 2, space(16), 0, 0)\nrefused(call, 'prctl', 22, 1, 0, 0, 0)", ("seccomp",)),
    Attack("restrict itself with Landlock once more", "refused(call, 'landlock_create_ruleset', space(8), 8, 0)\nrefused(call, 'landlock_restrict_self', 3, 0)", ("seccomp",)),
    Attack("be root by a set-user-id program", "import glob\nfor each in ('/usr/bin/su', '/bin/su', '/usr/bin/sudo', '/usr/bin/passwd'):\n    refused(os.execv, each, [each, '-c', 'echo BREACH'])", ("seccomp", "mounts", "no new privileges", "landlock")),
    Attack("jump over the filter by changing its own code", "libc.mprotect(ctypes.c_void_p(ctypes.cast(libc.socket, ctypes.c_void_p).value & ~4095), 8192, 7)\nimport socket\nrefused(socket.socket)\nrefused(socket.socket, 1, 1)", ("seccomp",)),
]  # fmt: skip

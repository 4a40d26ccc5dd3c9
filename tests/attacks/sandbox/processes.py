"""Attacks on other processes: what /proc shows, signals, tracing; and on the process's own past."""

from __future__ import annotations

from .attack import ALONE, NAMESPACES, Attack

_EVERYONE = (
    "for pid in {HOST, VICTIM, os.getppid(), *range(1, 40)} - {os.getpid(), 0}:\n"
    "    try:\n        %s\n    except OSError:\n        continue\n    won(pid)\n    break\nelse:\n    held()"
)

PROCESSES = [
    Attack("read the environment of the host and of others", _EVERYONE % "read(f'/proc/{pid}/environ')", ("processes", "landlock")),
    Attack("read the arguments of others", _EVERYONE % "read(f'/proc/{pid}/cmdline')", ("processes", "landlock")),
    Attack("read the memory of others", _EVERYONE % "os.pread(os.open(f'/proc/{pid}/mem', os.O_RDONLY), 8, 0x400000)", ("processes", "landlock")),
    Attack("read the memory map of others", _EVERYONE % "read(f'/proc/{pid}/maps')", ("processes", "landlock")),
    Attack("go through the root of another process", _EVERYONE % "read(f'/proc/{pid}/root' + CANARY)", ("processes", "landlock")),
    Attack("go through the working directory of another process", _EVERYONE % "os.listdir(f'/proc/{pid}/cwd')", ("processes", "landlock")),
    Attack("take a handle of another process from /proc", _EVERYONE % "read(f'/proc/{pid}/fd/{HANDLE}')", ("processes", "landlock")),
    Attack("see what program another process runs", _EVERYONE % "os.readlink(f'/proc/{pid}/exe')", ("processes", "landlock", "not dumpable")),
    Attack("list the machine's processes",
           "try: found = [each for each in os.listdir('/proc') if each.isdigit()]\nexcept OSError: found = []\n"
           "won(found) if set(found) - {'1'} else held()", ("processes", "landlock")),
    Attack("learn that a process exists", _EVERYONE % "os.getsid(pid)", ("processes",), modes=NAMESPACES),
    Attack("read its own environment as the kernel shows it", "refused(read, '/proc/self/environ')", ("not dumpable", "landlock")),
    Attack("patch itself through /proc/self/mem",
           "refused(os.open, '/proc/self/mem', os.O_RDWR)", ("not dumpable", "landlock")),
    Attack("go through /proc/self/root and /proc/self/cwd",
           "refused(read, '/proc/self/root' + CANARY)\nrefused(read, '/proc/self/cwd/../../../..' + CANARY)", ("mounts", "landlock")),
    Attack("go through /proc/thread-self and /proc/self/task",
           "import threading\nrefused(read, '/proc/thread-self/root' + CANARY)\n"
           "refused(read, f'/proc/self/task/{threading.get_native_id()}/root' + CANARY)", ("mounts", "landlock")),
    Attack("change a setting of the kernel", "refused(write, '/proc/sys/kernel/core_pattern')\nrefused(write, '/proc/sysrq-trigger')", ("mounts", "landlock", "uid")),
    Attack("read settings, keys and logs of the kernel",
           "for each in ('sys/kernel/random/boot_id', 'keys', 'kcore', 'kallsyms', 'net/tcp', 'modules', 'cmdline', 'version', '1/cgroup/..'):\n"
           "    refused(read, '/proc/' + each)", ("mounts", "landlock")),
    Attack("raise its chance to survive when memory runs out", "refused(write, '/proc/self/oom_score_adj')", ("mounts", "landlock", "not dumpable")),
    Attack("write a user map, to become root in a namespace", "refused(write, '/proc/self/uid_map')", ("mounts", "landlock", "not dumpable")),
    Attack("enter a namespace of the host through /proc/1/ns", "refused(lambda: call('setns', os.open(f'/proc/{HOST}/ns/mnt', os.O_RDONLY), 0))", ("processes", "landlock", "seccomp")),
    Attack("kill the host", _EVERYONE.replace(", *range(1, 40)", "") % "os.kill(pid, 9)", ("processes", "landlock", "seccomp")),
    Attack("signal the zygote", "import signal\npid = os.getppid()\nrefused(os.kill, pid, signal.SIGSTOP) if pid else held('no parent')", ("processes", "landlock", "seccomp")),
    Attack("kill everything it may (kill -1)",
           "try: os.kill(-1, 9)\nexcept OSError: pass\nheld()", ("processes", "landlock", "seccomp"), ends=("killed",)),
    Attack("kill by thread number (tkill, tgkill, rt_sigqueueinfo)",
           "for name, args in (('tkill', (VICTIM, 9)), ('tgkill', (VICTIM, VICTIM, 9)), ('rt_sigqueueinfo', (VICTIM, 9, space(128)))):\n"
           "    refused(call, name, *args)", ("processes", "landlock", "seccomp")),
    Attack("kill through a handle of a process",
           "refused(lambda: call('pidfd_send_signal', call('pidfd_open', VICTIM, 0), 9, None, 0))", ("seccomp", "processes", "landlock")),
    Attack("let the kernel send the signal, as the owner of a pipe (F_SETOWN)",
           "import fcntl, signal\ndef trick():\n    a, b = os.pipe()\n    fcntl.fcntl(a, fcntl.F_SETOWN, VICTIM)\n    fcntl.fcntl(a, 10, signal.SIGKILL)\n"
           "    fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\n    os.write(b, b'x')\n    return 'asked for it'\nrefused(trick)",
           ("seccomp", "processes", "landlock")),
    Attack("the same with F_SETOWN_EX", "import fcntl, struct\nrefused(fcntl.fcntl, os.pipe()[0], 15, struct.pack('ii', 1, VICTIM))", ("seccomp", "processes")),
    Attack("trace another process (ptrace)", "refused(call, 'ptrace', 16, VICTIM, 0, 0)", ("seccomp", "processes", "landlock")),
    Attack("trace the zygote", "refused(call, 'ptrace', 0x4206, os.getppid() or VICTIM, 0, 0)", ("seccomp", "processes", "landlock")),
    Attack("read the memory of another process (process_vm_readv)",
           "import struct\ndata = space(64)\nhere = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 8))\n"
           "there = ctypes.create_string_buffer(struct.pack('QQ', 0x400000, 8))\n"
           "refused(call, 'process_vm_readv', VICTIM, here, 1, there, 1, 0)", ("seccomp", "processes", "landlock")),
    Attack("take a handle out of another process (pidfd_getfd)",
           "refused(lambda: call('pidfd_getfd', call('pidfd_open', VICTIM, 0), 1, 0))", ("seccomp", "processes")),
    Attack("compare kernel objects with another process (kcmp)", "refused(call, 'kcmp', os.getpid(), VICTIM, 0, 0, 0)", ("seccomp", "processes")),
    Attack("change limits of another process", "import resource\nrefused(resource.prlimit, VICTIM, resource.RLIMIT_NOFILE, (1, 1))", ("seccomp", "processes")),
    Attack("change the priority of another process", "refused(os.setpriority, os.PRIO_PROCESS, VICTIM, 19)", ("seccomp", "processes")),
    Attack("bind another process to one core", "refused(os.sched_setaffinity, VICTIM, {0})", ("seccomp", "processes")),
    Attack("find the robust list of another process", "refused(call, 'get_robust_list', VICTIM, space(8), space(8))", ("processes", "landlock")),
    Attack("raise its own limits again",
           "import resource\nfor each in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_NPROC):\n"
           "    try: resource.setrlimit(each, (1 << 40, 1 << 40))\n    except (OSError, ValueError): held()\n    else: won(each)", ("rlimits", "capabilities", "uid")),
    Attack("become another user",
           "for each in (os.setuid, os.setgid, os.seteuid, os.setegid):\n    refused(each, 0)\n"
           "refused(os.setgroups, [0])\nrefused(os.setresuid, 0, 0, 0)", ("seccomp", "capabilities", "uid")),
    Attack("take capabilities back",
           "import struct\nrefused(call, 'capset', ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0)), ctypes.create_string_buffer(b'\\xff' * 24))",
           ("seccomp", "capabilities")),
    Attack("have any capability at all",
           "import struct\nbuffer = space(24)\ncall('capget', ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0), 8), buffer)\n"
           "won(buffer.raw.hex()) if any(buffer.raw) else held()\n"
           "kept = [each for each in range(40) if libc.prctl(23, each, 0, 0, 0) == 1]\nheld() if True else won(kept)", ("capabilities", "uid")),
    Attack("take prctl settings back (dumpable, death signal, keepcaps, seccomp, subreaper)",
           "for option, value in ((1, 0), (4, 1), (8, 1), (22, 0), (36, 1), (47, 2), (40, 1)):\n    refused(lambda: call('prctl', option, value, 0, 0, 0))", ("seccomp",)),
    Attack("find what the zygote was told in its frames",
           "import sys\nframe, found = sys._getframe(), []\nwhile frame := frame.f_back:\n    found += [value for value in frame.f_locals.values() if hasattr(value, 'control')]\n"
           "for each in found:\n    refused(each.control.send, b'{\"op\":\"up\"}')\nheld()", ("closed handles",)),
    Attack("find secrets of the host among the objects in memory",
           "import gc\nfound = [each for each in gc.get_objects() if isinstance(each, (dict, list, tuple)) and SECRET_HALF + 'x'[:0] in repr(each)[:10_000] and each is not globals()]\n"
           "found = [each for each in found if len(repr(each)) < 10_000 and '__name__' not in each and 'SECRET_HALF' not in each]\n"
           "text_ = ' '.join(map(repr, found))\nimport re\nwon() if re.search(SECRET_HALF + '[0-9a-f]{24}', text_) else held()", ("clean start",)),
]  # fmt: skip
PROCESSES += [
    Attack("see the host's name", "import socket\nwon(os.uname().nodename) if os.uname().nodename == NODE else held()", ("host name",), modes=NAMESPACES),
    Attack("see where in the control groups the host is",
           "found = read('/proc/self/cgroup').decode()\nwon(found) if any(line.split(':', 2)[2] != '/' for line in found.splitlines()) else held()",
           ("cgroup",), modes=NAMESPACES),
    Attack("see where in the control groups the host is, without a namespace", "refused(read, '/proc/self/cgroup')", ("landlock",), modes=ALONE),
]  # fmt: skip

"""Attacks on the host's files: reading, writing, renaming, linking, and what files have besides their content."""

from __future__ import annotations

from .attack import ALONE, NAMESPACES, Attack

FILES = [
    Attack("read a file of the user's by its path", "refused(read, CANARY)", ("mounts", "landlock")),
    Attack("read a file that only its owner may read", "refused(read, PRIVATE)", ("mounts", "landlock", "uid")),
    Attack("read /etc/passwd of the machine",
           "data = read('/etc/passwd') if os.path.exists('/etc/passwd') and os.access('/etc/passwd', 4) else b''\n"
           "won(data) if data.count(b'\\n') > 1 else held()",
           ("mounts", "landlock"), modes=NAMESPACES),
    Attack("read /etc/passwd of the machine, where it can be seen", "refused(read, '/etc/passwd')", ("landlock",), modes=ALONE),
    Attack("read /etc/shadow", "refused(read, '/etc/shadow')", ("mounts", "landlock", "uid")),
    Attack("write into a file that everybody may write", "refused(write, CANARY)", ("mounts", "landlock")),
    Attack("make a file in a directory that is open to all", "refused(write, OPEN + '/new')", ("mounts", "landlock")),
    Attack("cut a file off by its path", "refused(os.truncate, CANARY, 0)", ("mounts", "landlock")),
    Attack("remove a file", "refused(os.unlink, CANARY)", ("mounts", "landlock")),
    Attack("rename a file into the work directory", "refused(os.rename, CANARY, 'stolen')", ("mounts", "landlock")),
    Attack("rename a file of its own over a file outside",
           "open('mine', 'w').close()\nrefused(os.rename, 'mine', CANARY)", ("mounts", "landlock")),
    Attack("swap a file of its own with one outside (RENAME_EXCHANGE)",
           "open('mine', 'w').close()\nrefused(call, 'renameat2', -100, text('mine'), -100, text(CANARY), 2)",
           ("mounts", "landlock")),
    Attack("give a file outside a second name in the work directory", "refused(os.link, CANARY, 'mine')", ("mounts", "landlock")),
    Attack("give a file of the interpreter's a second name", "refused(os.link, os.__file__, 'mine')", ("mounts", "landlock")),
    Attack("read through a symbolic link of its own",
           "os.symlink(CANARY, 'l')\nrefused(read, 'l')", ("mounts", "landlock")),
    Attack("read through many links and dots",
           "os.symlink('/', 'r')\nos.mkdir('d')\nos.symlink('../r', 'd/r')\nrefused(read, 'd/r/../d/../r' + CANARY)",
           ("mounts", "landlock")),
    Attack("read through ../ beyond the work directory", "refused(read, '../' * 40 + CANARY)", ("mounts", "landlock")),
    Attack("write through a symbolic link into an open directory",
           "os.symlink(OPEN, 'l')\nrefused(write, 'l/new')", ("mounts", "landlock")),
    Attack("list a directory of the user's", "refused(os.listdir, BASE)", ("mounts", "landlock")),
    Attack("list the machine's /home, /root, /var, /tmp",
           "for each in ('/home', '/root', '/var', '/var/lib', '/srv', '/opt', '/boot', '/run', '/etc/ssh'):\n"
           "    # the way to the interpreter itself may lead through one of them\n"
           "    if not os.__file__.startswith((each + '/', '/host' + each + '/')): refused(os.listdir, each)",
           ("mounts", "landlock")),
    Attack("change the mode of a file by its path",
           "try:\n    os.chmod(CANARY, 0o700)\nexcept OSError as error:\n    pass\nheld()", ("mounts", "seccomp")),
    Attack("change the mode of a directory to lock its owner out",
           "try:\n    os.chmod(BASE, 0)\nexcept OSError as error:\n    pass\nheld()", ("mounts", "seccomp")),
    Attack("change modes with every call that can",
           "for name, args in [('chmod', (text(CANARY), 0)), ('fchmodat', (-100, text(CANARY), 0)),"
           " ('fchmodat2', (-100, text(CANARY), 0, 0))]:\n"
           "    if name in CALLS:\n        try: call(name, *args)\n        except OSError: pass\n"
           "held()", ("mounts", "seccomp")),
    Attack("change the mode of a library through a handle that was opened for reading",
           "import stat\nhandle = os.open(os.__file__, os.O_RDONLY)\nbefore = os.fstat(handle).st_mode\n"
           "try: os.fchmod(handle, 0o777)\nexcept OSError: pass\n"
           "won(oct(before)) if os.fstat(handle).st_mode != before else held()", ("mounts", "seccomp", "uid")),
    Attack("set the times of a file", "try: os.utime(CANARY, (1, 1))\nexcept OSError: pass\nheld()", ("mounts", "seccomp")),
    Attack("set the times of a file to now, which needs no ownership",
           "try: os.utime(CANARY)\nexcept OSError: pass\nheld()", ("mounts", "seccomp")),
    Attack("change the owner of a file", "refused(os.chown, CANARY, 65534, 65534)", ("mounts", "seccomp", "capabilities")),
    Attack("read what is written beside a file (extended attributes)",
           "refused(os.getxattr, MARKED, 'user.secret')", ("mounts", "seccomp")),
    Attack("list extended attributes", "refused(os.listxattr, CANARY)", ("mounts", "seccomp")),
    Attack("set an extended attribute", "refused(os.setxattr, CANARY, 'user.x', b'x')", ("mounts", "seccomp")),
    Attack("learn whether a file exists and how large it is", "refused(os.stat, CANARY)", ("mounts",), modes=NAMESPACES),
    Attack("learn where a link leads", "refused(os.readlink, LINK)", ("mounts",), modes=NAMESPACES),
    Attack("open a handle without reading rights and read through it",
           "def trick():\n    handle = os.open(CANARY, os.O_PATH)\n    return os.read(os.open(f'/proc/self/fd/{handle}', os.O_RDONLY), 99)\n"
           "refused(trick)", ("mounts", "landlock")),
    Attack("open by a file handle instead of a path (open_by_handle_at)",
           "def trick():\n    buffer = space(8 + 128)\n    buffer[0:4] = (128).to_bytes(4, 'little')\n    mount = ctypes.c_int()\n"
           "    call('name_to_handle_at', -100, text('/'), buffer, ctypes.byref(mount), 0)\n"
           "    return call('open_by_handle_at', -100, buffer, 0)\nrefused(trick)", ("seccomp", "capabilities")),
    Attack("map a file outside into memory",
           "import mmap\ndef trick():\n    with open(CANARY, 'rb') as stream:\n        return mmap.mmap(stream.fileno(), 0, prot=1)[:]\nrefused(trick)",
           ("mounts", "landlock")),
    Attack("make a device node for the machine's disk",
           "import stat\nrefused(os.mknod, 'disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))", ("seccomp", "landlock", "capabilities", "mounts")),
    Attack("make a FIFO in the work directory", "refused(os.mkfifo, 'fifo')", ("seccomp", "landlock")),
    Attack("write into the interpreter's library", "refused(write, os.__file__)", ("mounts", "landlock", "uid")),
    Attack("put a module beside the interpreter's", "refused(write, os.path.dirname(os.__file__) + '/evil.py')", ("mounts", "landlock", "uid")),
    Attack("put compiled code of its own where the next job imports from",
           "import importlib.util\nrefused(write, importlib.util.cache_from_source(os.__file__))", ("mounts", "landlock", "uid")),
    Attack("write into the root directory", "refused(write, '/evil')", ("mounts", "landlock")),
    Attack("write into /dev and /etc", "refused(write, '/dev/evil')\nrefused(write, '/etc/evil')", ("mounts", "landlock")),
    Attack("write into the machine's random devices", "refused(lambda: os.write(os.open('/dev/random', os.O_WRONLY), b'x'))", ("landlock",)),
    Attack("open the machine's disk, memory, terminals",
           "for each in ('/dev/vda', '/dev/sda', '/dev/mem', '/dev/kmsg', '/dev/tty', '/dev/ptmx', '/dev/fuse', '/dev/shm/x', '/dev/net/tun', '/dev/kvm'):\n"
           "    refused(os.open, each, os.O_RDWR)", ("mounts", "landlock")),
    Attack("use shared memory of the machine (/dev/shm)",
           "from multiprocessing import shared_memory\nrefused(shared_memory.SharedMemory, create=True, size=4096)", ("mounts", "landlock")),
    Attack("hold up whoever wants to write a library (a lease)",
           "import fcntl\nrefused(fcntl.fcntl, os.open(os.__file__, os.O_RDONLY), 1024, 0)", ("seccomp", "uid")),
]  # fmt: skip

"""Attacks by a shell and the programs of the machine, which may start processes where there are namespaces for them."""

from __future__ import annotations

from .attack import NAMESPACES, shell

_OR = " && echo BREACH || echo held"

SHELLS = [
    shell("read a file without starting anything", "while read -r x; do echo \"BREACH $x\"; done < \"$CANARY\"; while read -r x; do echo \"BREACH $x\"; done < /proc/$HOST/environ; echo held", "mounts", "landlock"),
    shell("write without starting anything", "{ echo x; } >> \"$CANARY\" && echo BREACH; { echo x; } > \"$OPEN/new\" && echo BREACH; echo held", "mounts", "landlock"),
    shell("become another program, which changes a file's mode", "exec chmod 777 \"$CANARY\"", "mounts", "seccomp", ends=("any",)),
    shell("become another program, which reads a file", "exec cat \"$CANARY\" \"$PRIVATE\" /etc/shadow", "mounts", "landlock", ends=("exit 1",)),
    shell("read a file of the user's", "cat \"$CANARY\"" + _OR, "mounts", "landlock"),
    shell("write into an open directory", "(echo x > \"$OPEN/new\")" + _OR, "mounts", "landlock"),
    shell("change a file's mode", "chmod 777 \"$CANARY\"; echo held", "mounts", "seccomp"),
    shell("set a file's times", "touch -d 1990-01-01 \"$CANARY\"; touch \"$CANARY\"; echo held", "mounts", "seccomp"),
    shell("remove and rename what is outside", "rm -f \"$CANARY\"; mv \"$CANARY\" x; mv \"$BASE\" y; echo held", "mounts", "landlock"),
    shell("write where programs are", "(echo x > /usr/bin/evil)" + _OR, "mounts", "landlock", "uid"),
    shell("leave its directory", "cd /root && ls && echo BREACH; cd /home && ls; cd /var && ls && echo BREACH; ls /proc/1/root/var && echo BREACH; echo held", "mounts", "landlock"),
    shell("kill the host and the victim", "kill -9 $VICTIM $HOST" + _OR, "processes", "landlock", "seccomp"),
    shell("kill everything", "kill -9 -1; echo held", "processes", "landlock", "seccomp", ends=("killed", "any")),
    shell("see the machine's processes", "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done 2>/dev/null | grep -q 'time[.]sleep(600)' && echo BREACH || echo held", "processes", "landlock"),
    shell("read the environment of the host", "cat /proc/$HOST/environ /proc/$PPID/environ" + _OR, "processes", "landlock"),
    shell("connect with bash", "bash -c \"echo x > /dev/tcp/127.0.0.1/$TCP\"" + _OR, "seccomp", "network", "landlock"),
    shell("send with bash", "bash -c \"echo x > /dev/udp/127.0.0.1/$UDP\"" + _OR, "seccomp", "network"),
    shell("become root by set-user-id programs", "su -c 'echo BREACH' </dev/null; sudo -n echo BREACH; mount -t tmpfs x /work && echo BREACH; echo held", "no new privileges", "mounts", "seccomp"),
    shell("make namespaces", "unshare -Ur true" + _OR, "seccomp"),
    shell("mount something", "mount --bind / /work" + _OR, "seccomp", "capabilities"),
    shell("run a program it wrote", "printf '#!/bin/sh\\necho BREACH\\n' > p; chmod 755 p; ./p; /work/p; echo held", "landlock", "mounts"),
    shell("run its program by the loader", "cp /bin/true p 2>/dev/null; for l in /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.1; do [ -e $l ] && $l ./p && echo BREACH; done; echo held", "landlock", "mounts"),
    shell("fork without end", "f() { f | f & }; f; sleep 1; echo held", "rlimits", "processes", "seccomp", limits={"wall_s": 4.0}, ends=("any",)),
    shell("many processes at once", "n=0; while [ $n -lt 64 ]; do sleep 5 & n=$((n+1)); done; jobs | wc -l | { read n; [ $n -gt 32 ] && echo BREACH; }; echo held", "rlimits", "seccomp", ends=("processes", "any"), limits={"wall_s": 4.0}),
    shell("leave a daemon behind", "(setsid sh -c 'trap \"\" TERM HUP INT; sleep 50; sleep 50' >/dev/null 2>&1 &) ; echo held", "processes", "seccomp", ends=("any",)),
    shell("keep the output open in a daemon", "(setsid sleep 100 &) ; echo held", "processes", "seccomp", ends=("any",)),
    shell("be killed slowly, with children that ignore it", "trap '' TERM INT HUP; (trap '' TERM; sleep 100) & sleep 100", "killed by handle", "processes", limits={"wall_s": 0.6}, ends=("time", "processes")),
    shell("stop its children and itself", "sleep 100 & kill -STOP $!; kill -STOP $$; sleep 100", "killed by handle", limits={"wall_s": 0.6}, ends=("time", "processes", "any")),
    shell("fill the disk", "dd if=/dev/zero of=f bs=1M count=500 2>/dev/null; wc -c < f | { read n; [ $n -gt 33554432 ] && echo BREACH; }; echo held", "mounts", "rlimits", limits={"disk_bytes": 16 << 20}, ends=("disk", "any")),
    shell("fill the disk from many processes", "for i in 1 2 3 4 5 6; do dd if=/dev/zero of=f$i bs=1M count=15 2>/dev/null & done; wait; du -sk . | { read n x; [ $n -gt 20000 ] && echo BREACH; }; echo held", "mounts", limits={"disk_bytes": 16 << 20}, modes=NAMESPACES, ends=("disk", "any")),
    shell("print without end", "yes", "host limits", ends=("output",)),
    shell("reach the host's line", "echo '{}' >&3" + _OR, "closed handles"),
    shell("leave links and devices to be collected", "ln -s \"$CANARY\" l; ln -s / r; mknod b b 254 0; mkfifo f; echo held", "collector", "seccomp"),
    shell("read the machine's log, disk and memory", "dmesg && echo BREACH; cat /dev/vda | head -c 10 && cat /dev/mem && echo BREACH; echo held", "seccomp", "mounts", "landlock"),
]  # fmt: skip

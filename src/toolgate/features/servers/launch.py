"""Run as a program of its own: become the server, and die with the gate.

`launch.py PARENT COMMAND ARGS...`. It is a program and not a function run after a fork, because a process with
threads must not run Python between fork and exec.
"""

import os
import sys

PR_SET_PDEATHSIG = 1
SIGKILL = 9


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:  # it died before we could ask to be told
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command of toolgate.yaml, without a shell
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    main()

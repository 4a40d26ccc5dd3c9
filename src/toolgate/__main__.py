"""`python -m toolgate` is the command `toolgate`."""

import os
import sys

# `-m` puts the directory it is run in first; a stranger's project must not bring modules for ours to import
if sys.path[:1] in ([""], [os.getcwd()]):
    del sys.path[0]

from toolgate.faces.cli.main import main

sys.exit(main())

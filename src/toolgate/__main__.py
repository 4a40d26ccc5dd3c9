"""`python -m toolgate` is the command `toolgate`."""

import sys

from toolgate.faces.cli.main import main

sys.exit(main())

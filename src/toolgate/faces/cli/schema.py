"""`toolgate schema`: for editors that check toolgate.yaml while it is written."""

from __future__ import annotations

import json as codec
import sys

from toolgate.kits.terminal import options, speech
from toolgate.kits.terminal.command import command
from toolgate.project import config


@command(epilog="Example: toolgate schema > toolgate.schema.json")
def schema(json: options.Json = False) -> None:
    """Print the JSON Schema of toolgate.yaml."""
    if not speech.finish(config.schema()):
        sys.stdout.write(codec.dumps(config.schema(), indent=2) + "\n")

"""A process that sets secrets until it is done or killed: STATE PROJECT PREFIX COUNT."""

from __future__ import annotations

import sys
from pathlib import Path

from toolgate.secrets.vault import Vault


def main() -> None:
    state, project, prefix, count = sys.argv[1:]
    vault = Vault(Path(state), project)
    for number in range(int(count)):
        vault.set(f"{prefix}_{number % 10}", f"value-{prefix}-{number:05}")
        print(number, flush=True)


if __name__ == "__main__":
    main()

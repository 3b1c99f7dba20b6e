"""`python -m tidemark` is the command `tidemark`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def main() -> None:
    """Becomes the command: the one in this package, else the one on the path."""
    own = Path(__file__).parent / "bin" / "tidemark"
    command = str(own) if own.exists() else shutil.which("tidemark")
    if command is None:
        sys.exit("tidemark: the command is not installed")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()

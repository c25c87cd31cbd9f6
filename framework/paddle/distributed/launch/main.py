"""Start a program for Paddle in several processes."""

from __future__ import annotations

import sys

from framework.distributed.launch import main


def launch() -> None:
    """Run `oar launch` with the arguments of this process; raises SystemExit with its status."""
    sys.exit(main())

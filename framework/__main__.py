"""`python -m framework train …`: the command `oar` where it is not on the path."""

import os
import sys


def run() -> None:
    """Run the command. A process of several that fails ends at once and tells the others, where jax would keep it for
    five minutes until all others end too: they may be waiting for it."""
    try:
        from framework.commands import main
        from framework.core.lifeline import end_without_supervisor

        end_without_supervisor()
        status = main()
    except KeyboardInterrupt:  # before the command stands; afterwards it ends by itself
        print("stopped", file=sys.stderr)
        status = 130
    except SystemExit as leaving:
        if isinstance(leaving.code, str):
            print(leaving.code, file=sys.stderr)
        status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    if status and _is_joined():
        from framework.distributed.failures import WATCH

        WATCH.end(status, f"ended with status {status}")
    sys.exit(status)


def _is_joined() -> bool:
    """Whether this process is one of several: see framework.distributed.processes, which would import jax."""
    return os.environ.get("OAR_JOINED") == str(os.getpid())


if __name__ == "__main__":
    run()

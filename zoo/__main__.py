"""`python -m zoo list | show NAME | pull NAME | verify NAME`: see framework/hub/commands.py."""

import sys

from framework.hub.commands import main

if __name__ == "__main__":
    sys.exit(main())

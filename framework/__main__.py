"""`python -m framework train …`: the command `oar` where it is not on the path."""

import sys

from framework.commands import main

if __name__ == "__main__":
    sys.exit(main())

"""The command `oar` and its subcommands, one module each; `python -m framework` is the same.

A subcommand reads its arguments and calls the packages that do the work. `tools/train.py` is `oar train`, and so on.
"""

from framework.commands.main import main as main

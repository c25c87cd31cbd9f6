"""Serve models over HTTP: `oar serve` for a clone.

python tools/serve.py pp_lcnet_x0_25_clothing --port 8000
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.serve import main

if __name__ == "__main__":
    sys.exit(main())

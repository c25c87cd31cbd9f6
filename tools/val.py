"""PaddleSeg's name of tools/eval.py.

python tools/val.py --config configs/segmentation/pp_liteseg/pp_liteseg_stdc1_camvid_small.yml
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.eval import main

if __name__ == "__main__":
    sys.exit(main())

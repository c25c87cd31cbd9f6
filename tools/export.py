"""PaddleSeg's name of tools/export_model.py.

python tools/export.py --config configs/segmentation/pp_liteseg/pp_liteseg_stdc1_camvid_small.yml --save_dir model
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.export import main

if __name__ == "__main__":
    sys.exit(main())

"""PaddleSeg's name of tools/infer.py.

python tools/predict.py --config configs/segmentation/pp_liteseg/pp_liteseg_stdc1_camvid_small.yml --image_path a.png
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.infer import main

if __name__ == "__main__":
    sys.exit(main())

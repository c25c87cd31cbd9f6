"""Write a model as an artifact: `oar export` for a clone.

python tools/export_model.py -c configs/ocr/pp_ocrv6_small.yml --output_dir inference_model
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.export import main

if __name__ == "__main__":
    sys.exit(main())

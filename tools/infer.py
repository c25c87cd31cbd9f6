"""Run a model on images, PDFs, videos and texts: `oar infer` for a clone.

python tools/infer.py -c configs/ocr/pp_ocrv6_small.yml --image_file docs/images/receipt.png
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.infer import main

if __name__ == "__main__":
    sys.exit(main())

"""Score a model on the data of its config: `oar eval` for a clone.

python tools/eval.py -c configs/classification/lenet/lenet_mnist.yml
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.eval import main

if __name__ == "__main__":
    sys.exit(main())

"""Train a model from a config: `oar train` for a clone.

python tools/train.py -c configs/classification/lenet/lenet_mnist.yml -o train.epochs=5
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.commands.train import main

if __name__ == "__main__":
    sys.exit(main())

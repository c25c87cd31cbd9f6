"""Values of PaddleOCR's losses of recognisers: PARSeq, centres, mutual learning.

    python tools/golden/ocr_losses.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/ocr_losses.npz: inputs and losses.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import paddle
from reference import load

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "ocr_losses.npz"
CLASSES, START, PADDING = 9, 9, 10


def main(root: Path) -> None:
    losses = root / "ppocr" / "losses"
    rng = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}

    tokens = np.array(
        [[START, 3, 4, 0, PADDING, PADDING], [START, 1, 8, 8, 2, 0], [START, 5, 0, *[PADDING] * 3]]
    )
    logits = rng.standard_normal((4, 3, 5, CLASSES)).astype(np.float32) * 2
    flat = [paddle.to_tensor(one.reshape(-1, CLASSES)) for one in logits]
    largest = paddle.max
    paddle.max = lambda x: largest(x).reshape([1])  # whose result has no dimension any more
    parseq = load(losses / "rec_parseq_loss.py").ParseQLoss()
    targets = [None, paddle.to_tensor(tokens), paddle.to_tensor(np.array([2, 4, 1]))]
    value = parseq({"logits_list": flat, "pad_id": PADDING, "eos_id": 0}, targets)["loss"]
    found |= {"parseq.tokens": tokens, "parseq.logits": logits, "parseq.loss": value.numpy()}

    features = rng.standard_normal((2, 4, 3)).astype(np.float32)
    scores = rng.standard_normal((2, 4, CLASSES)).astype(np.float32)
    center = load(losses / "center_loss.py").CenterLoss(CLASSES, 3)
    value = center([paddle.to_tensor(features), paddle.to_tensor(scores)], None)["loss_center"]
    found |= {"center.features": features, "center.scores": scores, "center.loss": value.numpy()}
    found |= {"center.centers": center.centers.numpy()}

    first, second = (rng.standard_normal((2, 4, CLASSES)).astype(np.float32) * 2 for _ in range(2))
    basic = load(losses / "basic_loss.py")
    value = basic.DMLLoss(act="softmax", use_log=True)(paddle.to_tensor(first), paddle.to_tensor(second))
    found |= {"mutual.first": first, "mutual.second": second, "mutual.loss": value.numpy()}

    one, other = (rng.uniform(0, 1, (2, 6, 5)).astype(np.float32) for _ in range(2))
    value = basic.DMLLoss()(paddle.to_tensor(one), paddle.to_tensor(other))  # a value for each image
    found |= {"maps.first": one, "maps.second": other, "maps.loss": value.numpy()}

    for name, array in found.items():
        if name.endswith("loss"):
            print(name, array)
    np.savez_compressed(OUT, **{name: np.asarray(array) for name, array in found.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))

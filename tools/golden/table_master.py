"""Reference outputs of TableMaster, from PaddleOCR's own code.

    python tools/golden/table_master.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/table_master/table_master.npz, of the published
size: names and shapes of the state dict, whose values are drawn from their names, and the number of parameters; of
images of 64 x 96 pixels the backbone's last map, logits and boxes after given tokens and the losses with given targets;
and of noise, what the head says itself in 61 steps: tokens, their probabilities and boxes. The end is made likelier and
padding unlikely (`BIAS`), and some weights larger (`GAINS`), so that what is said depends on the features.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from reference import load, shapes_of, spell

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
named_weights = load(GOLDEN.parents[1] / "framework" / "io" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")
TOKENS, LONGEST = 43, 60
BIAS = {-2: 1.6, -1: -30.0}  # of the end, of padding
GAINS = {"src_attn.linears.3.weight": 3.0, "embedding.lut.weight": 0.1}
CASE = {"size_hw": (64, 96), "images": 3}


def build() -> Any:
    from ppocr.modeling.backbones.table_master_resnet import TableResNetExtra
    from ppocr.modeling.heads.table_master_head import TableMasterHead

    context = {
        "ratio": 0.0625,
        "headers": 1,
        "att_scale": False,
        "fusion_type": "channel_add",
        "layers": [False, True, True, True],
    }
    model = paddle.nn.Layer()
    model.backbone = TableResNetExtra([1, 2, 5, 3], gcb_config=context)
    model.head = TableMasterHead(model.backbone.out_channels, TOKENS, 8, 2024, 0, LONGEST, 4)
    return model


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    drawn = named_weights(shapes)
    for place, bias in BIAS.items():
        drawn["head.cls_fc.bias"][place] += bias
    return {
        name: value * next((gain for end, gain in GAINS.items() if name.endswith(end)), 1.0)
        for name, value in drawn.items()
    }


def targets() -> dict[str, np.ndarray]:
    """Tokens [3, 13] with start, end and padding behind, boxes [3, 13, 4], masks [3, 13, 1]."""
    rng = np.random.RandomState(3)
    tokens = rng.randint(0, TOKENS - 4, (3, 13))
    tokens[:, 0] = TOKENS - 3
    for row, length in enumerate((12, 7, 9)):
        tokens[row, length] = TOKENS - 2
        tokens[row, length + 1 :] = TOKENS - 1
    return {
        "given": tokens,
        "given_boxes": rng.uniform(0, 1, (3, 13, 4)).astype(np.float32),
        "given_known": (rng.uniform(0, 1, (3, 13, 1)) < 0.5).astype(np.float32),
    }


def reference() -> None:
    from ppocr.losses.table_master_loss import TableMasterLoss

    model = build()
    shapes = shapes_of(model)
    count = sum(int(np.prod(p.shape)) for p in model.parameters() if not p.stop_gradient)
    print(f"{sum(int(np.prod(shape)) for shape in shapes.values()):,} values, {count:,} parameters")
    table = model.head.positional_encoding.pe.numpy()
    model.set_state_dict({**weights(shapes), "head.positional_encoding.pe": table})
    model.eval()
    given = targets()
    noise = 2 * np.random.RandomState(5).standard_normal((3, 512, 8, 8)).astype(np.float32)
    tokens, boxes, known = (paddle.to_tensor(value) for value in given.values())
    with paddle.no_grad():
        maps = model.backbone(paddle.to_tensor(shared.images(CASE)))
        started = time.perf_counter()
        said = model.head([paddle.to_tensor(noise)])
        print(f"head: {time.perf_counter() - started:.3f} s, {said['loc_preds'].shape[1]} steps")
        model.head.training = True
        after = model.head(maps, [tokens])
        losses = TableMasterLoss(TOKENS - 1)(after, [None, tokens, boxes, known])
    probabilities = said["structure_probs"].numpy()
    steps = probabilities.argmax(-1)
    print(steps.tolist())
    print({name: float(value) for name, value in losses.items()})
    folder = GOLDEN / "data" / "table_master"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / "table_master.npz",
        keys=spell(shapes),
        count=np.array(count),
        features=shared.thin(maps[-1].numpy().transpose(0, 2, 3, 1)),
        **given,
        after=shared.thin(after["structure_probs"].numpy()),
        after_boxes=shared.thin(after["loc_preds"].numpy()),
        losses=np.array([float(losses[name]) for name in ("structure_loss", "loss")]),
        positions=shared.thin(table),
        tokens=steps.astype(np.uint8),
        peaks=probabilities.max(-1).astype(np.float32)[:, ::4],
        boxes=said["loc_preds"].numpy()[:, ::4],
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    reference()

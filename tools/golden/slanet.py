"""Reference outputs of SLANet, from PaddleOCR's own code.

    python tools/golden/slanet.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/slanet/<variant>.npz: names and shapes of the state
dict, whose values are drawn from their names; features of the neck, logits and boxes after given tokens, and of
features of noise, which differ more, what the head says itself: tokens, their probabilities and boxes. The end is made
likelier (`BIAS`) and some weights larger, so that what is said depends on the features.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from reference import load

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
named_weights = load(GOLDEN.parents[1] / "framework" / "io" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")
# variant: tokens, numbers of a box
VARIANTS = {"SLANet": (30, 4), "SLANet_plus": (50, 8)}
BIAS = {"SLANet": 1.2, "SLANet_plus": 0.5}
GAINS = {"score.weight": 6.0, "rnn.weight_ih": 2.0, "rnn.weight_hh": 2.0}
CASE = {"size_hw": (488, 488), "images": 3}


def build(variant: str) -> Any:
    from ppocr.modeling.backbones.det_pp_lcnet import PPLCNet
    from ppocr.modeling.heads.table_att_head import SLAHead
    from ppocr.modeling.necks.csp_pan import CSPPAN

    tokens, coordinates = VARIANTS[variant]
    model = paddle.nn.Layer()
    model.backbone = PPLCNet(scale=1.0)
    model.neck = CSPPAN(model.backbone.out_channels, 96)
    model.head = SLAHead(model.neck.out_channels, 256, tokens, 500, coordinates)
    return model


def weights(variant: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    drawn = named_weights(shapes)
    drawn["head.structure_generator.1.bias"][-1] += BIAS[variant]
    for name, gain in GAINS.items():
        drawn[f"head.structure_attention_cell.{name}"] *= gain
    return shared.amplify(drawn, {"gain": 1.3})


def reference(variant: str) -> None:
    model = build(variant)
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    print(f"{variant}: {sum(int(np.prod(shape)) for shape in shapes.values()):,} values")
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    model.set_state_dict(weights(variant, shapes))
    model.eval()
    images = paddle.to_tensor(shared.images(CASE))
    tokens = np.random.RandomState(3).randint(0, VARIANTS[variant][0], (3, 12))
    tokens[:, 0] = 0
    with paddle.no_grad():
        features = model.neck(model.backbone(images))
        noise = paddle.to_tensor(np.random.RandomState(5).standard_normal((3, 96, 16, 16)).astype(np.float32))
        started = time.perf_counter()
        said = model.head([noise])
        print(f"head: {time.perf_counter() - started:.3f} s, {said['loc_preds'].shape[1]} steps")
        model.head.training = True
        after = model.head(features, [paddle.to_tensor(tokens), paddle.to_tensor([11, 5, 8]), None])
    probabilities = said["structure_probs"].numpy()
    steps = probabilities.argmax(-1)
    print(steps[:, :40].tolist())
    folder = GOLDEN / "data" / "slanet"
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / f"{variant}.npz",
        keys=np.array(keys.encode()),
        features=shared.thin(features[-1].numpy().transpose(0, 2, 3, 1)),
        given=tokens,
        after=shared.thin(after["structure_probs"].numpy()),
        after_boxes=shared.thin(after["loc_preds"].numpy()),
        tokens=steps.astype(np.uint8),
        peaks=probabilities.max(-1).astype(np.float32)[:, ::4],
        boxes=shared.thin(said["loc_preds"].numpy()),
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    for chosen in VARIANTS:
        reference(chosen)

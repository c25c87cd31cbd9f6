"""Reference outputs of SLANeXt, from PaddleOCR's own code.

    python tools/golden/slanext.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/slanext/: `full.npz` has names and shapes of the
state dict at the published size. `small.npz` is of a small encoder (SMALL) on 256 x 256 pixels, whose map of 16 x 16 is
cut into windows of 14: its blocks, its map, logits and boxes after given tokens; and of noise, what the head says
itself. Weights are drawn from their names; the end is made likelier (`BIAS`) and some weights larger, so that what is
said depends on the features.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from reference import load, shapes_of, spell

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
named_weights = load(GOLDEN.parents[1] / "framework" / "io" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")
# width, blocks, heads, blocks that look everywhere, side of the images
FULL = (768, 12, 12, [2, 5, 8, 11], 512)
SMALL = (64, 3, 4, [2], 256)
TOKENS, COORDINATES, HIDDEN = 50, 8, 512
BIAS, TOKEN_GAIN = (
    1.0,
    6.0,
)  # of the end; of the GRU's columns for the token before, behind the 512 of the features
GAINS = {"score.weight": 6.0, "rnn.weight_ih": 3.0, "rnn.weight_hh": 2.0, "h2h.weight": 3.0}
CASE = {"size_hw": (256, 256), "images": 3}


def build(size: tuple[Any, ...]) -> Any:
    from ppocr.modeling.backbones.rec_vary_vit import _build_vary
    from ppocr.modeling.heads.table_att_head import SLAHead

    model = paddle.nn.Layer()
    model.backbone = paddle.nn.Layer()
    model.backbone.vision_tower_high = _build_vary(*size)
    model.head = SLAHead(1024, HIDDEN, TOKENS, 500, COORDINATES)
    return model


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    drawn = named_weights(shapes)
    drawn["head.structure_generator.1.bias"][-1] += BIAS
    for name, gain in GAINS.items():
        drawn[f"head.structure_attention_cell.{name}"] *= gain
    drawn["head.structure_attention_cell.rnn.weight_ih"][:, 512:] *= TOKEN_GAIN
    return drawn


def reference() -> None:
    folder = GOLDEN / "data" / "slanext"
    folder.mkdir(parents=True, exist_ok=True)
    shapes = shapes_of(build(FULL))
    print(f"full: {sum(int(np.prod(shape)) for shape in shapes.values()):,} values")
    np.savez_compressed(folder / "full.npz", keys=spell(shapes))

    model = build(SMALL)
    model.set_state_dict(weights(shapes_of(model)))
    model.eval()
    tower, kept = model.backbone.vision_tower_high, {}
    for number, block in enumerate(tower.blocks):
        block.register_forward_post_hook(lambda _, __, out, name=f"block{number}": kept.update({name: out}))
    tokens = np.random.RandomState(3).randint(0, TOKENS, (3, 12))
    tokens[:, 0] = 0
    with paddle.no_grad():
        map_ = tower(paddle.to_tensor(shared.images(CASE)))
        features = map_.flatten(2).transpose([0, 2, 1])
        noise = np.random.RandomState(5).standard_normal((3, 64, 512)).astype(np.float32)
        said = model.head(paddle.to_tensor(noise))
        model.head.training = True
        after = model.head(features, [paddle.to_tensor(tokens), paddle.to_tensor([11, 5, 8]), None])
    probabilities = said["structure_probs"].numpy()
    steps = probabilities.argmax(-1)
    print(steps.shape, steps[:, :40].tolist())
    np.savez_compressed(
        folder / "small.npz",
        net_2=shared.thin(map_.numpy()),
        given=tokens,
        after=shared.thin(after["structure_probs"].numpy()),
        after_boxes=shared.thin(after["loc_preds"].numpy()),
        tokens=steps.astype(np.uint8),
        peaks=probabilities.max(-1).astype(np.float32)[:, ::4],
        boxes=shared.thin(said["loc_preds"].numpy()),
        **{name: shared.thin(out.numpy().transpose(0, 3, 1, 2)) for name, out in kept.items()},
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    reference()

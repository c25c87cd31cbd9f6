"""Reference outputs of PARSeq, from PaddleOCR's own code.

    python tools/golden/parseq.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/parseq/<variant>.npz: names and shapes of the state
dict; and of the tiny size, whose weights are drawn from their names, the encoder's output, the probabilities with and
without the second reading, and logits under the given permutations. The end is made likelier (`BIAS`), so that texts
differ in length.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from reference import load

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
named_weights = load(GOLDEN.parents[1] / "framework" / "io" / "named_weights.py").named_weights
shared = load(GOLDEN / "thinning.py")
# variant: width, attention heads of the encoder and of the decoder
VARIANTS = {"parseq_tiny": (192, 3, 6), "parseq_base": (384, 6, 12)}
BIAS = 3.0
CASE = {"size_hw": (32, 128), "images": 3}
TOKENS = [[95, 5, 6, 7, 0, 96, 96], [95, 1, 94, 1, 2, 3, 0]]
PERMUTATIONS = [[0, 1, 2, 3, 4, 5, 6], [0, 6, 5, 4, 3, 2, 1], [0, 3, 1, 5, 4, 2, 6]]


def build(variant: str, refine: int) -> Any:
    from ppocr.modeling.backbones.rec_vit_parseq import ViTParseQ
    from ppocr.modeling.heads.rec_parseq_head import ParseQHead

    width, heads, decoder_heads = VARIANTS[variant]
    model = paddle.nn.Layer()
    model.backbone = ViTParseQ([32, 128], [4, 8], 3, width, 12, heads, 4.0)
    model.head = ParseQHead(97, 25, width, decoder_heads, 4, 1, 6, True, True, True, refine, 0.1)
    return model


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    drawn = named_weights(shapes)
    drawn["head.head.bias"][0] += BIAS
    return drawn


def reference(variant: str) -> None:
    model = build(variant, 0)
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    found: dict[str, np.ndarray] = {}
    if variant == "parseq_tiny":
        drawn = weights(shapes)
        images = paddle.to_tensor(shared.images(CASE))
        for refine in (0, 1):
            model = build(variant, refine)
            model.set_state_dict(drawn)
            model.eval()
            with paddle.no_grad():
                memory = model.backbone(images)
                found[f"read.{refine}"] = model.head(memory)["predict"].numpy()
        print("read", [out.argmax(-1).tolist() for name, out in found.items()])
        found["backbone"] = memory.numpy()
        model.head.gen_tgt_perms = lambda tgt: paddle.to_tensor(PERMUTATIONS)
        with paddle.no_grad():
            out = model.head.forward_train(memory[:2], paddle.to_tensor(TOKENS))
        found["permuted"] = np.stack([logits.numpy() for logits in out["logits_list"]])
        for name, value in found.items():
            print(f"{name:10} {value.shape!s:14} max |x| {np.abs(value).max():.4f}, std {value.std():.4f}")
    folder = GOLDEN / "data" / "parseq"
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value if name.startswith("read") else shared.thin(value) for name, value in found.items()}
    kept = {name: np.sort(v, -1)[..., -1:] if name.startswith("read") else v for name, v in kept.items()}
    best = {f"best.{name}": v.argmax(-1) for name, v in found.items() if name.startswith("read")}
    np.savez_compressed(folder / f"{variant}.npz", keys=np.array(keys.encode()), **kept, **best)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    paddle.Tensor.cuda = lambda self: self  # upstream moves a mask to the GPU, wherever the network is
    for chosen in VARIANTS:
        reference(chosen)

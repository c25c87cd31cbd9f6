"""Reference outputs of PP-FormulaNet-S, from PaddleOCR's own code.

    python tools/golden/pp_formulanet.py PADDLEOCR        needs: pip install paddlepaddle==2.6.2 "numpy<2"

PADDLEOCR is a checkout of PaddleOCR 3. Written to tests/golden/data/pp_formulanet/: `full.npz` has names and shapes of
the state dict at the published size. `small.npz` is of the same backbone on 128 x 128 pixels and a small decoder: the
map, logits after given tokens; and of noise, what the head says itself. Weights are drawn from their names; the end is
made likelier and some weights larger (`sharpen`), so that what is said depends on the features.
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
# width, hidden width, vocabulary, most tokens
FULL = (384, 1536, 50000, 1024)
SMALL = (64, 96, 80, 60)
CASE = {"size_hw": (128, 128), "images": 3}
sharpen = load(GOLDEN / "formula_weights.py").sharpen


def build(size: tuple[int, int, int, int]) -> Any:
    from ppocr.modeling.backbones.rec_pphgnetv2 import PPHGNetV2_B4_Formula
    from ppocr.modeling.heads import rec_ppformulanet_head as heads

    width, hidden, vocabulary, tokens = size
    usual = heads.MBartConfig
    heads.MBartConfig = lambda **own: usual(**{**own, "vocab_size": vocabulary})
    model = paddle.nn.Layer()
    model.backbone = PPHGNetV2_B4_Formula(class_num=1024)
    model.head = heads.PPFormulaNet_Head(
        max_new_tokens=tokens,
        decoder_ffn_dim=hidden,
        decoder_hidden_size=width,
        decoder_layers=2,
        encoder_hidden_size=2048,
        use_parallel=True,
        parallel_step=3,
    )
    heads.MBartConfig = usual
    return model


def reference() -> None:
    folder = GOLDEN / "data" / "pp_formulanet"
    folder.mkdir(parents=True, exist_ok=True)
    shapes = shapes_of(build(FULL))
    print(f"full: {sum(int(np.prod(shape)) for shape in shapes.values()):,} values")
    np.savez_compressed(folder / "full.npz", keys=spell(shapes))

    # Of Paddle 3, for exported programs alone.
    paddle.jit.api.set_dynamic_shape = lambda *_: None
    model = build(SMALL)
    model.set_state_dict(sharpen(named_weights(shapes_of(model))))
    model.eval()
    given = np.random.RandomState(3).randint(3, SMALL[2], (3, 11))
    given[:, 0], given[1, 6:], given[2, 8:] = 0, 1, 1
    given[1, 5], given[2, 7], given[0, 10] = 2, 2, 2
    seen = (given != 1).astype(np.int64)
    with paddle.no_grad():
        encoded = model.backbone(paddle.to_tensor(shared.images(CASE)))
        noise = np.random.RandomState(5).standard_normal((3, 16, 2048)).astype(np.float32)
        encoded_noise = type(encoded)(last_hidden_state=paddle.to_tensor(noise))
        told = model.head(encoded_noise).numpy()
        for layer in model.head.sublayers():
            layer.training = True
            if hasattr(layer, "dropout"):
                layer.dropout = 0.0
        model.head.training = True
        logits, labels = model.head([encoded, paddle.to_tensor(given), paddle.to_tensor(seen)])
    print(told.shape, told.tolist())
    np.savez_compressed(
        folder / "small.npz",
        features=shared.thin(encoded["last_hidden_state"].numpy()),
        given=given.astype(np.uint8),
        labels=labels.numpy().astype(np.int8),
        logits=shared.thin(logits.numpy()),
        tokens=told.astype(np.uint8),
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path.insert(0, sys.argv[1])
    reference()

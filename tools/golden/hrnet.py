"""Reference outputs of HRNet in its three forms: PaddleClas, PaddleSeg and PaddleDetection.

    python tools/golden/hrnet.py [case ...]        needs: paddlepaddle 2.6, paddleclas, paddleseg, ppdet

Every entry of the state dict is drawn from the suite's own name for it (framework/interop/named_weights.py). Each
watched output, NCHW, is thinned to a few values; the suite's names and shapes are stored with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from framework.interop.named_weights import named_weights

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "hrnet"
KEPT = 160  # values of each output


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def classifier() -> paddle.nn.Layer:
    from paddleclas.ppcls.arch.backbone.legendary_models.hrnet import HRNet_W18_C

    return HRNet_W18_C()


def segmentation(name: str, **options: Any) -> Callable[[], paddle.nn.Layer]:
    def build() -> paddle.nn.Layer:
        from paddleseg.models.backbones import hrnet

        return getattr(hrnet, name)(**options)

    return build


def pose() -> paddle.nn.Layer:
    from ppdet.modeling.backbones.hrnet import HRNet

    return HRNet(width=32, freeze_at=-1, freeze_norm=False, return_idx=[0])


CLASSIFIER = ("layer1", *(f"last_cls.func_list.{i}" for i in range(4)), "fc")
# Name: (model, size of the image, watched sublayers). PaddleSeg's and PaddleDetection's st4 gives the list of maps.
CASES: dict[str, tuple[Callable[[], paddle.nn.Layer], tuple[int, int], tuple[str, ...]]] = {
    "paddleclas_w18": (classifier, (64, 96), CLASSIFIER),
    "paddleseg_w18": (segmentation("HRNet_W18"), (64, 96), ("st4",)),
    "paddleseg_w48": (segmentation("HRNet_W48"), (64, 96), ("st4",)),
    "paddleseg_w18_small_v1": (segmentation("HRNet_W18_Small_V1", align_corners=True), (65, 98), ("st4",)),
    "paddleseg_w18_small_v2": (segmentation("HRNet_W18_Small_V2", padding_same=False), (64, 96), ("st4",)),
    "ppdet_w32_pose": (pose, (64, 96), ("st4",)),
}


def save(
    model: paddle.nn.Layer, inputs: Any, call: Callable[[Any], Any], watched: tuple[str, ...], to: Path
) -> None:
    """Run `call` on a model with weights drawn from names, and store what the watched sublayers give."""
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    model.set_state_dict(named_weights(shapes))
    model.eval()
    found: dict[str, np.ndarray] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(layer: paddle.nn.Layer, args: Any, out: Any) -> None:
            if isinstance(out, (list, tuple)):
                found.update({f"{name}.{i}": item.numpy() for i, item in enumerate(out)})
            else:
                found[name] = out.numpy()

        return hook

    sublayers = dict(model.named_sublayers())
    for name in watched:
        sublayers[name].register_forward_post_hook(keep(name))
    with paddle.no_grad():
        call(inputs)
    for name, out in found.items():
        print(f"{to.stem:24} {name:22} {out.shape!s:20} max |x| {np.abs(out).max():.4f}, std {out.std():.4f}")
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    to.parent.mkdir(parents=True, exist_ok=True)
    thinned = {name: thin(out) for name, out in found.items()}
    np.savez_compressed(to, keys=np.array(keys.encode()), **thinned)


def image(size_hw: tuple[int, int]) -> paddle.Tensor:
    return paddle.to_tensor(np.random.RandomState(7).standard_normal((1, 3, *size_hw)).astype(np.float32))


if __name__ == "__main__":
    for case in sys.argv[1:] or CASES:
        build, size_hw, watched = CASES[case]
        model, x = build(), image(size_hw)
        save(model, {"image": x} if case.startswith("ppdet") else x, model, watched, OUT / f"{case}.npz")

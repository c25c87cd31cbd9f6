"""Reference outputs of PP-LiteSeg, SegFormer, DeepLabV3+ and PP-HumanSeg-Lite, from PaddleSeg.

    python tools/golden/segmentation_dense.py [case ...]        needs: paddlepaddle 2.6, paddleseg 2.8

Weights are drawn from the names of the entries (framework/interop/named_weights.py). Written to
tests/golden/data/segmentation_dense/<case>.npz: names and shapes, the thinned outputs of watched sublayers and the
thinned logits in evaluation; the thinned logits in training, without dropout; the number of trained parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import paddle
from hrnet import named_weights, thin
from paddleseg.models import DeepLabV3P, PPHumanSegLite, PPLiteSeg, SegFormer
from paddleseg.models.backbones import mix_transformer, resnet_vd, stdcnet

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "segmentation_dense"


def pp_liteseg(stdc: str, widths: list[int], heads: list[int]) -> paddle.nn.Layer:
    return PPLiteSeg(19, getattr(stdcnet, stdc)(), arm_out_chs=widths, seg_head_inter_chs=heads)


def segformer(number: int, embedding: int) -> paddle.nn.Layer:
    backbone = getattr(mix_transformer, f"MixVisionTransformer_B{number}")()
    return SegFormer(19, backbone, embedding)


def deeplab(depth: int) -> paddle.nn.Layer:
    backbone = getattr(resnet_vd, f"ResNet{depth}_vd")(output_stride=8, multi_grid=[1, 2, 4])
    return DeepLabV3P(19, backbone, aspp_ratios=(1, 12, 24, 36))


def images(count: int, size_hw: tuple[int, int]) -> paddle.Tensor:
    """Noise; the images differ in contrast and brightness, for else normalisation over a few pixels only amplifies
    rounding."""
    rng = np.random.RandomState(7)
    x = rng.standard_normal((count, 3, *size_hw)) * rng.uniform(0.3, 1.5, (count, 1, 1, 1))
    return paddle.to_tensor((x + rng.standard_normal((count, 3, 1, 1))).astype(np.float32))


class Case(NamedTuple):
    """Evaluation takes one image. `train` is how many images training takes: with one, Paddle would leave out
    normalisations of a single pixel. `gain` multiplies kernels, so that outputs still depend on the image."""

    build: Callable[[], paddle.nn.Layer]
    size_hw: tuple[int, int]
    watched: tuple[str, ...] = ()
    train: int = 4
    gain: float = 1.0


LITESEG = (
    "backbone.features.1",
    "backbone.features.3",
    "ppseg_head.cm",
    *(f"ppseg_head.arm_list.{i}" for i in range(3)),
    "seg_heads.0",
)
SEGFORMER = (*(f"linear_c{i}" for i in range(1, 5)), "linear_fuse", "linear_pred")
DEEPLAB = (*(f"head.aspp.aspp_blocks.{i}" for i in range(4)), "head.aspp", "head.decoder")
HUMANSEG = ("conv_bn0", "block1", "block2", "depthwise_separable0", "depthwise_separable2")
T = ("STDC1", [32, 64, 128], [32, 64, 64])
B = ("STDC2", [64, 96, 128], [64, 64, 64])
CASES: dict[str, Case] = {
    "pp_liteseg_t": Case(lambda: pp_liteseg(*T), (97, 130), LITESEG),
    "pp_liteseg_b": Case(lambda: pp_liteseg(*B), (97, 130), LITESEG),
    "pp_liteseg_t_full": Case(lambda: pp_liteseg(*T), (512, 1024), train=2),
    "pp_liteseg_b_full": Case(lambda: pp_liteseg(*B), (512, 1024), train=0),
    "segformer_b0": Case(lambda: segformer(0, 256), (97, 130), SEGFORMER),
    "segformer_b0_full": Case(lambda: segformer(0, 256), (512, 1024), train=0),
    "segformer_b1": Case(lambda: segformer(1, 256), (64, 96), SEGFORMER, train=0),
    "segformer_b2": Case(lambda: segformer(2, 768), (64, 96), SEGFORMER, train=0),
    "deeplabv3p_resnet50": Case(lambda: deeplab(50), (97, 130), DEEPLAB),
    "deeplabv3p_resnet101": Case(lambda: deeplab(101), (64, 96), DEEPLAB, train=0),
    "deeplabv3p_resnet50_full": Case(lambda: deeplab(50), (512, 1024), train=0),
    "pp_humanseg_lite": Case(lambda: PPHumanSegLite(2), (97, 130), HUMANSEG, gain=2.0),
    "pp_humanseg_lite_full": Case(lambda: PPHumanSegLite(2), (192, 192), train=0, gain=2.0),
}


def run(name: str, case: Case) -> None:
    model = case.build()
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    weights = {key: w * case.gain if w.ndim == 4 else w for key, w in named_weights(shapes).items()}
    model.set_state_dict(weights)
    found: dict[str, np.ndarray] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(layer: paddle.nn.Layer, args: object, out: paddle.Tensor) -> None:
            array = out.numpy()
            found[name] = array.swapaxes(1, 2) if array.ndim == 3 else array  # tokens [N, HW, C] as a map

        return hook

    sublayers = dict(model.named_sublayers())
    handles = [sublayers[watched].register_forward_post_hook(keep(watched)) for watched in case.watched]
    with paddle.no_grad():
        model.eval()
        found["eval"] = model(images(1, case.size_hw))[0].numpy()
        for handle in handles:
            handle.remove()
        if case.train:
            model.train()
            for layer in model.sublayers():
                if isinstance(layer, (paddle.nn.Dropout, paddle.nn.Dropout2D, mix_transformer.DropPath)):
                    layer.eval()
            found |= {
                f"train.{i}": out.numpy() for i, out in enumerate(model(images(case.train, case.size_hw)))
            }
    for watched, out in found.items():
        print(f"{name:26} {watched:24} {out.shape!s:20} max |x| {np.abs(out).max():.4f}, std {out.std():.4f}")
    count = sum(int(np.prod(p.shape)) for p in model.parameters() if not p.stop_gradient)
    print(f"{name:26} {len(shapes)} entries, {count} trained")
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    thinned = {watched: thin(out) for watched, out in found.items()}
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT / f"{name}.npz", keys=np.array(keys.encode()), count=np.array(count), **thinned)


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        run(name, CASES[name])

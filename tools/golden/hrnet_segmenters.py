"""Reference outputs of the segmentation models on HRNet (HRNet-W48 contrast, OCRNet, FCN) and of the contrast's loss.

    python tools/golden/hrnet_segmenters.py [case ...]        needs: paddlepaddle 2.6, paddleseg 2.8, scikit-learn

Every entry of a state dict is drawn from its name, see `damp` of the cases. Written to
tests/golden/data/hrnet_segmenters/<case>.npz: names and shapes, the number of trained parameters and, thinned, what
watched sublayers and the model give in evaluation and what the model gives in training without dropout. The contrast's
cases have the losses of training, too, and contrast.npz has its loss and gradient; there `paddle.randperm` leaves
everything in place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn  # noqa: F401  (paddleseg imports it; loaded after paddle it crashes, as both carry a zlib)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import paddle
from hrnet import named_weights, thin
from hrnet_segmenters_cases import CASES, CONTRASTS, Case, contrast_inputs, damp, images, labels
from paddleseg.models import FCN, HRNetW48Contrast, OCRNet
from paddleseg.models.backbones import hrnet
from paddleseg.models.losses import CrossEntropyLoss, PixelContrastCrossEntropyLoss

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "hrnet_segmenters"


def build(case: Case) -> paddle.nn.Layer:
    backbone = getattr(hrnet, case.backbone)(align_corners=case.align_corners)
    if case.model == "HRNetW48Contrast":
        channels = backbone.feat_channels[0]
        return HRNetW48Contrast(channels, 19, backbone, 0.1, 720, align_corners=case.align_corners)
    model = {"OCRNet": OCRNet, "FCN": FCN}[case.model]
    return model(19, backbone, [0], align_corners=case.align_corners)


def evaluate(model: paddle.nn.Layer, case: Case) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}

    def keep(name: str) -> Callable[..., None]:
        return lambda layer, args, out: found.__setitem__(name, out.numpy())

    sublayers = dict(model.named_sublayers())
    handles = [sublayers[name].register_forward_post_hook(keep(name)) for name in case.watched]
    x = paddle.to_tensor(images(case)[:1])
    model.eval()
    found["eval"] = model(x)[0].numpy()
    if case.model == "HRNetW48Contrast":
        sublayers["proj_head"](sublayers["backbone"](x)[0])
    for handle in handles:
        handle.remove()
    return found


def train(model: paddle.nn.Layer, case: Case) -> dict[str, np.ndarray]:
    model.train()
    for layer in model.sublayers():
        if isinstance(layer, paddle.nn.Dropout2D):
            layer.eval()
    outputs: list[Any] = model(paddle.to_tensor(images(case)))
    found = {"train.0": outputs[0].numpy()}
    if case.model != "HRNetW48Contrast":
        return found | {f"train.{i}": out.numpy() for i, out in enumerate(outputs)}
    truth = paddle.to_tensor(labels(case))
    found |= {"train.seg": outputs[1]["seg"].numpy(), "train.embed": outputs[1]["embed"].numpy()}
    losses = CrossEntropyLoss()(outputs[0], truth), PixelContrastCrossEntropyLoss()(outputs[1], truth)
    return found | {"losses": np.array([float(loss) for loss in losses], np.float32)}


def run(name: str, case: Case) -> None:
    model = build(case)
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    model.set_state_dict(damp(named_weights(shapes)))
    with paddle.no_grad():
        found = evaluate(model, case) | (train(model, case) if case.train else {})
    for watched, out in found.items():
        print(f"{name:20} {watched:34} {out.shape!s:20} max |x| {np.abs(out).max():.4f}, std {out.std():.4f}")
    count = sum(int(np.prod(p.shape)) for p in model.parameters() if not p.stop_gradient)
    print(f"{name:20} {len(shapes)} entries, {count} trained", found.get("losses", ""))
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    thinned = {watched: thin(out) for watched, out in found.items()}
    np.savez_compressed(OUT / f"{name}.npz", keys=np.array(keys.encode()), count=np.array(count), **thinned)


def contrast() -> None:
    stored: dict[str, np.ndarray] = {}
    for name, case in CONTRASTS.items():
        logits, vectors, truth = contrast_inputs(case)
        embed = paddle.to_tensor(vectors.transpose(0, 3, 1, 2), stop_gradient=False)
        loss = PixelContrastCrossEntropyLoss(
            case.temperature, case.base_temperature, 255, case.max_samples, case.max_views
        )
        found = loss(
            {"seg": paddle.to_tensor(logits.transpose(0, 3, 1, 2)), "embed": embed}, paddle.to_tensor(truth)
        )
        found.backward()
        gradient = embed.gradient().transpose(0, 2, 3, 1)
        pixels = int((np.abs(gradient).sum(-1) > 0).sum())
        print(f"contrast {name:16} loss {float(found):.4f}, {pixels} pixels have a gradient")
        stored |= {f"{name}/loss": found.numpy(), f"{name}/gradient": gradient.astype(np.float32)}
    np.savez_compressed(OUT / "contrast.npz", **stored)


if __name__ == "__main__":
    paddle.randperm = lambda count: paddle.arange(count)
    OUT.mkdir(parents=True, exist_ok=True)
    for chosen in sys.argv[1:] or [*CASES, "contrast"]:
        contrast() if chosen == "contrast" else run(chosen, CASES[chosen])

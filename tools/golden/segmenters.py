"""Segmentation models on HRNet in training, and PaddleSeg's losses and metrics: inputs, which the tests draw too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tests.golden.thinning import images
from tools.golden.network import Arrays, Reference, Row, find, import_paddle, named

HRNET_CLASSES, IGNORED = 19, 255


def build(model: str, backbone: str, align_corners: bool = False) -> Any:
    network = find(f"paddleseg.models.backbones.hrnet.{backbone}")(align_corners=align_corners)
    kind = find(f"paddleseg.models.{model}")
    if model == "HRNetW48Contrast":
        width = network.feat_channels[0]
        return kind(width, HRNET_CLASSES, network, 0.1, 720, align_corners=align_corners)
    return kind(HRNET_CLASSES, network, [0], align_corners=align_corners)


def hrnet_labels(row: Row) -> np.ndarray:
    """[N, H, W] int64: blocks of 64 pixels, some of them ignored."""
    height, width = row["size_hw"]
    shape = (row["images"], height // 64 + 1, width // 64 + 1)
    blocks = np.random.RandomState(8).randint(-2, HRNET_CLASSES, shape)
    pixels = np.where(blocks < 0, IGNORED, blocks).repeat(64, 1).repeat(64, 2)
    return pixels[:, :height, :width].astype(np.int64)


def train_and_evaluate(reference: Reference, row: Row) -> Arrays:
    """Stages and the logits of the first image in evaluation; in training the outputs of all, and of the contrast the
    losses, where `paddle.randperm` leaves everything in place."""
    model, paddle, found = reference.model, reference.library, {}
    paddle.randperm = lambda count: paddle.arange(count)
    contrasts = row["options"]["model"] == "HRNetW48Contrast"
    x = images(row)
    hooks = reference.watch(found)
    model.eval()
    found |= {"eval": reference(x[:1])[0]}
    if contrasts:
        reference(x[:1], lambda x: model.proj_head(model.backbone(x)[0]))
    for hook in hooks:
        hook.remove()
    if not row["train"]:
        return found
    reference.train()
    if not contrasts:
        return found | named("train.{}", reference(x))
    with paddle.no_grad():
        outputs, truth = model(paddle.to_tensor(x)), paddle.to_tensor(hrnet_labels(row))
        losses = [
            find(f"paddleseg.models.losses.{name}")()(out, truth)
            for name, out in zip(("CrossEntropyLoss", "PixelContrastCrossEntropyLoss"), outputs)
        ]
    found |= {f"train.{name}": outputs[1][name].numpy() for name in ("seg", "embed")}
    values = np.array([float(loss) for loss in losses], np.float32)
    return found | {"train.0": outputs[0].numpy(), "losses": values}


class Contrast(NamedTuple):
    """Settings of the loss, and how sure the logits are of the labels: the more so, the fewer pixels are hard."""

    max_samples: int = 1024
    max_views: int = 100
    sure: float = 1.5
    temperature: float = 0.1
    base_temperature: float = 0.07


CONTRASTS: dict[str, Contrast] = {
    "defaults": Contrast(),
    "few_samples": Contrast(max_samples=61, max_views=20),  # an odd number of views
    "nearly_all_easy": Contrast(max_samples=256, max_views=16, sure=6.0),
    "all_easy": Contrast(max_samples=256, max_views=16, sure=100.0),
    "nearly_all_hard": Contrast(max_samples=256, max_views=17, sure=-0.5),
    "all_hard": Contrast(max_samples=256, max_views=17, sure=-100.0),
    "warm": Contrast(temperature=0.5, base_temperature=0.2),
}


def contrast_inputs(case: Contrast) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits [N, h, w, C], embeddings [N, h, w, D] and labels [N, 2h, 3w].

    Class 4 has too few pixels in one image and is not in the other; class 3 is in one image alone.
    """
    rng, (n, h, w) = np.random.RandomState(11), (2, 24, 36)
    blocks = rng.randint(0, 3, (n, h // 4, w // 4))
    blocks[0, 2:4] = 3
    blocks[1, 0, :2] = IGNORED
    small = blocks.repeat(4, 1).repeat(4, 2)
    small[0, 0, :9] = 4
    truth = small.repeat(2, 1).repeat(3, 2)
    truth[:, 1::2] = IGNORED  # rows that shrinking skips
    logits = rng.standard_normal((n, h, w, 5)) + case.sure * (small[..., None] == np.arange(5))
    vectors = rng.standard_normal((n, h, w, 8)) + 0.5 * (small[..., None] % 8 == np.arange(8))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return logits.astype(np.float32), vectors.astype(np.float32), truth.astype(np.int64)


def contrast_losses(reference: None, row: Row) -> Arrays:
    """<case>/loss and <case>/gradient of the embeddings, NHWC."""
    paddle, stored = import_paddle(), {}
    paddle.randperm = lambda count: paddle.arange(count)
    kind = find("paddleseg.models.losses.PixelContrastCrossEntropyLoss")
    for name, case in CONTRASTS.items():
        logits, vectors, truth = contrast_inputs(case)
        embed = paddle.to_tensor(vectors.transpose(0, 3, 1, 2), stop_gradient=False)
        loss = kind(case.temperature, case.base_temperature, IGNORED, case.max_samples, case.max_views)
        outputs = {"seg": paddle.to_tensor(logits.transpose(0, 3, 1, 2)), "embed": embed}
        value = loss(outputs, paddle.to_tensor(truth))
        value.backward()
        gradient = embed.gradient().transpose(0, 2, 3, 1).astype(np.float32)
        stored |= {f"{name}/loss": value.numpy(), f"{name}/gradient": gradient}
    return stored


# -- losses and metrics ----------------------------------------------------------------------------------------------

CLASSES, SIZE_NHW = 5, (2, 12, 17)
_WEIGHT = (0.5, 2.0, 1.0, 0.25, 1.5)
PADDLESEG = {
    "CrossEntropy": "CrossEntropyLoss",
    "OhemCrossEntropy": "OhemCrossEntropyLoss",
    "Focal": "MultiClassFocalLoss",
    "Dice": "DiceLoss",
    "LovaszSoftmax": "LovaszSoftmaxLoss",
}


class Case(NamedTuple):
    """A loss by our name and settings."""

    loss: str
    options: Mapping[str, Any]
    labels: str = "usual"
    scale: float = 2.0  # of the logits: the larger, the surer
    classes: int = CLASSES


CASES = {
    "ce": Case("CrossEntropy", {}),
    "ce_weight": Case("CrossEntropy", {"weight": _WEIGHT}),
    "ce_hardest": Case("CrossEntropy", {"hardest": 0.25}),
    "ce_hardest_weight": Case("CrossEntropy", {"hardest": 0.25, "weight": _WEIGHT}),
    "ce_none_valid": Case("CrossEntropy", {}, "none"),
    "ce_ignore_0": Case("CrossEntropy", {"ignore_index": 0}, "all"),
    "ohem_thresh": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 50}),
    "ohem_min_kept": Case("OhemCrossEntropy", {"thresh": 0.05, "min_kept": 120}),
    "ohem_few_valid": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 50}, "few"),
    "ohem_none_valid": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 50}, "none"),
    "ohem_sure": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 300}, scale=0.2),
    "focal": Case("Focal", {"alpha": 0.5, "gamma": 1.5}),
    "focal_none_valid": Case("Focal", {}, "none"),
    "dice": Case("Dice", {}),
    "dice_weight": Case("Dice", {"weight": _WEIGHT, "smooth": 0.5}),
    "dice_none_valid": Case("Dice", {}, "none"),
    "dice_absent": Case("Dice", {}, "absent"),
    "lovasz": Case("LovaszSoftmax", {}),
    "lovasz_absent": Case("LovaszSoftmax", {}, "absent"),
    "lovasz_sure": Case("LovaszSoftmax", {}, scale=30.0),
    "lovasz_two": Case("LovaszSoftmax", {}, "binary", classes=2),
    "ce_two": Case("CrossEntropy", {}, "binary", classes=2),
}


def logits(case: Case) -> np.ndarray:
    """[N, H, W, C] float32."""
    values = np.random.RandomState(7).standard_normal((*SIZE_NHW, case.classes))
    return (case.scale * values).astype(np.float32)


def labels(kind: str) -> np.ndarray:
    """[N, H, W] int32; about a tenth is ignored but in "all", all but 20 in "few"."""
    state = np.random.RandomState(8)
    values = state.randint(0, CLASSES, SIZE_NHW).astype(np.int32)
    ignored = state.uniform(size=SIZE_NHW) < 0.1
    if kind == "none":
        ignored[...] = True
    elif kind == "few":
        ignored.reshape(-1)[20:] = True
    elif kind == "all":
        ignored[...] = False
    elif kind == "absent":
        values[values == 3] = 1
    elif kind == "binary":
        values %= 2
    values[ignored] = IGNORED
    return values


def predictions() -> np.ndarray:
    """[N, H, W] int32, mostly right; class 3 stands in neither these nor the labels "absent"."""
    state = np.random.RandomState(9)
    right = state.uniform(size=SIZE_NHW) < 0.7
    values = np.where(right, labels("absent"), state.randint(0, 3, SIZE_NHW))
    return np.where(values == IGNORED, 4, values).astype(np.int32)


def losses(reference: None, row: Row) -> Arrays:
    """<case>/loss and <case>/gradient [N, H, W, C] of the logits, and the metrics of `predictions`."""
    paddle, stored = import_paddle(), {}
    find("paddleseg.models.PPLiteSeg")  # its package registers the losses
    registry = find("paddleseg.cvlibs.manager").LOSSES
    for name, case in CASES.items():
        options = dict(case.options)
        if "hardest" in options:
            options["top_k_percent_pixels"] = options.pop("hardest")
        if case.loss == "Focal":
            options["num_class"] = case.classes
        given = paddle.to_tensor(logits(case).transpose(0, 3, 1, 2), stop_gradient=False)
        value = registry[PADDLESEG[case.loss]](**options)(
            given, paddle.to_tensor(labels(case.labels).astype(np.int64))
        )
        value.backward()
        stored |= {f"{name}/loss": value.numpy(), f"{name}/gradient": given.gradient().transpose(0, 2, 3, 1)}
    metrics = find("paddleseg.utils.metrics")
    paddle.concat = paddle.stack  # PaddleSeg 2.8 concatenates scalars, which Paddle 2.6 gives no axis
    areas = metrics.calculate_area(
        paddle.to_tensor(predictions()), paddle.to_tensor(labels("absent")), CLASSES, IGNORED
    )
    names = ("iou", "miou", "accuracy", "precision", "recall", "kappa", "dice", "mean_dice")
    values = (
        *metrics.mean_iou(*areas), *metrics.class_measurement(*areas), metrics.kappa(*areas), *metrics.dice(*areas)
    )  # fmt: skip
    return stored | {f"metrics/{name}": np.asarray(value) for name, value in zip(names, values, strict=True)}

"""Reference outputs and losses of both versions of PicoDet-S, and the names of all sizes, from PaddleDetection.

    python tools/golden/picodet.py [variant ...]        needs: paddlepaddle 2.6, ppdet 2.6

The entries of the state dict are drawn from their names (framework/interop/named_weights.py), on two images, of which
the second has no objects. Written to tests/golden/data/picodet/<variant>.npz: thinned maps, NCHW, and the parts
of the
loss; of the other sizes only the names and shapes of the state dict.
"""

from __future__ import annotations

import sys
import zlib  # noqa: F401  paddle crashes in this environment when it is loaded first
from collections.abc import Callable
from pathlib import Path

import numpy as np
import paddle

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from ppdet.modeling.assigners.atss_assigner import ATSSAssigner
from ppdet.modeling.assigners.simota_assigner import SimOTAAssigner
from ppdet.modeling.assigners.task_aligned_assigner import TaskAlignedAssigner
from ppdet.modeling.backbones.esnet import ESNet
from ppdet.modeling.backbones.lcnet import LCNet
from ppdet.modeling.heads.pico_head import PicoFeat, PicoHead, PicoHeadV2
from ppdet.modeling.losses.gfocal_loss import DistributionFocalLoss
from ppdet.modeling.losses.iou_loss import GIoULoss
from ppdet.modeling.losses.varifocal_loss import VarifocalLoss
from ppdet.modeling.necks.csp_pan import CSPPAN
from ppdet.modeling.necks.lc_pan import LCPAN

from framework.interop.named_weights import named_weights

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "picodet"
KEPT = 160  # values of each output
# What depthwise and other kernels are multiplied by: without it no signal would reach the heads.
GAINS = {"picodet_s": (4.4, 1.5), "picodet_s_esnet": (2.8, 1.25), "picodet_layout_1x": (4.0, 1.45)}
RATIOS = [0.875, 0.5, 1.0, 0.625, 0.5, 0.75, 0.625, 0.625, 0.5, 0.625, 1.0, 0.625, 0.75]
SMALL_RATIOS = [0.875, 0.5, 0.5, 0.5, 0.625, 0.5, 0.625, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]


class Model(paddle.nn.Layer):
    """What ppdet's PicoDet architecture holds, without its configuration system."""

    def __init__(self, backbone: paddle.nn.Layer, neck: Callable, width: int, head: Callable) -> None:
        super().__init__()
        self.backbone = backbone
        widths = [shape.channels for shape in backbone.out_shape]
        # The list is given because upstream's default is changed by every construction.
        self.neck = neck(widths, width, num_features=4, spatial_scales=[0.125, 0.0625, 0.03125])
        self.head = head(width)

    def forward(self, image: paddle.Tensor) -> tuple:
        return self.neck(self.backbone({"image": image}))


def aligned_head(convs: int) -> Callable:
    return lambda width: PicoHeadV2(
        conv_feat=PicoFeat(width, width, 4, convs, "bn", True, use_se=True),
        num_classes=80,
        fpn_stride=[8, 16, 32, 64],
        reg_max=7,
        feat_in_chan=width,
        cell_offset=0.5,
        loss_class=VarifocalLoss(use_sigmoid=False),
        loss_dfl=DistributionFocalLoss(loss_weight=0.5),
        loss_bbox=GIoULoss(loss_weight=2.5),
        static_assigner_epoch=100,
        static_assigner=ATSSAssigner(topk=9, num_classes=80),
        assigner=TaskAlignedAssigner(topk=13, alpha=1.0, beta=6.0),
    )


def shared_head(convs: int) -> Callable:
    return lambda width: PicoHead(
        conv_feat=PicoFeat(width, width, 4, convs, "bn", True),
        num_classes=80,
        fpn_stride=[8, 16, 32, 64],
        reg_max=7,
        feat_in_chan=width,
        cell_offset=0.5,
        loss_class=VarifocalLoss(use_sigmoid=True),
        loss_dfl=DistributionFocalLoss(loss_weight=0.25),
        loss_bbox=GIoULoss(loss_weight=2.0),
        assigner=SimOTAAssigner(candidate_topk=10, iou_weight=6, num_classes=80),
    )


def lcnet(scale: float, width: int, convs: int) -> Callable[[], Model]:
    return lambda: Model(LCNet(scale), LCPAN, width, aligned_head(convs))


def esnet(scale: float, ratios: list[float], width: int, convs: int) -> Callable[[], Model]:
    return lambda: Model(ESNet(scale, channel_ratio=ratios), CSPPAN, width, shared_head(convs))


VARIANTS: dict[str, Callable[[], Model]] = {
    "picodet_xs": lcnet(0.35, 96, 2),
    "picodet_s": lcnet(0.75, 96, 2),
    "picodet_m": lcnet(1.5, 128, 4),
    "picodet_l": lcnet(2.0, 160, 4),
    "picodet_s_esnet": esnet(0.75, SMALL_RATIOS, 96, 2),
    "picodet_m_esnet": esnet(1.0, RATIOS, 128, 4),
    "picodet_l_esnet": esnet(1.25, RATIOS, 160, 4),
    # legacy_model/application/layout_analysis/picodet_lcnet_x1_0_layout.yml; 80 classes here as in the others
    "picodet_layout_1x": lambda: Model(LCNet(1.0), CSPPAN, 128, shared_head(4)),
}


def weights(variant: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Drawn from names; the bins of the distances stay, and no two cells rank equal."""
    drawn = named_weights(shapes)
    del drawn["head.distribution_project.project"]
    depthwise, full = GAINS[variant]
    return {
        name: value * (depthwise if value.shape[1] == 1 else full) if value.ndim == 4 else value
        for name, value in drawn.items()
    }


def inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images [2, 3, 320, 320]; boxes [7, 4] and labels [7] of the first, none of the second."""
    random = np.random.RandomState(11)
    images = random.standard_normal((2, 3, 20, 20)).astype(np.float32).repeat(16, axis=2).repeat(16, axis=3)
    corners = random.uniform(0, 200, (7, 2))
    boxes = np.concatenate([corners, corners + random.uniform(12, 120, (7, 2))], axis=1)
    return images, boxes.astype(np.float32), random.randint(0, 80, 7)


def aligned_losses(head: PicoHeadV2, maps: tuple, boxes: np.ndarray, labels: np.ndarray, epoch: int) -> dict:
    """One row of padding more than there are objects."""
    truth = np.zeros((2, 8, 4), np.float32)
    classes, mask = np.zeros((2, 8, 1), np.int64), np.zeros((2, 8, 1), np.float32)
    truth[0, :7], classes[0, :7, 0], mask[0, :7] = boxes, labels, 1
    meta = {"gt_class": classes, "gt_bbox": truth, "pad_gt_mask": mask, "im_id": np.zeros((2, 1))}
    meta = {name: paddle.to_tensor(value) for name, value in meta.items()}
    return head.get_loss(head.forward_train(maps), {**meta, "epoch_id": epoch})


def shared_losses(head: PicoHead, maps: tuple, boxes: np.ndarray, labels: np.ndarray) -> dict:
    head.distribution_project.training = True  # rows of four, which the loss needs
    none = paddle.zeros([0, 4]), paddle.zeros([0, 1], "int64")
    one = paddle.to_tensor(boxes), paddle.to_tensor(labels[:, None].astype(np.int64))
    truth = {"gt_bbox": [one[0], none[0]], "gt_class": [one[1], none[1]], "im_id": np.zeros((2, 1))}
    return head.get_loss(head.forward_train(maps), truth)


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def measured(model: Model) -> dict[str, np.ndarray]:
    images, boxes, labels = inputs()
    found: dict[str, np.ndarray] = {}
    maps = model(paddle.to_tensor(images))
    found.update({f"neck.{i}": x.numpy() for i, x in enumerate(maps)})
    head = model.head
    if isinstance(head, PicoHeadV2):
        runs = {f"epoch{epoch}": aligned_losses(head, maps, boxes, labels, epoch) for epoch in (0, 200)}
        scores, distances = head.forward_train(maps)[:2]
        found.update(scores=scores.numpy(), distances=distances.numpy())
    else:
        runs = {"epoch0": shared_losses(head, maps, boxes, labels)}
        for i, (scores, distances) in enumerate(zip(*head.forward_train(maps))):
            found[f"scores.{i}"] = paddle.nn.functional.sigmoid(scores).numpy()
            found[f"distances.{i}"] = distances.numpy()
    for name, out in found.items():
        spread = out.std(axis=(2, 3)).mean() if out.ndim == 4 else out.std(axis=1).mean()
        print(f"{name:14} {out.shape!s:20} max |x| {np.abs(out).max():.4f}, std over cells {spread:.4f}")
    losses = {f"{run}.{part}": value.numpy() for run, parts in runs.items() for part, value in parts.items()}
    print(losses)
    return {**{name: thin(out) for name, out in found.items()}, **losses}


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for variant, build in VARIANTS.items():
        if sys.argv[1:] and variant not in sys.argv[1:]:
            continue
        model = build()
        shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
        model.eval()
        keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
        parameters = sum(int(np.prod(p.shape)) for p in model.parameters())
        print(variant, len(shapes), parameters)
        values: dict[str, np.ndarray] = {}
        if variant in GAINS:
            model.set_state_dict(weights(variant, shapes))
            with paddle.no_grad():
                values = measured(model)
        np.savez_compressed(OUT / f"{variant}.npz", keys=np.array(keys.encode()), **values)


if __name__ == "__main__":
    main()

"""Losses and detections of PicoDet, PP-YOLOE+, YOLOX, FCOS, RT-DETR and DINO, from PaddleDetection: rows name these."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.golden.thinning import thin
from tools.golden.network import Arrays, Reference, Row, find


def aligned_head(width: int, convs: int) -> Any:
    """PicoDet's head with two assigners."""
    return _pico_head("PicoHeadV2", width, convs, False, 0.5, 2.5, {"use_se": True})(
        static_assigner_epoch=100,
        static_assigner=find("ppdet.modeling.assigners.ATSSAssigner")(topk=9, num_classes=80),
        assigner=find("ppdet.modeling.assigners.TaskAlignedAssigner")(topk=13, alpha=1.0, beta=6.0),
    )


def shared_head(width: int, convs: int) -> Any:
    """PicoDet's earlier head."""
    assigner = find("ppdet.modeling.assigners.simota_assigner.SimOTAAssigner")
    return _pico_head("PicoHead", width, convs, True, 0.25, 2.0, {})(
        assigner=assigner(candidate_topk=10, iou_weight=6, num_classes=80)
    )


def _pico_head(
    name: str, width: int, convs: int, use_sigmoid: bool, dfl: float, box: float, more: dict[str, Any]
) -> functools.partial[Any]:
    feat = find("ppdet.modeling.heads.pico_head.PicoFeat")(width, width, 4, convs, "bn", True, **more)
    return functools.partial(
        find(f"ppdet.modeling.heads.pico_head.{name}"),
        conv_feat=feat, num_classes=80, fpn_stride=[8, 16, 32, 64], reg_max=7, feat_in_chan=width, cell_offset=0.5,
        loss_class=find("ppdet.modeling.losses.varifocal_loss.VarifocalLoss")(use_sigmoid=use_sigmoid),
        loss_dfl=find("ppdet.modeling.losses.gfocal_loss.DistributionFocalLoss")(loss_weight=dfl),
        loss_bbox=find("ppdet.modeling.losses.iou_loss.GIoULoss")(loss_weight=box),
    )  # fmt: skip


def cells(row: Row) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images [2, 3, 320, 320]; boxes [7, 4] and labels [7] of the first, none of the second."""
    random = np.random.RandomState(11)
    images = random.standard_normal((2, 3, 20, 20)).astype(np.float32).repeat(16, axis=2).repeat(16, axis=3)
    corners = random.uniform(0, 200, (7, 2))
    boxes = np.concatenate([corners, corners + random.uniform(12, 120, (7, 2))], axis=1)
    return images, boxes.astype(np.float32), random.randint(0, 80, 7)


def picodet(reference: Reference, row: Row) -> Arrays:
    """Maps of the neck, scores, distances and the parts of the loss, of two versions of the head; the aligned one's
    with both assigners, and with one row of padding more than there are objects."""
    model, paddle, found = reference.model, reference.library, {}
    model.eval()
    head, (images, boxes, labels) = model.head, cells(row)
    with paddle.no_grad():
        maps = model.neck(model.backbone({"image": paddle.to_tensor(images)}))
        found |= {f"neck.{i}": x.numpy() for i, x in enumerate(maps)}
        if type(head).__name__ == "PicoHeadV2":
            truth = np.zeros((2, 8, 4), np.float32)
            classes, mask = np.zeros((2, 8, 1), np.int64), np.zeros((2, 8, 1), np.float32)
            truth[0, :7], classes[0, :7, 0], mask[0, :7] = boxes, labels, 1
            meta = {"gt_class": classes, "gt_bbox": truth, "pad_gt_mask": mask, "im_id": np.zeros((2, 1))}
            meta = {name: paddle.to_tensor(value) for name, value in meta.items()}
            runs = {
                f"epoch{n}": head.get_loss(head.forward_train(maps), {**meta, "epoch_id": n})
                for n in (0, 200)
            }
            scores, distances = head.forward_train(maps)[:2]
            found |= {"scores": scores.numpy(), "distances": distances.numpy()}
        else:
            head.distribution_project.training = True  # rows of four, which the loss needs
            one, none = paddle.to_tensor(boxes), paddle.zeros([0, 4])
            kind, empty = paddle.to_tensor(labels[:, None].astype(np.int64)), paddle.zeros([0, 1], "int64")
            meta = {"gt_bbox": [one, none], "gt_class": [kind, empty], "im_id": np.zeros((2, 1))}
            runs = {"epoch0": head.get_loss(head.forward_train(maps), meta)}
            for i, (scores, distances) in enumerate(zip(*head.forward_train(maps))):
                found[f"scores.{i}"] = paddle.nn.functional.sigmoid(scores).numpy()
                found[f"distances.{i}"] = distances.numpy()
    found = {name: thin(value) for name, value in found.items()}
    return found | {
        f"{run}.{name}": value.numpy() for run, parts in runs.items() for name, value in parts.items()
    }


def calmer(drawn: Arrays, reference: Reference) -> Arrays:
    """Boxes about as large as the objects: without that no assigner has a choice."""
    for name, value in drawn.items():
        if name.startswith("head.conv_") and name.split(".")[3] == "2":
            drawn[name] = value * 0.4
        if "pred_reg" in name:
            drawn[name] = value * 0.5
        if "pred_cls" in name:
            drawn[name] = value * 0.02
        if name.startswith("head.conv_reg") and name.endswith("2.bias"):
            drawn[name] = np.array([0, 0, 1.2, 1.2, 0], np.float32)
        if name == "yolo_head.proj_conv.weight":
            drawn[name] = np.arange(17, dtype=np.float32).reshape(1, 17, 1, 1)
    return drawn


def objects(size_hw: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(boxes [2, 4, 4] xyxy, labels [2, 4], valid [2, 4]): overlapping, small and large ones, and an image of none.

    No centre lies where several cells are equally near: implementations choose differently there.
    """
    height, width = size_hw
    share = np.array(
        [
            [0.053, 0.107, 0.557, 0.703],
            [0.31, 0.32, 0.957, 0.95],
            [0.621, 0.05, 0.757, 0.2],
            [0.1, 0.123, 0.5, 0.75],
        ]
    )
    boxes = np.zeros((2, 4, 4), np.float32)
    boxes[0] = share * (width, height, width, height)
    labels = np.array([[3, 0, 79, 3], [0, 0, 0, 0]], np.int64)
    return boxes, labels, np.array([[True] * 4, [False] * 4])


YOLO_GRADIENTS = (
    *("yolo_head.pred_reg.1.weight", "yolo_head.pred_cls.0.weight", "backbone.stem.conv2.conv.weight"),
    *("head.conv_reg.1.2.weight", "head.conv_cls.1.2.weight", "backbone.stem.conv.conv.weight"),
)


def yolo(reference: Reference, row: Row) -> Arrays:
    """Scores and boxes, and in two epochs the parts of the loss and some gradients; normalisations have the statistics
    given, for one batch of noise has no sensible ones."""
    model, paddle, found = reference.model, reference.library, {}
    is_yolox = not hasattr(model, "yolo_head")
    head = model.head if is_yolox else model.yolo_head
    norms = [layer for layer in model.sublayers() if isinstance(layer, paddle.nn.BatchNorm2D)]
    for layer in norms if is_yolox else ():  # as upstream's trainer does
        layer._epsilon, layer._momentum = 1e-3, 0.97
    x = paddle.to_tensor(np.random.RandomState(7).standard_normal((2, 3, *row["size_hw"])).astype(np.float32))

    def call(targets: Any = None) -> Any:
        return head(model.neck(model.backbone({"image": x})), targets)

    model.eval()
    with paddle.no_grad():
        found |= {name: thin(out.numpy(), row["kept"]) for name, out in zip(("scores", "boxes"), call())}
    boxes, labels, valid = objects(row["size_hw"])
    model.train()
    for layer in norms:
        layer.eval()
    if is_yolox:
        targets = {
            "gt_class": [paddle.to_tensor(k[v][:, None]) for k, v in zip(labels, valid)],
            "gt_bbox": [paddle.to_tensor(b[v]) for b, v in zip(boxes, valid)],
        }
    else:
        mask = valid[..., None].astype(np.float32)
        arrays = {"gt_class": labels[..., None], "gt_bbox": boxes, "pad_gt_mask": mask}
        targets = {name: paddle.to_tensor(value) for name, value in arrays.items()}
    for epoch in (0, 1):
        losses = call({**targets, "epoch_id": epoch})
        found |= {f"{name}@{epoch}": np.float32(value.numpy()) for name, value in losses.items()}
        losses["loss"].backward()
        for name, parameter in model.named_parameters():
            if name in YOLO_GRADIENTS:
                found[f"grad {name}@{epoch}"] = thin(parameter.grad.numpy(), row["kept"])
        model.clear_gradients()
    return found


def fcos_objects(size_hw: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `objects`, one of them small enough for the finest map."""
    boxes, labels, valid = objects(size_hw)
    boxes[0, 3] = (21, 37, 70, 81)
    return boxes, labels, valid


def fcos(reference: Reference, row: Row) -> Arrays:
    """Scores and boxes of the cells in pixels, what the cells learn, and the parts of the loss for either quality."""
    model, paddle = reference.model, reference.library
    head, size_hw = model.fcos_head, row["size_hw"]
    x = paddle.to_tensor(np.random.RandomState(7).standard_normal((2, 3, *size_hw)).astype(np.float32))
    boxes, labels, _ = fcos_objects(size_hw)
    assign = find("ppdet.data.transform.batch_operators.Gt2FCOSTarget")(
        object_sizes_boundary=[64, 128, 256, 512],
        center_sampling_radius=1.5,
        downsample_ratios=head.fpn_stride,
    )
    one = {"image": np.zeros((3, *size_hw), np.float32), "gt_bbox": boxes[0], "gt_class": labels[0][:, None]}
    cells = assign([one])[0]  # upstream's samples without objects are left out before
    kinds = [f"{kind}{level}" for kind in ("labels", "reg_target", "centerness") for level in range(5)]
    targets = {name: np.stack([cells[name], np.zeros_like(cells[name])]) for name in kinds}
    model.eval()
    with paddle.no_grad():
        maps = model.neck(model.backbone({"image": x}))
        pairs = [head._post_process_by_level(*level) for level in zip(*head(maps))]
        scores, places = (np.concatenate([out.numpy() for out in outs], 1) for outs in zip(*pairs))
        found = {"scores": thin(scores, row["kept"]), "boxes": thin(places, row["kept"])}
        head.training = True
        for quality in ("centerness", "iou"):
            head.fcos_loss.quality = quality
            losses = head(maps, {name: paddle.to_tensor(value) for name, value in targets.items()})
            found |= {f"{name}@{quality}": np.float32(value.numpy()) for name, value in losses.items()}
    for name in ("labels", "centerness"):
        found[name] = np.concatenate([cells[f"{name}{level}"].reshape(-1) for level in range(5)])
    return found


# -- detection transformers ------------------------------------------------------------------------------------------

SLOTS = 12  # denoising queries of the small cases
# cxcywh in 0 to 1 of the image, and labels: of three images, the second without objects
OBJECTS = (
    ([[0.3, 0.4, 0.2, 0.3], [0.7, 0.6, 0.5, 0.6], [0.5, 0.25, 0.1, 0.08]], [3, 17, 3]),
    ([], []),
    ([[0.55, 0.5, 0.6, 0.9]], [79]),
)
GRADIENTS = (
    "transformer.decoder.layers.0.cross_attn.sampling_offsets.weight",
    "transformer.dec_bbox_head.0.layers.2.weight",
    "transformer.denoising_class_embed.weight",
    "transformer.input_proj.0.conv.weight",
)


def detr(
    config: str, queries: int = 0, layers: dict[str, int] | None = None, depth: int = 0, classes: int = 0
) -> Any:
    """A model of a config of the checkout; layers of encoder and decoder, depth of the ResNet and the like replaced."""
    ppdet, workspace = find("ppdet.__file__"), find("ppdet.core.workspace")
    settings = workspace.load_config(str(Path(ppdet).resolve().parents[1] / "configs" / config))
    settings["eval_size"] = None
    transformer = settings[settings["DETR"]["transformer"]]
    if classes:
        settings["num_classes"] = classes
    if queries:
        transformer["num_queries"] = queries
    for part, number in (layers or {}).items():
        transformer[f"num_{part}_layers"] = number
    if depth:
        settings["ResNet"]["depth"] = depth
    return workspace.create(settings.architecture)


@contextlib.contextmanager
def noise(paddle: Any) -> Iterator[None]:
    """The arrays of tests/golden/test_detr.py in place of what paddle draws."""
    draw, batch = np.random.RandomState(11), len(OBJECTS)
    chance, labels = draw.rand(batch, SLOTS), draw.randint(0, 80, (batch, SLOTS))
    signs, shares = draw.randint(0, 2, (batch, SLOTS, 4)), draw.rand(batch, SLOTS, 4)

    def rand(shape: list[int]) -> Any:
        taken = chance[:, : shape[0] // batch].reshape(-1) if len(shape) == 1 else shares[:, : shape[1]]
        return paddle.to_tensor(taken.astype(np.float32))

    def randint_like(x: Any, low: int, high: int, dtype: Any = None) -> Any:
        if x.ndim == 1:  # of the queries that the first draw chose
            queries = 2 * 3 * (SLOTS // 2 // 3)
            return paddle.to_tensor(labels[:, :queries].reshape(-1)[x.numpy()].astype(np.int32))
        return paddle.to_tensor(signs[:, : x.shape[1]].astype(np.float32))

    with mock.patch.object(paddle, "rand", rand), mock.patch.object(paddle, "randint_like", randint_like):
        yield


def detect_and_learn(reference: Reference, row: Row) -> Arrays:
    """Stages and detections; of small models the parts of the loss, with the noise of the denoising queries put in, and
    the means of some gradients."""
    model, paddle, found = reference.model, reference.library, {}
    with_neck, size_hw = getattr(model, "neck", None) is not None, row["size_hw"]

    def images(batch: int) -> Any:
        values = np.random.RandomState(5).standard_normal((batch, 3, *size_hw))
        return paddle.to_tensor(values.astype(np.float32))

    model.eval()
    last = len(model.transformer.decoder.layers) - 1
    reference.watch(found, [*row["stages"], f"transformer.decoder.layers.{last}"])
    with paddle.no_grad():
        maps = model.backbone({"image": images(1)})
        out = model.transformer(model.neck(maps) if with_neck else maps)
        size = paddle.to_tensor([size_hw], "float32")
        boxes = model.post_process(model.detr_head(out, maps), size, paddle.ones([1, 2]), size)[0].numpy()
    stored = {name: thin(value) for name, value in found.items()} | {"detections": boxes[:100]}
    if not row["options"].get("queries"):
        return stored
    model.train()
    model.transformer.num_denoising = SLOTS // 2
    inputs = {
        "image": images(len(OBJECTS)),
        "gt_bbox": [paddle.to_tensor(np.reshape(box, (-1, 4)).astype(np.float32)) for box, _ in OBJECTS],
        "gt_class": [paddle.to_tensor(np.reshape(label, (-1, 1)).astype(np.int32)) for _, label in OBJECTS],
    }
    maps = model.backbone(inputs)
    with noise(paddle):
        out = model.transformer(model.neck(maps) if with_neck else maps, None, inputs)
    losses = model.detr_head(out, maps, inputs)
    paddle.add_n(list(losses.values())).backward()
    stored |= {f"loss {name}": np.asarray(float(value)) for name, value in losses.items()}
    parameters = dict(model.named_parameters())
    return stored | {f"loss gradient {n}": np.abs(parameters[n].grad.numpy()).mean() for n in GRADIENTS}

"""Pose models of PaddleDetection: what they are run on, which the tests draw too, and how."""

from __future__ import annotations

import types
from typing import Any
from unittest import mock

import numpy as np

from tools.golden.network import Arrays, Reference, Row, find, import_paddle
from tools.golden.tables import network_table

JOINTS = 17
FLIP_PAIRS = ((1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 16))
# {case: (height, width) of the images}
BOTTOM_UP, TOP_DOWN = (
    {
        n: tuple(row["size_hw"])
        for n, row in network_table("keypoint").items()
        if row.get("run", "").endswith(kind)
    }
    for kind in ("bottom_up", "top_down")
)
BATCH = 2
WATCHED = (  # of the bottom-up model
    "hrhrnet_head.conv1",
    "hrhrnet_head.deconv",
    "hrhrnet_head.blocks",
    "hrhrnet_head.conv2",
)
# Name: (people, tags at each place)
SCENES = {"nobody": (0, 2), "one": (1, 2), "three": (3, 2), "crowd": (12, 1)}
SCENE_HW = (64, 96)  # half of the image's
CALM = 0.05
"""Factor of the last convolutions' weights: random ones give heatmaps whose squares the loss would cut off."""


def images(batch: int, size_hw: tuple[int, int]) -> np.ndarray:
    """[N, 3, H, W] float32"""
    return np.random.RandomState(5).standard_normal((batch, 3, *size_hw)).astype(np.float32)


def people(size_hw: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(keypoints [2, 4, J, 3] of images in pixels, valid [2, 4]).

    Some joints are outside or without label. A person of the first image has one joint; in the second is nobody.
    """
    draw = np.random.RandomState(9)
    keypoints = np.zeros((BATCH, 4, JOINTS, 3), np.float32)
    height, width = size_hw
    keypoints[..., :2] = draw.uniform(-0.12, 1.12, keypoints[..., :2].shape) * [width, height]
    keypoints[..., 2] = draw.randint(0, 3, keypoints.shape[:-1])
    keypoints[0, 1, :, 2] = 0
    keypoints[0, 1, 5] = [0.4 * width, 0.7 * height, 2]
    valid = np.array([[True, True, False, True], [False] * 4])
    return keypoints, valid


def ignored(size_hw: tuple[int, int]) -> np.ndarray:
    """[2, H, W] bool"""
    mask = np.zeros((BATCH, *size_hw), bool)
    mask[0, size_hw[0] // 3 : size_hw[0] // 2, : size_hw[1] // 2] = True
    mask[1, -9:, 11:30] = True
    return mask


def scene(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(heatmaps [J, H, W], tags [T, J, H, W]) float32, as from a network; a fifth of the joints are faint or absent."""
    (number, tags), (height, width) = SCENES[name], SCENE_HW
    draw = np.random.RandomState(len(name))
    heat = 0.02 * draw.rand(JOINTS, height, width)
    tag = 0.1 * draw.standard_normal((tags, JOINTS, height, width))
    rows, columns = np.mgrid[:height, :width]
    for person in range(number):
        own = 2 + 0.9 * person + 0.2 * draw.standard_normal(tags)
        for joint in range(JOINTS):
            y, x = draw.uniform(0, height), draw.uniform(0, width)
            peak = draw.uniform(0.0, 0.09) if draw.rand() < 0.2 else draw.uniform(0.3, 1)
            bump = peak * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * 1.5**2))
            near = (bump > 0.02) & (bump > heat[joint])
            tag[:, joint, near] += (own + 0.1 * draw.standard_normal(tags))[:, None]
            heat[joint] = np.maximum(heat[joint], bump)
    return heat.astype(np.float32), tag.astype(np.float32)


def peaks() -> np.ndarray:
    """[3, J, 24, 18] float32: peaks inside and at the borders; two maps are nowhere above 0."""
    draw = np.random.RandomState(3)
    maps = 0.01 * draw.rand(3, JOINTS, 24, 18)
    rows, columns = np.mgrid[:24, :18]
    for index in np.ndindex(3, JOINTS):
        y, x = draw.uniform(-1, 25), draw.uniform(-1, 19)
        maps[index] += draw.uniform(0.2, 1) * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / 8)
    maps[0, -1] = -maps[0, -1]
    maps[1, -1] = 0
    return maps.astype(np.float32)


# -- the reference ---------------------------------------------------------------------------------------------------


class Ragged(types.SimpleNamespace):
    """numpy whose `array` takes people of unequal numbers of joints, as the numpy for which ppdet was written did."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def array(rows: Any, *args: Any, **options: Any) -> np.ndarray:
        try:
            return np.array(rows, *args, **options)
        except ValueError:
            return np.array(rows, dtype=object)


def _bottom_up_module() -> Any:
    module = find("ppdet.modeling.architectures.keypoint_hrhrnet")
    module.np = Ragged()
    return module


def higher_hrnet(backbone: Any) -> Any:
    head = find("ppdet.modeling.heads.keypoint_hrhrnet_head.HrHRNetHead")
    loss = find("ppdet.modeling.losses.keypoint_loss.HrHRNetLoss")
    order, module = np.arange(JOINTS), _bottom_up_module()
    for left, right in FLIP_PAIRS:
        order[[left, right]] = right, left
    heads = head(JOINTS, loss(JOINTS, False), False, 32)
    return module.HigherHRNet(backbone, heads, module.HrHRNetPostProcess(), True, order.tolist())


def top_down_hrnet(backbone: Any) -> Any:
    kind = find("ppdet.modeling.architectures.keypoint_hrnet.TopDownHRNet")
    return kind(
        32,
        JOINTS,
        backbone,
        find("ppdet.modeling.losses.keypoint_loss.KeyPointMSELoss")(),
        flip_perm=FLIP_PAIRS,
    )


def _given(paddle: Any, size_hw: tuple[int, int]) -> dict[str, Any]:
    return {"image": paddle.to_tensor(images(1, size_hw)), "im_shape": paddle.to_tensor([size_hw], "float32")}


def bottom_up(reference: Reference, row: Row) -> Arrays:
    """Stages, the maps after the flip test, and in training the losses with the targets of ppdet's transforms."""
    model, paddle, size_hw, found, maps = reference.model, reference.library, row["size_hw"], {}, []
    model.eval()
    reference.watch(found, WATCHED)
    model.inputs = _given(paddle, size_hw)
    with paddle.no_grad(), mock.patch.object(model, "get_topk", lambda x: maps.extend(x) or x):
        model.deploy = True
        model._forward()
        stored = dict(found)
        model.deploy, model.post_process = False, lambda *maps: (None, None)
        maps.clear()
        model._forward()
        stored |= {f"maps {i}": out.numpy() for i, out in enumerate(maps)}
    model.train()
    records = [_targets(size_hw, index) for index in range(BATCH)]
    names = ("heatmap_gt1x", "heatmap_gt2x", "mask_1x", "mask_2x", "tagmap")
    targets = {name: paddle.to_tensor(np.stack([record[name] for record in records])) for name in names}
    targets = {name: x.astype("float32") if "heat" in name else x for name, x in targets.items()}
    with paddle.no_grad():
        out = model.backbone({"image": paddle.to_tensor(images(BATCH, size_hw))})
        losses = model.hrhrnet_head(out, targets)
    return stored | {f"loss {name}": np.asarray(float(value)) for name, value in losses.items()}


def _targets(size_hw: tuple[int, int], index: int) -> dict[str, np.ndarray]:
    operators, side = find("ppdet.data.transform.keypoint_operators"), size_hw[0]
    sizes = [side // 4, side // 2]
    keypoints, valid = people(size_hw)
    joints = keypoints[index][valid[index]].astype(np.float64)
    joints[..., :2] /= side
    mask = (~ignored(size_hw)[index]).astype(np.float32)
    records = {"image": np.zeros((*size_hw, 3), np.uint8), "joints": joints, "mask": mask}
    for transform in (
        operators.RandomAffine(0, [1, 1], 0, sizes, side),
        operators.ToHeatmaps(JOINTS, sizes, 2),
        operators.TagGenerate(JOINTS),
    ):
        records = transform(records)
    return records


def top_down(reference: Reference, row: Row) -> Arrays:
    """The maps without and with the flip test, and the loss in training."""
    model, paddle, size_hw, found, maps = reference.model, reference.library, row["size_hw"], {}, []
    operators = find("ppdet.data.transform.keypoint_operators")
    model.eval()
    reference.watch(found, ("final_conv",))
    model.post_process = lambda x, center, scale: maps.append(x)
    model.inputs = _given(paddle, size_hw)
    with paddle.no_grad():
        model.flip = False
        model._forward()
        stored = dict(found)
        model.flip = True
        model._forward()
    model.train()
    records = []
    for joints in people(size_hw)[0][:, 0]:
        seen = np.minimum(joints[:, 2:], 1).repeat(3, 1)
        record = {"image": np.zeros((*size_hw, 3)), "joints": joints.copy(), "joints_vis": seen}
        records.append(operators.ToHeatmapsTopDown([size_hw[1] // 4, size_hw[0] // 4], 2)(record))
    names = ("target", "target_weight")
    model.inputs = {name: paddle.to_tensor(np.stack([record[name] for record in records])) for name in names}
    model.inputs["image"] = paddle.to_tensor(images(BATCH, size_hw))
    with paddle.no_grad():
        loss = np.asarray(float(model._forward()["loss"]))
    return stored | {"flipped": maps[-1].numpy(), "loss": loss}


def poses(reference: None, row: Row) -> Arrays:
    """People of the maps of a scene, grouped by tags."""
    paddle, module = import_paddle(), _bottom_up_module()
    heat, tags = scene(row["scene"])
    maps = [paddle.to_tensor(x[None]) for x in (heat, *tags)]
    pool, head = paddle.nn.MaxPool2D(5, 1, 2), types.SimpleNamespace(num_joints=JOINTS)
    upsample = paddle.nn.Upsample(None, 2, "bilinear")
    model: Any = types.SimpleNamespace(interpolate=upsample, pool=pool, hrhrnet_head=head, max_num_people=30)
    height, width = (2 * side for side in heat.shape[1:])
    top = module.HigherHRNet.get_topk(model, maps)
    keypoints, scores = module.HrHRNetPostProcess()(*top, height, width)
    return {"keypoints": keypoints, "scores": np.asarray(scores if len(keypoints) else np.zeros(0))}


def dark(reference: None, row: Row) -> Arrays:
    """Poses of given maps, refined."""
    paddle, maps = import_paddle(), peaks()
    sizes = np.array([[4 * maps.shape[3], 4 * maps.shape[2]]] * len(maps), np.float32)
    process = find("ppdet.modeling.architectures.keypoint_hrnet.HRNetPostProcess")()
    keypoints, scores = process(paddle.to_tensor(maps), sizes / 2, sizes / 200)[0]
    return {"keypoints": keypoints.astype(np.float32), "scores": scores}

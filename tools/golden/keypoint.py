"""Reference outputs, losses and poses of HigherHRNet and the top-down HRNet, from PaddleDetection.

    python tools/golden/keypoint.py [case ...]        needs: paddlepaddle 2.6, ppdet

Every entry of the state dict is drawn from PaddleDetection's name for it (framework/interop/named_weights.py). A
network's case stores what watched sublayers give in eval, thinned, the maps after the flip test, and in training the
losses, with the targets of PaddleDetection's transforms. Cases called after scenes, and `dark`, store the poses of
given maps.
"""

from __future__ import annotations

import sys
import types
import zlib  # noqa: F401  has to be imported before paddle
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import paddle
from hrnet import thin
from keypoint_cases import (
    BATCH,
    BOTTOM_UP,
    CALM,
    FLIP_PAIRS,
    JOINTS,
    SCENES,
    TOP_DOWN,
    WATCHED,
    ignored,
    images,
    peaks,
    people,
    scene,
)
from ppdet.data.transform import keypoint_operators as operators
from ppdet.modeling.architectures import keypoint_hrhrnet
from ppdet.modeling.architectures.keypoint_hrnet import HRNetPostProcess, TopDownHRNet
from ppdet.modeling.backbones.hrnet import HRNet
from ppdet.modeling.heads.keypoint_hrhrnet_head import HrHRNetHead
from ppdet.modeling.losses.keypoint_loss import HrHRNetLoss, KeyPointMSELoss

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from framework.interop.named_weights import named_weights

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "keypoint"


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


keypoint_hrhrnet.np = Ragged()


def load(model: Any) -> str:
    """Give the model weights drawn from its names; returns names and shapes, a line each."""
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    weights = named_weights(shapes)
    for name in weights:
        if name.startswith(("hrhrnet_head.conv", "final_conv")):
            weights[name] *= CALM
    model.set_state_dict(weights)
    return "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))


def backbone() -> Any:
    return HRNet(width=32, freeze_at=-1, freeze_norm=False, return_idx=[0])


def watch(model: Any, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    layers = dict(model.named_sublayers())
    for name in names:
        layers[name].register_forward_post_hook(
            lambda _, args, out, name=name: found.__setitem__(name, out.numpy())
        )
    return found


def bottom_up(size_hw: tuple[int, int]) -> dict[str, np.ndarray]:
    head = HrHRNetHead(JOINTS, HrHRNetLoss(JOINTS, False), False, 32)
    order = np.arange(JOINTS)
    for left, right in FLIP_PAIRS:
        order[[left, right]] = right, left
    process = keypoint_hrhrnet.HrHRNetPostProcess()
    model: Any = keypoint_hrhrnet.HigherHRNet(backbone(), head, process, True, order.tolist())
    stored = {"keys": np.array(load(model).encode())}

    model.eval()
    found = watch(model, WATCHED)
    given: list[Any] = []
    x = paddle.to_tensor(images(1, size_hw))
    model.inputs = {"image": x, "im_shape": paddle.to_tensor([size_hw], "float32")}
    with paddle.no_grad(), mock.patch.object(model, "get_topk", lambda maps: given.extend(maps) or maps):
        model.deploy = True
        model._forward()
        stored |= {name: thin(out) for name, out in found.items()}
        model.deploy, model.post_process = False, lambda *maps: (None, None)
        given.clear()
        model._forward()
        stored |= {f"maps {i}": thin(out.numpy()) for i, out in enumerate(given)}

    model.train()
    records = [bottom_up_targets(size_hw, index) for index in range(BATCH)]
    inputs = {
        name: paddle.to_tensor(np.stack([record[name] for record in records]))
        for name in ("heatmap_gt1x", "heatmap_gt2x", "mask_1x", "mask_2x", "tagmap")
    }
    inputs = {name: x.astype("float32") if "heat" in name else x for name, x in inputs.items()}
    with paddle.no_grad():
        maps = model.backbone({"image": paddle.to_tensor(images(BATCH, size_hw))})
        losses = model.hrhrnet_head(maps, inputs)
    return stored | {f"loss {name}": np.asarray(float(value)) for name, value in losses.items()}


def bottom_up_targets(size_hw: tuple[int, int], index: int) -> dict[str, np.ndarray]:
    side = size_hw[0]
    sizes = [side // 4, side // 2]
    keypoints, valid = people(size_hw)
    joints = keypoints[index][valid[index]].astype(np.float64)
    joints[..., :2] /= side
    records = {
        "image": np.zeros((*size_hw, 3), np.uint8),
        "joints": joints,
        "mask": (~ignored(size_hw)[index]).astype(np.float32),
    }
    for transform in (
        operators.RandomAffine(0, [1, 1], 0, sizes, side),
        operators.ToHeatmaps(JOINTS, sizes, 2),
        operators.TagGenerate(JOINTS),
    ):
        records = transform(records)
    return records


def top_down(size_hw: tuple[int, int]) -> dict[str, np.ndarray]:
    model: Any = TopDownHRNet(32, JOINTS, backbone(), KeyPointMSELoss(), flip_perm=FLIP_PAIRS)
    stored = {"keys": np.array(load(model).encode())}
    model.eval()
    found = watch(model, ("final_conv",))
    given: list[Any] = []
    model.post_process = lambda maps, center, scale: given.append(maps)
    model.inputs = {
        "image": paddle.to_tensor(images(1, size_hw)),
        "im_shape": paddle.to_tensor([size_hw], "float32"),
    }
    with paddle.no_grad():
        model.flip = False
        model._forward()
        stored["final_conv"] = thin(found["final_conv"])
        model.flip = True
        model._forward()
    stored["flipped"] = thin(given[-1].numpy())

    model.train()
    keypoints, _ = people(size_hw)
    records = []
    for joints in keypoints[:, 0]:
        seen = np.minimum(joints[:, 2:], 1)
        record = {"image": np.zeros((*size_hw, 3)), "joints": joints.copy(), "joints_vis": seen.repeat(3, 1)}
        records.append(operators.ToHeatmapsTopDown([size_hw[1] // 4, size_hw[0] // 4], 2)(record))
    model.inputs = {
        name: paddle.to_tensor(np.stack([record[name] for record in records]))
        for name in ("target", "target_weight")
    }
    model.inputs["image"] = paddle.to_tensor(images(BATCH, size_hw))
    with paddle.no_grad():
        return stored | {"loss": np.asarray(float(model._forward()["loss"]))}


def poses(name: str) -> dict[str, np.ndarray]:
    heat, tags = scene(name)
    maps = [paddle.to_tensor(x[None]) for x in (heat, *tags)]
    pool, head = paddle.nn.MaxPool2D(5, 1, 2), types.SimpleNamespace(num_joints=JOINTS)
    upsample = paddle.nn.Upsample(None, 2, "bilinear")
    model: Any = types.SimpleNamespace(interpolate=upsample, pool=pool, hrhrnet_head=head, max_num_people=30)
    top = keypoint_hrhrnet.HigherHRNet.get_topk(model, maps)
    height, width = (2 * side for side in heat.shape[1:])
    keypoints, scores = keypoint_hrhrnet.HrHRNetPostProcess()(*top, height, width)
    print(f"{name}: {len(keypoints)} people, joints found {[int((k[:, 2] > 0).sum()) for k in keypoints]}")
    return {"keypoints": keypoints, "scores": np.asarray(scores if len(keypoints) else np.zeros(0))}


def dark() -> dict[str, np.ndarray]:
    maps = peaks()
    sizes = np.array([[4 * maps.shape[3], 4 * maps.shape[2]]] * len(maps), np.float32)
    keypoints, scores = HRNetPostProcess()(paddle.to_tensor(maps), sizes / 2, sizes / 200)[0]
    return {"keypoints": keypoints.astype(np.float32), "scores": scores}


def main() -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or [*BOTTOM_UP, *TOP_DOWN, *SCENES, "dark"]:
        if name in BOTTOM_UP:
            stored = bottom_up(BOTTOM_UP[name])
        elif name in TOP_DOWN:
            stored = top_down(TOP_DOWN[name])
        else:
            stored = dark() if name == "dark" else poses(name)
        for key, value in stored.items():
            if key != "keys" and value.size:
                print(f"{name} {key}: {value.shape} std {value.std():.5f}, largest {np.abs(value).max():.5f}")
        np.savez_compressed(OUT / f"{name}.npz", **stored)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

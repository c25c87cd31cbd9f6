"""Inputs of the parity tests of pose models: used by tools/golden/keypoint.py and tests/golden/test_keypoint.py."""

from __future__ import annotations

import numpy as np

JOINTS = 17
FLIP_PAIRS = ((1, 2), (3, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 14), (15, 16))
# Name: (height, width) of the images
BOTTOM_UP = {"higher_hrnet_w32_small": (64, 64), "higher_hrnet_w32": (512, 512)}
TOP_DOWN = {"top_down_hrnet_w32_small": (64, 64), "top_down_hrnet_w32": (256, 192)}
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

"""The motion of boxes between frames: a Kalman filter of constant velocity, for all tracks at once.

The state of a box is (x, y, a, h, and their change a frame): its centre, the ratio of width to height, the height, in
pixels. Uncertainties are in proportion to the height, as large objects are near ones.
Source: https://arxiv.org/abs/1703.07402, section 2.1
"""

from __future__ import annotations

import numpy as np

_POSITION, _VELOCITY = 1 / 20, 1 / 160
_MOTION = np.eye(8) + np.eye(8, k=4)


def xyxy_to_xyah(boxes: np.ndarray) -> np.ndarray:
    """[K, 4] corners to centre, width / height, height. Boxes without height get that of one pixel."""
    size = boxes[:, 2:] - boxes[:, :2]
    height = np.maximum(size[:, 1:], 1.0)
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, size[:, :1] / height, height], axis=1)


def xyah_to_xyxy(xyah: np.ndarray) -> np.ndarray:
    """[K, 4] centre, width / height, height to corners; more columns, such as velocities, are ignored."""
    half = np.stack([xyah[:, 2] * xyah[:, 3], xyah[:, 3]], axis=1) / 2
    return np.concatenate([xyah[:, :2] - half, xyah[:, :2] + half], axis=1)


def start(xyah: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means [K, 8] and covariances [K, 8, 8] of boxes [K, 4] that were seen once, at rest."""
    means = np.concatenate([xyah, np.zeros_like(xyah)], axis=1)
    return means, _diagonal(xyah[:, 3], (2 * _POSITION, 1e-2), (10 * _VELOCITY, 1e-5))


def predict(means: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The states one frame later."""
    noise = _diagonal(means[:, 3], (_POSITION, 1e-2), (_VELOCITY, 1e-5))
    return means @ _MOTION.T, _MOTION @ covariances @ _MOTION.T + noise


def update(means: np.ndarray, covariances: np.ndarray, xyah: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The states after boxes [K, 4] were seen, one for each."""
    noise = _diagonal(means[:, 3], (_POSITION, 1e-1), (0.0, 0.0))[:, :4, :4]
    innovation = covariances[:, :4, :4] + noise
    gain = np.linalg.solve(innovation, covariances[:, :4]).transpose(0, 2, 1)
    means = means + np.einsum("kij,kj->ki", gain, xyah - means[:, :4])
    return means, covariances - gain @ innovation @ gain.transpose(0, 2, 1)


def _diagonal(height: np.ndarray, position: tuple[float, float], velocity: tuple[float, float]) -> np.ndarray:
    """Covariances [K, 8, 8]. Each pair is the deviation of x, y, h as a share of the height, and that of the ratio."""
    deviations = [
        np.full_like(height, ratio) if axis == 2 else share * height
        for share, ratio in (position, velocity)
        for axis in range(4)
    ]
    return np.square(np.stack(deviations, axis=1))[:, :, None] * np.eye(8)

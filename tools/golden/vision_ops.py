"""Makes tests/golden/data/vision_ops.npz: what paddle.vision.ops computes for the cases in vision_ops_cases.py.

    python tools/golden/vision_ops.py [name ...]     in an environment with paddlepaddle 2.6.2

Outputs and gradients in float32, maps channels-last. Inputs are not stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle  # type: ignore[import-not-found]
import paddle.vision.ops as ops  # type: ignore[import-not-found]
from vision_ops_cases import CASES, Case

OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "vision_ops.npz"


def first(array: np.ndarray) -> np.ndarray:
    """Channels first."""
    return np.ascontiguousarray(array.transpose(0, 3, 1, 2))


def last(array: np.ndarray) -> np.ndarray:
    """Channels last."""
    return array.transpose(0, 2, 3, 1)


def flatten(value: object) -> list[paddle.Tensor]:
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in flatten(part)]
    return [] if value is None else [value]


def record(case: Case) -> dict[str, np.ndarray]:
    inputs = case.inputs()
    tensors = {
        key: paddle.to_tensor(
            first(value) if key in case.maps else value, stop_gradient=key not in case.differentiated
        )
        for key, value in inputs.items()
    }
    options = dict(case.options)
    if case.op == "matrix_nms":
        options |= {"return_index": True}
    outs = flatten(getattr(ops, case.op)(**tensors, **options))
    stored = {}
    for place, out in enumerate(outs):
        value = out.numpy()
        stored[f"{case.name}/{place}"] = last(value) if case.maps_out else value
    if case.differentiated:
        cotangent = case.cotangent(stored[f"{case.name}/0"].shape)
        (outs[0] * paddle.to_tensor(first(cotangent) if case.maps_out else cotangent)).sum().backward()
        for key in case.differentiated:
            if key in tensors:
                gradient = tensors[key].grad.numpy()
                stored[f"{case.name}/grad/{key}"] = last(gradient) if key in case.maps else gradient
    return stored


def main() -> None:
    stored: dict[str, np.ndarray] = {}
    for case in CASES:
        found = record(case)
        print(f"{case.name:32} {', '.join(str(list(value.shape)) for value in found.values())}")
        stored |= found
    np.savez_compressed(OUTPUT, **stored)
    print(f"{len(stored)} arrays, {OUTPUT.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()

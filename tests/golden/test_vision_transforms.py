"""Parity of framework.vision.transforms with Paddle 2.6.2: bit for bit on uint8, on arrays and on PIL images."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework.vision.transforms import functional as F
from tools.golden.functions import OF_TENSORS, image, key
from tools.golden.functions import TRANSFORMS as CASES


@functools.cache
def reference() -> dict[str, np.ndarray]:
    with np.load(Path(__file__).parent / "data" / "vision_transforms.npz") as stored:
        return dict(stored)


PAIRS = [
    (function, backend)
    for function in sorted({case[0] for case in CASES})
    for backend in ("array", "pil", "tensor")
    if not (backend == "tensor" and function not in OF_TENSORS)
    and (function, backend) != ("adjust_saturation", "array")  # Paddle's is random
]


@pytest.mark.parametrize(("function", "backend"), PAIRS)
def test_equals_paddle(function: str, backend: str) -> None:
    compared = 0
    for number, (name, shape, args, options) in enumerate(CASES):
        if name != function or (expected := reference().get(key(number, backend))) is None:
            continue
        pixels = image(shape)
        value = pixels
        if backend == "tensor":
            value = pixels.astype(np.float32) / np.float32(255)
        elif backend == "pil":
            value = Image.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels)
        found = np.asarray(getattr(F, name)(value, *args, **options))
        case = f"{name} of {shape}, {args}, {options}"
        assert found.shape == expected.shape and found.dtype == expected.dtype, case
        if found.dtype == np.uint8:
            assert np.array_equal(found, expected), case
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=case)
        compared += 1
    assert compared >= 2

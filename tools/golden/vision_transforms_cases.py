"""Cases of parity for framework.vision.transforms, shared by the tool that runs Paddle and by the test.

A case is (function, image, positional arguments, keywords). Images are drawn from their names, so none are stored.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

# Odd sizes, one row, one column, one pixel, one channel with and without its axis.
SHAPES = {
    "odd": (17, 23, 3),
    "tall": (31, 14, 3),
    "row": (1, 9, 3),
    "column": (8, 1, 3),
    "pixel": (1, 1, 3),
    "gray": (13, 18, 1),
    "flat": (12, 15),
}
# no pixel's source lies on the border of two pixels: rounding would decide between them
_CORNERS = ([[0, 0], [22, 0], [22, 16], [0, 16]], [[2.3, 1.2], [20.4, 3.1], [20.7, 13.4], [1.1, 14.8]])

CASES: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    *(("resize", name, (size,), {}) for name in SHAPES for size in ((7, 11), (40, 29), (1, 1))),
    *(("resize", name, (size,), {}) for name in ("odd", "tall", "gray", "flat") for size in (5, 13, 14, 30)),
    *(
        ("resize", "odd", ((9, 31),), {"interpolation": kind})
        for kind in ("nearest", "bicubic", "lanczos", "area", "box", "hamming")
    ),
    *(("hflip", name, (), {}) for name in SHAPES),
    *(("vflip", name, (), {}) for name in SHAPES),
    *(
        ("pad", name, (border,), {"padding_mode": mode})
        for name in ("odd", "gray", "flat")
        for border in (2, (1, 3), (0, 1, 2, 3))
        for mode in ("constant", "edge", "reflect", "symmetric")
    ),
    ("pad", "odd", (2,), {"fill": 130}),
    ("pad", "odd", ((3, 1),), {"fill": (10, 200, 30)}),
    ("pad", "flat", ((3, 1),), {"fill": 77}),
    *(
        ("center_crop", name, (size,), {})
        for name in ("odd", "tall", "gray")
        for size in (5, (6, 9), (13, 14))
    ),
    ("center_crop", "pixel", (1,), {}),
    *(("crop", name, (2, 3, 7, 5), {}) for name in ("odd", "tall", "gray")),
    *(
        ("adjust_brightness", name, (factor,), {})
        for name in ("odd", "gray", "flat")
        for factor in (0, 0.37, 1, 2.5)
    ),
    *(
        ("adjust_contrast", name, (factor,), {})
        for name in ("odd", "gray", "flat")
        for factor in (0, 0.37, 1, 2.5)
    ),
    *(("adjust_hue", name, (f,), {}) for name in ("odd", "pixel") for f in (-0.5, -0.21, 0, 0.1, 0.5)),
    *(
        ("to_grayscale", name, (), {"num_output_channels": n})
        for name in ("odd", "row", "pixel")
        for n in (1, 3)
    ),
    *(
        ("rotate", name, (angle,), {"expand": expand, "interpolation": kind})
        for name, kind in (("odd", "nearest"), ("tall", "bilinear"), ("gray", "bicubic"), ("flat", "nearest"))
        for angle in (-33.3, 0, 90, 180, 271)
        for expand in (False, True)
    ),
    ("rotate", "odd", (20,), {"center": (3, 5), "fill": (9, 99, 199)}),
    ("rotate", "odd", (20,), {"fill": 55}),
    ("rotate", "pixel", (45,), {"expand": True}),
    *(
        ("affine", name, (angle, (2, -3), scale, shear), {"interpolation": kind})
        for name in ("odd", "gray")
        for angle, scale, shear, kind in (
            (0, 1.0, 0.0, "nearest"),
            (25, 0.7, (10, -5), "nearest"),
            (-140, 1.6, [12.5, 0], "bilinear"),
        )
    ),
    ("affine", "odd", (15, [1, 1], 1.0, 3), {"fill": (9, 99, 199), "center": (3, 4)}),
    ("affine", "odd", (15, [1, 1], 1.0, (3,)), {"fill": 120}),
    *(
        ("perspective", name, _CORNERS, {"interpolation": kind, "fill": fill})
        for name, fill in (("odd", 0), ("odd", (1, 120, 33)), ("gray", 0))
        for kind in ("nearest", "bilinear", "bicubic")
    ),
    ("erase", "odd", (2, 3, 6, 5, 17), {}),
    ("erase", "odd", (2, 3, 60, 50, np.array([[[1, 2, 3]]])), {}),
    *(("to_tensor", name, (), {"data_format": kind}) for name in SHAPES for kind in ("HWC", "CHW")),
    ("normalize", "odd", ([120.0, 110.5, 99.9], [50.0, 60.0, 70.7]), {"data_format": "HWC"}),
    ("normalize", "odd", ([120.0, 110.5, 99.9], [50.0, 60.0, 70.7]), {"data_format": "HWC", "to_rgb": True}),
    ("normalize", "first", ([120.0, 110.5, 99.9], [50.0, 60.0, 70.7]), {"data_format": "CHW"}),
    ("normalize", "flat", ([127.5], [127.5]), {"data_format": "CHW"}),
    ("normalize", "gray", ([127.5], [127.5]), {"data_format": "HWC"}),
]
SHAPES["first"] = (3, 11, 7)


# Functions that treat floats from 0 to 1 in their own way: Paddle's third backend, of its Tensors.
OF_TENSORS = ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue")


def key(number: int, backend: str) -> str:
    """The name of a case's result in the file."""
    return f"{number}/{backend}"


def image(name: str) -> np.ndarray:
    """The uint8 image of that name."""
    return np.random.default_rng(zlib.crc32(name.encode())).integers(0, 256, SHAPES[name]).astype(np.uint8)

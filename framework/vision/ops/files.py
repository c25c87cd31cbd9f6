"""read_file and decode_jpeg of paddle.vision.ops: bytes of a file as an array, and the image in them."""

from __future__ import annotations

import os

import numpy as np

from framework.core.errors import InputError
from framework.vision import image
from framework.vision.transforms.functional import check_choice


def read_file(filename: str | os.PathLike[str], name: str | None = None) -> np.ndarray:
    """The bytes of a file, uint8 [size]. Raises: InputError, where there is none or it is empty."""
    return np.frombuffer(image.read_bytes(filename, "image")[0], np.uint8)


def decode_jpeg(x: np.ndarray, mode: str = "unchanged", name: str | None = None) -> np.ndarray:
    """The image [H, W, C] uint8 in the bytes [size] of a JPEG; Paddle gives [C, H, W].

    Args:
        mode: "unchanged" keeps the file's channels (1 or 3, 4 of a CMYK), "gray" and "rgb" turn it into 1 and 3.
        name: Not used; it is there for calls that give it.

    Raises:
        InputError: the bytes are no JPEG, or damaged.
    """
    check_choice(mode, ("unchanged", "gray", "rgb"), "decode_jpeg.mode")
    data = np.asarray(x, np.uint8).tobytes()
    found = image.open_header(data, "decode_jpeg")
    if found.format != "JPEG":
        raise InputError(
            "these are not the bytes of a JPEG",
            where="decode_jpeg",
            received=found.format,
            allowed="JPEG",
            fix="framework.vision.image.read reads all formats",
        )
    try:
        found.load()
        pixels = np.array(found if mode == "unchanged" else found.convert("L" if mode == "gray" else "RGB"))
    except Exception as error:  # damaged data makes the decoder raise anything
        raise image.damage_error(data, "decode_jpeg", error) from error
    return pixels[..., None] if pixels.ndim == 2 else pixels

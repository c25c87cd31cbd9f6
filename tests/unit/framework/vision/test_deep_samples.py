"""framework.vision.deep_samples: images of more than 8 bits, through `image.read`."""

from __future__ import annotations

import logging
from pathlib import Path

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image

from framework.core.errors import InputError
from framework.vision import deep_samples, image

RAMP = np.arange(0, 4096, 32, dtype=np.uint16).reshape(8, 16)


@pytest.fixture(autouse=True)
def nothing_said() -> None:
    deep_samples._note_once_for.cache_clear()


def save(path: Path, values: np.ndarray) -> Path:
    if path.suffix == ".tif":
        tifffile.imwrite(path, values)
    else:
        assert cv2.imwrite(str(path), values if values.ndim == 2 else values[..., ::-1])
    return path


@pytest.mark.parametrize("name", ["a.png", "a.tif", "rgb.png", "rgb.tif"])
def test_a_value_range_shows_a_camera_of_12_bits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    values = np.stack([RAMP, RAMP[::-1], RAMP * 0], axis=-1) if name.startswith("rgb") else RAMP
    file = save(tmp_path / name, values)
    with caplog.at_level(logging.WARNING, logger="oar"):
        dark = image.read(file)
        image.read(file)
    assert dark.max() == 15 and len(caplog.records) == 1 and "--value_range 0 4095" in caplog.text
    shown = image.read(file, value_range=(0, 4095))
    expected = np.rint(values * (255 / 4095)).astype(np.uint8)
    assert np.array_equal(shown, expected if values.ndim == 3 else np.repeat(expected[..., None], 3, axis=2))


def test_a_full_range_is_shifted_and_nothing_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = np.linspace(0, 65535, 128).astype(np.uint16).reshape(8, 16)
    assert np.array_equal(image.read(save(tmp_path / "a.png", full))[..., 0], full >> 8)
    assert not caplog.records


def test_black_and_white_cut_off(tmp_path: Path) -> None:
    shown = image.read(save(tmp_path / "a.png", RAMP), value_range=(1024, 2048))[..., 1]
    assert shown.min() == 0 and shown.max() == 255 and shown[RAMP == 1536].tolist() == [128]
    with pytest.raises(InputError, match="black must lie below white"):
        image.read(tmp_path / "a.png", value_range=(5, 5))


def test_samples_of_32_bits_need_a_range(tmp_path: Path) -> None:
    floats = save(tmp_path / "a.tif", np.linspace(0, 1, 128, dtype=np.float32).reshape(8, 16))
    with pytest.raises(InputError, match="--value_range"):
        image.read(floats)
    assert image.read(floats, value_range=(0, 1)).max() == 255
    assert image.read(np.full((2, 2), 0.5, np.float32), value_range=(0, 1)).tolist()[0][0] == [128] * 3
    assert image.read(RAMP, value_range=(0, 4095)).max() == 253


def test_a_16_bit_image_is_turned_and_pgm_is_read(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    Image.fromarray(RAMP).save(tmp_path / "a.png", exif=exif)
    assert image.read(tmp_path / "a.png", value_range=(0, 4095))[0, 0, 0] == 253
    assert image.read(tmp_path / "a.png", value_range=(0, 4095), orient=False)[0, 0, 0] == 0
    (tmp_path / "a.pgm").write_bytes(b"P5\n16 8\n4095\n" + RAMP.astype(">u2").tobytes())
    assert image.read(tmp_path / "a.pgm").max() >= 252

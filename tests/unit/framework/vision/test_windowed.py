"""framework.vision.windowed: windows of TIFF images are those of the whole image; few tiles are decoded for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from detection.results import Box, DetectionResult
from detection.slicing import Slicing, detect_on_tiles
from framework.core.errors import InputError
from framework.vision import image
from framework.vision.windowed import WindowedImage, open_windows
from framework.workflow.domain.predictor import ImageItem

WINDOWS = ((0, 40, 0, 30), (100, 230, 90, 250), (255, 256, 299, 300), (7, 7, 0, 9))


def scene(size_hw: tuple[int, int] = (256, 300), bands: int = 3, dtype: str = "uint8") -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 255 if dtype == "uint8" else 4096, (*size_hw, bands))
    return values.astype(dtype)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rowsperstrip": 16, "compression": "deflate"},
        {"tile": (64, 48)},
        {"tile": (64, 48), "compression": "lzw", "bigtiff": True},
        {"tile": (64, 48), "compression": "deflate", "planarconfig": "separate", "byteorder": ">"},
    ],
)
def test_a_window_is_that_of_the_array(tmp_path: Path, settings: dict[str, Any]) -> None:
    values = scene()
    stored = values.transpose(2, 0, 1) if settings.get("planarconfig") == "separate" else values
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="rgb", **settings)
    opened = WindowedImage(tmp_path / "a.tif")
    assert opened.shape == (256, 300, 3)
    for y0, y1, x0, x1 in WINDOWS:
        assert np.array_equal(opened[y0:y1, x0:x1], values[y0:y1, x0:x1])
    small = opened.overview(100)
    assert small.shape == (86, 100, 3) and abs(float(small.mean()) - values.mean()) < 2


def test_few_tiles_are_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile.imwrite(
        tmp_path / "a.tif", scene((512, 512)), photometric="rgb", tile=(64, 64), compression="deflate"
    )
    opened = WindowedImage(tmp_path / "a.tif")
    decoded = opened._page.decode
    indices = []

    def decode(data: bytes, index: int, **more: Any) -> Any:
        indices.append(index)
        return decoded(data, index, **more)

    monkeypatch.setattr(opened._page, "decode", decode, raising=False)
    for _ in range(2):
        opened[70:120, 130:180]
    assert indices == [8 + 2]


def test_grey_of_16_bits_and_white_as_0(tmp_path: Path) -> None:
    values = scene(bands=1, dtype="uint16")
    tifffile.imwrite(tmp_path / "a.tif", values[..., 0], tile=(64, 64))
    shown = WindowedImage(tmp_path / "a.tif", (0, 4095))[0:9, 0:9]
    assert np.array_equal(shown, image.read(tmp_path / "a.tif", value_range=(0, 4095))[0:9, 0:9])
    assert np.array_equal(
        WindowedImage(tmp_path / "a.tif")[
            0:9,
            0:9,
        ][..., 0],
        values[:9, :9, 0] >> 8,
    )
    grey = scene(bands=1)[..., 0]
    tifffile.imwrite(tmp_path / "b.tif", grey, photometric="miniswhite", tile=(64, 64), compression="deflate")
    assert np.array_equal(WindowedImage(tmp_path / "b.tif")[0:9, 0:9][..., 1], 255 - grey[:9, :9])


def test_what_is_not_read_by_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile.imwrite(tmp_path / "a.tif", scene(dtype="float32"), photometric="rgb")
    with pytest.raises(InputError, match=r"not read by windows(?s:.)*value range"):
        WindowedImage(tmp_path / "a.tif")
    tifffile.imwrite(tmp_path / "b.tif", scene(), photometric="rgb", compression="deflate", rowsperstrip=256)
    monkeypatch.setattr("framework.vision.windowed._LARGEST_SEGMENT", 1000)
    with pytest.raises(InputError, match=r"strips that are too large(?s:.)*TILED=YES"):
        WindowedImage(tmp_path / "b.tif")
    monkeypatch.undo()
    data = (tmp_path / "b.tif").read_bytes()
    tifffile.imwrite(tmp_path / "c.tif", scene(), photometric="rgb", tile=(64, 64), compression="deflate")
    with tifffile.TiffFile(tmp_path / "c.tif") as file:
        offset = file.pages[0].dataoffsets[0]  # pyright: ignore[reportAttributeAccessIssue]
    data = bytearray((tmp_path / "c.tif").read_bytes())
    data[offset : offset + 40] = bytes(40)
    (tmp_path / "c.tif").write_bytes(data)
    with pytest.raises(InputError, match="a tile of the image cannot be read"):
        WindowedImage(tmp_path / "c.tif")[0:9, 0:9]
    (tmp_path / "d.tif").write_bytes(b"II*\0damaged")
    with pytest.raises(InputError, match="could not be read"):
        WindowedImage(tmp_path / "d.tif")
    image.write(tmp_path / "e.png", scene())
    assert open_windows(tmp_path / "e.png", at_least=1) is None and open_windows(b"", at_least=1) is None
    assert open_windows(tmp_path / "d.tif", at_least=1) is None and open_windows(tmp_path / "a.tif") is None


def bright(items: Any) -> Any:
    """A detector of one box around what is bright."""
    for item in items:
        height, width = item.image.shape[:2]
        rows, columns = np.nonzero(item.image[..., 0] > 120)
        boxes = ()
        if len(rows):
            box = (float(columns.min()), float(rows.min()), float(columns.max()) + 1, float(rows.max()) + 1)
            boxes = (Box("spot", 0, 0.9, box),)
        yield DetectionResult(boxes, source=item.source, width=width, height=height, image=item.image)


def test_objects_of_an_image_that_is_read_by_windows(tmp_path: Path) -> None:
    pixels = np.zeros((600, 900, 3), np.uint8)
    pixels[410:450, 700:760] = 255
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="rgb", tile=(128, 128), compression="deflate")
    windows = WindowedImage(tmp_path / "a.tif")
    item = ImageItem(windows.overview(300), "a.tif", windows=windows)
    for whole in (False, True):
        (result,) = detect_on_tiles(bright, [item], Slicing((256, 256), whole=whole))
        assert (result.width, result.height) == (900, 600)
        x0, y0, x1, y1 = result.boxes[0].bbox
        assert abs(x0 - 700) < 4 and abs(y0 - 410) < 4 and abs(x1 - 760) < 4 and abs(y1 - 450) < 4
        assert result.overlay().shape == (200, 300, 3)


def test_tiles_of_2500_widths(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    tifffile.imwrite(path, scene((64, 64)), photometric="rgb", tile=(16, 16), compression="deflate")
    with tifffile.TiffFile(path) as file:
        offset = file.pages[0].tags["TileWidth"].offset  # pyright: ignore
    data = bytearray(path.read_bytes())
    data[offset + 2 : offset + 12] = (
        (4).to_bytes(2, "little") + (2500).to_bytes(4, "little") + (8).to_bytes(4, "little")
    )
    path.write_bytes(data)
    with pytest.raises(InputError, match="the sizes in the header of the image cannot be"):
        WindowedImage(path)

"""Detection data through the loader: mosaics, crops and one random size a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from detection.data.coco import CocoDetection
from framework.io import DataLoader
from framework.vision import image
from framework.vision import sample_transforms as T
from framework.vision.sample import Sample

SIZES = (32, 48, 64)


def dataset(folder: Path) -> CocoDetection:
    rng = np.random.default_rng(0)
    images, annotations = [], []
    for number in range(10):
        image.write(folder / f"{number}.png", rng.integers(0, 256, (40, 60, 3), dtype=np.uint8))
        images.append({"id": number, "file_name": f"{number}.png"})
        for _ in range(number % 4):
            box = [*rng.integers(0, 20, 2).tolist(), *rng.integers(5, 20, 2).tolist()]
            annotations.append({"id": len(annotations), "image_id": number, "category_id": 1, "bbox": box})
    data = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "x"}]}
    (folder / "file.json").write_text(json.dumps(data), encoding="utf-8")
    return CocoDetection(folder, Path("file.json"))


def pack(sample: Sample) -> dict[str, np.ndarray]:
    assert sample.boxes is not None
    boxes = np.zeros((30, 4), np.float32)
    boxes[: len(sample.boxes)] = sample.boxes
    return {"image": sample.image, "boxes": boxes}


def batches(folder: Path, **settings: Any) -> list[tuple[tuple[Any, ...], np.ndarray, np.ndarray]]:
    transforms = (
        T.RandomDistort(),
        T.Mosaic((96, 96), p=0.7),
        T.MixUp(p=0.3),
        T.RandomIoUCrop(),
        T.RandomHorizontalFlip(),
        T.BatchRandomResize(SIZES, random_interpolation=True),
    )
    loader = DataLoader(
        dataset(folder),
        batch_size=3,
        shuffle=True,
        transforms=transforms,
        pack=pack,
        drop_last=True,
        **settings,
    )
    return [
        (one.ids, one.data["image"], one.data["boxes"]) for epoch in range(4) for one in loader.batches(epoch)
    ]


def test_a_batch_has_one_size_out_of_a_few_whatever_the_workers(tmp_path: Path) -> None:
    found = batches(tmp_path, num_workers=0)
    sides = [images.shape[1:3] for _, images, _ in found]
    assert len(found) == 12 and set(sides) == {(side, side) for side in SIZES}
    for (_, height, width, _), boxes in ((images.shape, boxes) for _, images, boxes in found):
        assert boxes.any() and (boxes >= 0).all() and (boxes <= [width, height, width, height]).all()
    again = batches(tmp_path, num_workers=3)
    assert [one[0] for one in again] == [one[0] for one in found]
    for (_, images, boxes), (_, same_images, same_boxes) in zip(found, again, strict=True):
        np.testing.assert_array_equal(images, same_images)
        np.testing.assert_array_equal(boxes, same_boxes)

"""What Python computes of drawn inputs, for the tests of the web page's code: python -m tools.web.vectors FOLDER."""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from framework.vision.contours import (
    cut_quads,
    find_contours,
    means_inside,
    min_area_rects,
    order_corners,
    quad_sizes,
)
from framework.vision.image import Interpolation, resize
from ocr.pipeline.small_letters import are_low, are_narrow, badly_read, closer_scale, merge_looks
from ocr.results.lines import Line
from ocr.text.batches import fit_batches
from ocr.text.characters import CharacterSet
from ocr.text.letters_apart import add_missed, as_letters
from ocr.text.postprocess import DBPostprocess, ctc_decode
from ocr.text.preprocess import DetSize, turned_lines
from ocr.text.reading_order import upright_boxes
from ocr.text.stacked_letters import add_missed_below, find_stacks, join_stack, letters_in_a_row
from ocr.text.tiles import detect_in_grid, detect_in_tiles

Vectors = list[dict[str, Any]]
_SIZES = (
    ((37, 53), (20, 31)),
    ((40, 60), (20, 30)),
    ((31, 29), (64, 90)),
    ((90, 120), (30, 40)),
    ((64, 48), (64, 21)),
)
_LINEAR: tuple[Interpolation, ...] = ("linear", "area", "nearest", "cubic")


def pack(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON: its shape, its dtype and its bytes in base64."""
    array = np.ascontiguousarray(array)
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "data": base64.b64encode(array.tobytes()).decode(),
    }


def draw_pixels(rng: np.random.Generator, height: int, width: int) -> np.ndarray:
    """Blocks of colours with noise, [height, width, 3] uint8."""
    blocks = rng.integers(0, 256, (height // 6 + 1, width // 6 + 1, 3))
    image = blocks.repeat(6, 0).repeat(6, 1)[:height, :width] + rng.integers(-25, 26, (height, width, 3))
    return image.clip(0, 255).astype(np.uint8)


def draw_probability(rng: np.random.Generator, height: int, width: int, lines: int = 14) -> np.ndarray:
    """Turned bars with soft edges, some with holes, [height, width] float32 in 0..1."""
    y, x = np.mgrid[:height, :width].astype(np.float64)
    out = np.zeros((height, width))
    for _ in range(lines):
        angle = rng.normal(0, 0.15)
        u = (x - rng.uniform(0, width)) * np.cos(angle) + (y - rng.uniform(0, height)) * np.sin(angle)
        v = (y - rng.uniform(0, height)) * np.cos(angle) - (x - rng.uniform(0, width)) * np.sin(angle)
        length, thick = rng.uniform(4, width / 3), rng.uniform(1, 7)
        bar = np.clip(1.5 - np.maximum(np.abs(u) / length, np.abs(v) / thick), 0, 1)
        out = np.maximum(out, bar * rng.uniform(0.5, 1))
    out = np.where(rng.random(out.shape) < 0.01, out * 0.2, out)
    return np.clip(out + rng.normal(0, 0.01, out.shape), 0, 1).astype(np.float32)


def draw_quads(rng: np.random.Generator, count: int, height: int, width: int) -> np.ndarray:
    """Ordered quads [count, 4, 2] float32 on whole pixels, some upright, some at the edges of the image."""
    quads = []
    for index in range(count):
        centre = rng.uniform((0, 0), (width, height))
        half = rng.uniform((6, 3), (40, 12)) if index % 4 else rng.uniform((3, 8), (8, 30))
        angle = 0.0 if index % 3 == 0 else rng.normal(0, 0.3)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * half @ turn + centre
        quads.append(corners.round().clip(0, (width - 1, height - 1)))
    return order_corners(np.array(quads, np.float32))


def resize_vectors(rng: np.random.Generator) -> Vectors:
    """`image.resize` of 8 bits."""
    out = []
    for source_hw, size_hw in _SIZES:
        image = draw_pixels(rng, *source_hw)
        out += [
            {
                "image": pack(image),
                "size": size_hw,
                "interpolation": kind,
                "expected": pack(resize(image, size_hw, kind)),
            }
            for kind in _LINEAR
        ]
    return out


def float_resize_vectors(rng: np.random.Generator) -> Vectors:
    """`image.resize` of one channel of floats."""
    out = []
    for source_hw, size_hw in _SIZES:
        values = rng.normal(0, 3, source_hw).astype(np.float32)
        out.append({"values": pack(values), "size": size_hw, "expected": pack(resize(values, size_hw))})
    return out


def crop_vectors(rng: np.random.Generator) -> Vectors:
    """`cut_quads`."""
    image = draw_pixels(rng, 120, 160)
    quads = draw_quads(rng, 24, 120, 160)
    keep = (quad_sizes(quads) > 2).all(axis=1)
    crops = cut_quads(image, quads[keep])
    return [
        {"image": pack(image), "quad": quad.tolist(), "expected": pack(crop)}
        for quad, crop in zip(quads[keep], crops)
    ]


def contour_vectors(rng: np.random.Generator) -> Vectors:
    """`find_contours`, `min_area_rects` and `means_inside`."""
    out = []
    for dilate in (False, True):
        probability = draw_probability(rng, 96, 128)
        contours = find_contours(probability > 0.3, dilate=dilate)
        quads, sides = min_area_rects(contours)
        out.append(
            {
                "map": pack(probability),
                "dilate": dilate,
                "contours": [points.tolist() for points in contours],
                "quads": quads.tolist(),
                "sides": sides.tolist(),
                "means": means_inside(probability, quads).tolist(),
                "outline_means": means_inside(probability, contours).tolist(),
            }
        )
    return out


def region_vectors(rng: np.random.Generator) -> Vectors:
    """`DBPostprocess`."""
    out = []
    for options in (
        DBPostprocess(),
        DBPostprocess(0.3, 0.5, unclip_ratio=1.6, use_dilation=True, score_mode="slow"),
    ):
        for _ in range(3):
            probability = draw_probability(rng, 160, 224)
            size_hw = (int(rng.integers(150, 900)), int(rng.integers(150, 900)))
            quads, scores = options(probability, size_hw)
            fields = {name: getattr(options, name) for name in options.__dataclass_fields__}
            out.append(
                {
                    "map": pack(probability),
                    "options": fields,
                    "size": size_hw,
                    "quads": np.asarray(quads).tolist(),
                    "scores": scores.tolist(),
                    "regions": options.count_regions(probability),
                    "turned": turned_lines(np.asarray(quads)).tolist(),
                }
            )
    return out


def size_vectors(rng: np.random.Generator) -> Vectors:
    """`DetSize`."""
    options = (DetSize(), DetSize(1280), DetSize(736, "min", 1500), DetSize(64, "min"))
    sizes = [(int(h), int(w)) for h, w in rng.integers(5, 3000, (40, 2))]
    return [
        {
            "options": {name: getattr(one, name) for name in one.__dataclass_fields__},
            "size": hw,
            "expected": one(hw),
        }
        for one in options
        for hw in sizes
    ]


def batch_vectors(rng: np.random.Generator) -> Vectors:
    """`fit_batches`."""
    out = []
    for count in (0, 1, 7, 40):
        lengths = rng.uniform(10, 3500, count).tolist()
        batches = fit_batches(lengths, (160, 3200), 1280, 8)
        out.append(
            {
                "lengths": lengths,
                "widths": [160, 3200],
                "columns": 1280,
                "most": 8,
                "expected": [[batch.width, list(batch.lines)] for batch in batches],
            }
        )
    return out


def text_vectors(rng: np.random.Generator) -> Vectors:
    """`ctc_decode`."""
    characters = CharacterSet(tuple("abcdefghij é中"))
    classes = characters.num_classes
    indices = rng.integers(0, classes, (6, 25)) * (rng.random((6, 25)) < 0.7)
    indices[:, 10:14] = indices[:, 10:11]
    probabilities = rng.random((6, 25)).astype(np.float32)
    texts = ctc_decode(indices, probabilities, characters)
    return [
        {
            "indices": indices[row].tolist(),
            "probabilities": pack(probabilities[row]),
            "symbols": list(characters.symbols),
            "text": text.text,
            "score": text.score,
            "steps": [[char.char, char.start_step, char.end_step] for char in text.chars],
        }
        for row, text in enumerate(texts)
    ]


def letter_vectors(rng: np.random.Generator) -> Vectors:
    """`add_missed`, for rows of bars in boxes and without: some letters have no quad, the quad of thin ones is thin."""
    out = []
    for pitch, boxed in ((50, False), (50, True), (64, False), (40, True)):
        image = np.full((90, 9 * pitch, 3), 255, np.uint8)
        quads = []
        for x in range(pitch, 7 * pitch, pitch):
            wide = int(rng.choice((4, 14, 20)))
            image[30:54, x - wide // 2 : x + wide // 2] = rng.integers(0, 90)
            if boxed:
                image[18:64, [x - pitch // 2, x + pitch // 2]] = 0
                image[[18, 63], x - pitch // 2 : x + pitch // 2] = 0
            if rng.random() < 0.6:
                left, right = x - wide / 2 - 4, x + wide / 2 + 4
                quads.append([[left, 25], [right, 25], [right, 58.5], [left, 58.5]])
        expected = add_missed(image, np.array(quads, np.float32).reshape(-1, 4, 2))
        out.append({"image": pack(image), "quads": quads, "expected": expected.tolist()})
    return out


def look_vectors(rng: np.random.Generator) -> Vectors:
    """What calls for a closer look and what comes of it: lines of letters of several widths, heights and scripts."""
    out = []
    for scale in (0.2, 0.35, 0.36, 0.7, 0.8):
        for pitch in (5.0, 9.0, 14.0):
            texts = rng.choice(
                ("total 12,50", "小計です。", "ｶﾀｶﾅ half", "Ａ１ 한국어", "", "Ünï—code"), 9
            ).tolist()
            quads = draw_quads(rng, len(texts), 700, 900)
            for quad, text in zip(quads, texts):
                right, bottom = quad[0] + (pitch * max(len(text), 1), rng.uniform(10, 90))
                quad[1:] = (right, quad[0, 1]), (right, bottom), (quad[0, 0], bottom)
            scores = rng.uniform(0.6, 1, len(texts)).round(3).tolist()
            lines = [
                Line(text, score, tuple(map(tuple, quad.tolist())), ())
                for text, score, quad in zip(texts, scores, quads)
            ]
            second = quads[::2] + np.float32(rng.integers(-40, 40))
            out.append(
                {
                    "scale": scale,
                    "texts": texts,
                    "scores": scores,
                    "quads": quads.tolist(),
                    "second": second.tolist(),
                    "bad": badly_read(lines, len(lines), 2),
                    "low": are_low(quads, scale),
                    "narrow": are_narrow(lines, scale),
                    "closer": closer_scale(quads, scale),
                    "merged": merge_looks(quads, second, scale).tolist(),
                }
            )
    return out


def tile_vectors(rng: np.random.Generator) -> Vectors:
    """`detect_in_grid` and `detect_in_tiles`, of a detector that knows the lines and sees of them what is in its tile.

    Pixels say where they are: x and y of 8 bits each, and 4 bits more of both in the third channel.
    """
    out = []
    for height, width, side in (
        (500, 700, 260),
        (300, 1900, 200),
        (1400, 180, 300),
        (200, 250, 400),
        (24, 900, 400),
    ):
        y, x = np.mgrid[:height, :width]
        image = np.stack([x % 256, y % 256, x // 256 * 16 + y // 256], 2).astype(np.uint8)
        corners = rng.integers(0, (width - 20, height - 20), (40, 2))
        sizes = rng.integers((10, 8), (400, 30), (40, 2))
        boxes = np.concatenate([corners, np.minimum(corners + sizes, (width, height))], 1)

        def detect(tile: np.ndarray, boxes: np.ndarray = boxes) -> tuple[np.ndarray, np.ndarray]:
            across, down, high = tile[0, 0].astype(int)
            origin = np.array([across + high // 16 * 256, down + high % 16 * 256])
            low = (boxes[:, :2] - origin).clip(0)
            far = np.minimum(boxes[:, 2:] - origin, tile.shape[1::-1])
            visible = ((far - low) > 2).all(axis=1)
            (x0, y0), (x1, y1) = low[visible].T, far[visible].T
            quads = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], 1).reshape(-1, 4, 2)
            return quads.astype(np.float32), np.ones(len(quads), np.float32)

        out.append(
            {
                "size": [height, width],
                "side": side,
                "boxes": boxes.tolist(),
                "grid": detect_in_grid(detect, image, side)[0].tolist(),
                "tiles": detect_in_tiles(detect, image, 4.0)[0].tolist(),
            }
        )
    return out


def stack_vectors(rng: np.random.Generator) -> Vectors:
    """`add_missed_below`, `find_stacks`, `letters_in_a_row` and `join_stack`, of bars below one another: some have no
    quad, and beside some stands a letter more."""
    out = []
    for count, pitch, missing in ((4, 40, (3,)), (6, 44, (0, 5)), (5, 36, ()), (4, 42, ()), (7, 40, (2,))):
        image = np.full((pitch * (count + 2), 160, 3), 240, np.uint8)
        quads, texts = [], []
        for number in range(count):
            middle, wide = pitch * (number + 1), int(rng.choice((8, 12, 16)))
            image[middle - 10 : middle + 10, 80 - wide // 2 : 80 + wide // 2] = rng.integers(0, 90)
            if number not in missing:
                tilt = int(rng.integers(-3, 4)) if count == 6 else 0
                top, bottom = (middle - 15, middle + 15)
                quads.append([[66, top - tilt], [94, top + tilt], [94, bottom + tilt], [66, bottom - tilt]])
                texts.append(str(rng.choice(list("OK01lTÄ8一"))))
        if count == 4:  # one of both pages has labels beside its letters
            quads.append([[10, pitch - 15], [50, pitch - 15], [50, pitch + 15], [10, pitch + 15]])
            texts.append("No." if not missing else "7")
        array = np.array(quads, np.float32)
        lines = [
            Line(text, 0.5 + number / 20, tuple((float(x), float(y)) for x, y in quad), ())
            for number, (text, quad) in enumerate(zip(texts, quads))
        ]
        crops = cut_quads(image, array)
        stacks = find_stacks(upright_boxes([line.polygon for line in lines]), texts)
        joined = [join_stack([lines[i] for i in stack], None) for stack in stacks]
        out.append(
            {
                "image": pack(image),
                "quads": quads,
                "texts": texts,
                "scores": [line.score for line in lines],
                "added": add_missed_below(image, array).tolist(),
                "stacks": stacks,
                "rows": [pack(letters_in_a_row([crops[i] for i in stack])) for stack in stacks],
                "joined": [{"text": one.text, "score": one.score, "polygon": one.polygon} for one in joined],
            }
        )
    return out


def alike_vectors(rng: np.random.Generator) -> Vectors:
    """`as_letters`: rows of letters and of digits, apart and close."""
    out = []
    for texts in (["A", "0", "K", "|"], ["1", "0", "7"], ["0AK1", "B"], ["N A M 0", "l"], ["中", "一", "0"]):
        for step in (30, 90):
            left = np.cumsum([0, *(step * len(text) for text in texts)]) + 20.0
            top = float(rng.integers(10, 40))
            lines = []
            for text, x0, x1 in zip(texts, left[:-1], left[1:] - 6):
                lines.append(Line(text, 0.8, ((x0, top), (x1, top), (x1, top + 24), (x0, top + 24)), ()))
            expected = [line.text for line in as_letters(lines)]
            out.append({"texts": texts, "polygons": [line.polygon for line in lines], "expected": expected})
    return out


CASES: dict[str, Callable[[np.random.Generator], Vectors]] = {
    "resize": resize_vectors,
    "float_resize": float_resize_vectors,
    "crops": crop_vectors,
    "contours": contour_vectors,
    "regions": region_vectors,
    "sizes": size_vectors,
    "letters": letter_vectors,
    "stacks": stack_vectors,
    "alike": alike_vectors,
    "looks": look_vectors,
    "tiles": tile_vectors,
    "batches": batch_vectors,
    "texts": text_vectors,
}


def write_vectors(folder: Path, seed: int = 0) -> Path:
    """Writes <case>.json of every case; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in CASES.items():
        vectors = make(np.random.default_rng((seed, len(name))))
        (folder / f"{name}.json").write_text(json.dumps(vectors), encoding="utf-8")
    return folder


def main() -> None:
    """Runs `python -m tools.web.vectors`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"wrote {write_vectors(args.folder, args.seed)}")


if __name__ == "__main__":
    main()

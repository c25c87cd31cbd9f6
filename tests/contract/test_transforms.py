"""What every registered transform keeps to. The registry is the test list: a new transform is a new row here."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import numpy as np
import pytest

from framework.config import Kind, available, bind, dump, find, parse
from framework.text.tokenizer import Tokenizer
from framework.vision import sample_transforms as T
from framework.vision.sample import Sample
from framework.vision.warp import Warp
from ocr.data.transforms.formulas import FormulaImage, FormulaTokens
from ocr.data.transforms.lines import ConcatenateLines, RandomLineDistortion, RandomTurn180
from ocr.data.transforms.pages import CopyPasteText, RandomTextCrop
from ocr.data.transforms.patches import PagePatch, RandomPagePatch
from ocr.data.transforms.resize import ResizeLine
from tests.contract.cases import PACKAGES

HEIGHT, WIDTH = 48, 72
SEEDS = range(6)
# Rows that surely do something, with each switch that changes the way the result is computed.
CASES: dict[str, list[Any]] = {
    "AutoAugment": [T.AutoAugment()],
    "BatchRandomResize": [T.BatchRandomResize((40, 64, (50, 60)), random_interpolation=True)],
    "CenterCrop": [T.CenterCrop((40, 80)), T.CenterCrop((41, 31))],
    "ColorJitter": [T.ColorJitter(0.4, 0.4, 0.4, 0.1)],
    "GaussianBlur": [T.GaussianBlur(3)],
    "LetterBox": [T.LetterBox((60, 60)), T.LetterBox((40, 90), align="top_left")],
    "Pad": [T.Pad((1, 2, 3, 4), fill=None), T.Pad(5, fill=(1, 2, 3))],
    "PadToMultiple": [T.PadToMultiple(32), T.PadToMultiple(50, align="center")],
    "PadToSize": [T.PadToSize((60, 72)), T.PadToSize((90, 80), align="center")],
    "RandAugment": [T.RandAugment(), T.RandAugment(3, 10, 1)],
    "RandomAffine": [T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10)],
    "RandomApply": [T.RandomApply((T.Pad(3), T.RandomHorizontalFlip()), p=0.9)],
    "RandomChoice": [T.RandomChoice((T.Pad(3), T.RandomHorizontalFlip(p=1)))],
    "RandomCrop": [T.RandomCrop((40, 60)), T.RandomCrop((60, 40), padding=4)],
    "RandomDistort": [T.RandomDistort()],
    "RandomErasing": [T.RandomErasing(p=1, scale=(0.02, 0.05)), T.RandomErasing(p=1, fill="noise")],
    "RandomExpand": [T.RandomExpand(2, p=1)],
    "RandomFrame": [T.RandomFrame((64, 80), translate=0.1, degrees=10)],
    "RandomGrayscale": [T.RandomGrayscale(p=1)],
    "RandomHorizontalFlip": [T.RandomHorizontalFlip(p=1, keypoint_flip_pairs=((0, 1),))],
    "RandomIoUCrop": [T.RandomIoUCrop(), T.RandomIoUCrop((0.3,), allow_no_crop=False)],
    "RandomResizedCrop": [T.RandomResizedCrop((96, 96), (0.5, 1)), T.RandomResizedCrop((50, 40), (0.8, 1))],
    "RandomRotation": [T.RandomRotation(30), T.RandomRotation(30, expand=True)],
    "RandomTextCrop": [RandomTextCrop((60, 50)), RandomTextCrop((40, 60), 50, keep_ratio=False)],
    "RandomScale": [T.RandomScale((0.8, 2)), T.RandomScale((1, 2), step=0.25)],
    "RandomVerticalFlip": [T.RandomVerticalFlip(p=1)],
    "Resize": [
        T.Resize((60, 60)),
        *(T.Resize((60, 60), mode=mode) for mode in ("short", "long", "fit")),
        T.Resize((40, 60), interpolation="area"),
    ],
    "ResizeLine": [ResizeLine(48, 320), ResizeLine(32, 40), ResizeLine(24, 90, 1.25, pad=True)],
    "ResizeShort": [T.ResizeShort(60, 100), T.ResizeShort(40, 50)],
}
# Called with further samples; what they do to the objects of several images is in the unit tests.
MIXING: dict[str, list[Any]] = {
    "MixUp": [T.MixUp(), T.MixUp(p=0.5)],
    "Mosaic": [T.Mosaic((64, 80)), T.Mosaic((2, 2)), T.Mosaic((65, 33), p=0.5, min_visible=0.3)],
}
# Of a sample with one object, which they cut out.
OF_ONE: dict[str, list[Any]] = {
    "CropToObject": [T.CropToObject((32, 24)), T.CropToObject((32, 24), padding=1.0)],
    "RandomCropToObject": [
        T.RandomCropToObject((32, 24)),
        T.RandomCropToObject((32, 24), keypoint_flip_pairs=((0, 1),), p_half_body=1.0, upper_body=(0,)),
    ],
}
# Probabilities and ranges of RandomPagePatch with which everything happens.
_ALWAYS = (1.0, (0.5, 0.9), 1.0, (0.3, 1.1), 1.0, (1.0, 14.0), 1.0, (30, 90), 1.0, 1.0)
# Of lines of text, or of pages that have polygons and texts alone.
OF_TEXT: dict[str, list[Any]] = {
    "ConcatenateLines": [ConcatenateLines(p=1), ConcatenateLines(p=1, right_to_left=True)],
    "CopyPasteText": [CopyPasteText(), CopyPasteText(ratio=1, degrees=10, scale=(0.3, 0.6))],
    "FormulaImage": [FormulaImage((48, 64)), FormulaImage((32, 20))],
    "FormulaTokens": [FormulaTokens(Tokenizer.train("characters", ["a b c"], 20).to_json())],
    "RandomLineDistortion": [
        RandomLineDistortion(),
        RandomLineDistortion(*(1.0,) * 6),
    ],
    "PagePatch": [PagePatch((24, 20), 32)],
    "RandomPagePatch": [RandomPagePatch((24, 20)), RandomPagePatch((16, 16), (2.0, 3.0), 1, *_ALWAYS)],
    "RandomTurn180": [RandomTurn180()],
}
UNCHANGING = (ConcatenateLines, FormulaImage, FormulaTokens, PagePatch)  # of those: one image each time
# Of labelled pages: tests/unit/ocr/data/test_form_transforms.py.
OF_FORMS = ("PerturbTexts", "TokenizeForm")
# Not random, or random only in whether they do anything.
FIXED = (
    T.CenterCrop,
    T.LetterBox,
    T.Pad,
    T.PadToMultiple,
    T.PadToSize,
    T.RandomGrayscale,
    T.RandomHorizontalFlip,
    T.RandomVerticalFlip,
    T.Resize,
    T.ResizeShort,
    ResizeLine,
)


def parametrized(cases: dict[str, list[Any]]) -> pytest.MarkDecorator:
    rows = [
        pytest.param(row, id=f"{name}-{number}")
        for name, rows in cases.items()
        for number, row in enumerate(rows)
    ]
    return pytest.mark.parametrize("transform", rows)


every, mixing, of_one = parametrized(CASES), parametrized(MIXING), parametrized(OF_ONE)
of_text = parametrized(OF_TEXT)


def test_every_registered_transform_has_a_row() -> None:
    rows_of = CASES | MIXING | OF_ONE | OF_TEXT
    known = available("transform", PACKAGES)  # those of texts are in test_texts.py
    known = {name: module for name, module in known.items() if not module.startswith("framework.text")}
    assert set(rows_of) | set(OF_FORMS) == set(known)
    for name, rows in rows_of.items():
        assert {type(row) for row in rows} == {find("transform", name, PACKAGES).config}


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng((7, seed))


def full_sample() -> Sample:
    """Three objects, with every field set."""
    boxes = np.array([[4, 4, 20, 20], [30, 10, 50, 40], [60, 30, 71, 47]], np.float32)
    masks = np.zeros((3, HEIGHT, WIDTH), bool)
    for mask, (x0, y0, x1, y1) in zip(masks, boxes.astype(int), strict=True):
        mask[y0:y1, x0:x1] = True
    keypoints = np.concatenate([boxes.reshape(3, 2, 2), np.full((3, 2, 1), 2)], axis=2)
    return Sample(
        np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8),
        mask=masks,
        boxes=boxes,
        polygons=tuple(boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(3, 4, 2)),
        keypoints=keypoints.astype(np.float32),
        labels=np.array([5, 6, 7]),
        text=("a", "b", "c"),
        valid=np.array([True, False, True]),
        areas=np.array([50, 60, 70], np.float32),
        source_size=(HEIGHT, WIDTH),
        id="full",
    )


def arrays(sample: Sample) -> dict[str, np.ndarray]:
    found = {}
    for field in fields(sample):
        value = getattr(sample, field.name)
        if isinstance(value, np.ndarray):
            found[field.name] = value
        if field.name == "polygons" and value is not None:
            found |= {f"polygons{index}": polygon for index, polygon in enumerate(value)}
    if sample.warp is not None:
        found["warp"] = sample.warp.matrix
    return found


def warp_of(sample: Sample) -> Warp:
    return sample.warp or Warp.identity((HEIGHT, WIDTH))


@every
def test_invariants_of_a_sample_with_all_fields(transform: Any) -> None:
    before = full_sample()
    for seed in SEEDS:
        out = transform(before, rng(seed))
        assert isinstance(out, Sample) and out.id == "full" and out.source_size == (HEIGHT, WIDTH)
        assert (
            out.image.dtype == np.uint8
            and out.image.shape == (*out.size_hw, 3)
            and out.image.flags.c_contiguous
        )
        assert warp_of(out).source_hw == (HEIGHT, WIDTH) and warp_of(out).size_hw == out.size_hw
        assert out.boxes is not None and out.mask is not None and out.labels is not None
        kept = [{5: 0, 6: 1, 7: 2}[int(label)] for label in out.labels]
        assert out.text == tuple("abc"[index] for index in kept)
        assert out.valid is not None and out.valid.tolist() == [index != 1 for index in kept]
        assert out.areas is not None and out.areas.tolist() == [50 + 10 * index for index in kept]
        assert out.mask.shape == (len(kept), *out.size_hw) and out.mask.dtype == bool
        for name in ("boxes", "keypoints"):
            assert getattr(out, name).dtype == np.float32
        height, width = out.size_hw
        assert (out.boxes >= 0).all() and (out.boxes <= (width, height, width, height)).all()
        assert (out.boxes[:, 2:] > out.boxes[:, :2]).all()
        # Each field of an object that stayed is where the warp says; several warps cut and bound boxes several times.
        if hasattr(transform, "plan"):
            want = warp_of(out).boxes(before.boxes[kept])  # pyright: ignore[reportOptionalSubscript]
            np.testing.assert_allclose(out.boxes, np.clip(want, 0, [width, height, width, height]), atol=1e-3)
        assert out.polygons is not None and before.polygons is not None
        for polygon, index in zip(out.polygons, kept, strict=True):
            np.testing.assert_allclose(polygon, warp_of(out).points(before.polygons[index]), atol=1e-3)


@every
def test_equal_generators_give_equal_results(transform: Any) -> None:
    for seed in SEEDS:
        one, other = (arrays(transform(full_sample(), rng(seed))) for _ in range(2))
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[name], other[name]) for name in one)


@every
def test_random_ones_are_random_and_the_others_are_not(transform: Any) -> None:
    results = {transform(full_sample(), rng(seed)).image.tobytes() for seed in range(12)}
    assert (len(results) == 1) == isinstance(transform, FIXED)


@every
def test_nothing_is_changed_in_place(transform: Any) -> None:
    sample = full_sample()
    for array in arrays(sample).values():
        array.flags.writeable = False  # an attempt raises
    for seed in SEEDS:
        transform(sample, rng(seed))
    fresh = arrays(full_sample())
    assert all(np.array_equal(value, fresh[name]) for name, value in arrays(sample).items())


@every
def test_one_pixel_and_no_objects(transform: Any) -> None:
    for size in ((1, 1), (1, 40), (40, 1)):
        out = transform(Sample(np.full((*size, 3), 9, np.uint8), labels=np.array(3)), rng(0))
        assert out.labels.tolist() == 3 and out.image.shape == (*out.size_hw, 3)
    empty = Sample(
        np.zeros((HEIGHT, WIDTH, 3), np.uint8),
        mask=np.zeros((0, HEIGHT, WIDTH), bool),
        boxes=np.zeros((0, 4), np.float32),
        polygons=(),
        keypoints=np.zeros((0, 2, 3), np.float32),
        labels=np.zeros(0, int),
        text=(),
        valid=np.zeros(0, bool),
    )
    out = transform(empty, rng(0))
    assert len(out.boxes) == len(out.mask) == len(out.keypoints) == len(out.labels) == len(out.valid) == 0


@every
def test_a_painted_dot_ends_at_the_mapped_point(transform: Any) -> None:
    """In the image, in the mask of classes and as a keypoint."""
    seen = 0
    for seed in SEEDS:
        x, y = 30, 20  # the dot covers [27, 34) x [17, 24)
        image = np.full((HEIGHT, WIDTH, 3), 128, np.uint8)
        mask = np.zeros((HEIGHT, WIDTH), np.uint8)
        image[y - 3 : y + 4, x - 3 : x + 4] = (255, 0, 0)
        mask[y - 3 : y + 4, x - 3 : x + 4] = 1
        centre = np.array([[[x + 0.5, y + 0.5, 2], [0, 0, 0]]], np.float32)
        out = transform(Sample(image, mask=mask, keypoints=centre), rng(seed))
        place = warp_of(out).points(centre[0, 0, :2])
        height, width = out.size_hw
        if not (5 < place[0] < width - 5 and 5 < place[1] < height - 5):
            continue
        seen += 1
        for point in out.keypoints[0, out.keypoints[0, :, 2] > 0]:  # two warps may have lost it on the way
            np.testing.assert_allclose(point[:2], place, atol=1e-3)
        if hasattr(transform, "plan"):  # the others change colours, or cut the dot on the way
            assert (out.keypoints[..., 2] > 0).sum() == 1
            red = (out.image[..., 0] > 200) & (out.image[..., 1] < 60)
            for dot in (out.mask == 1, red):
                rows, columns = np.nonzero(dot)
                np.testing.assert_allclose([columns.mean() + 0.5, rows.mean() + 0.5], place, atol=0.75)
    assert seen >= 1


def test_the_loader_calls_mixing_ones_and_no_others_with_samples() -> None:
    for cases, wanted in ((CASES, False), (MIXING, True)):
        assert all(bool(getattr(row, "extra", 0)) == wanted for rows in cases.values() for row in rows)


@mixing
def test_mixing_invariants(transform: Any) -> None:
    samples = [full_sample() for _ in range(1 + transform.extra)]
    for sample in samples:
        for array in arrays(sample).values():
            array.flags.writeable = False  # an attempt to change it raises
    for seed in SEEDS:
        out = transform(samples[0], rng(seed), samples[1:])
        again = transform(samples[0], rng(seed), samples[1:])
        assert arrays(out).keys() == arrays(again).keys() and out.id == "full"
        assert all(np.array_equal(value, arrays(again)[name]) for name, value in arrays(out).items())
        assert out.image.dtype == np.uint8 and out.image.shape == (*out.size_hw, 3)
        count = len(out.boxes)
        assert out.mask.shape == (count, *out.size_hw) and out.mask.dtype == bool
        assert len(out.polygons) == len(out.labels) == len(out.valid) == len(out.text) == count
        assert out.boxes.dtype == out.keypoints.dtype == np.float32
        assert all(polygon.dtype == np.float32 for polygon in out.polygons)
        height, width = out.size_hw
        assert (out.boxes >= 0).all() and (out.boxes <= (width, height, width, height)).all()
        assert (out.boxes[:, 2:] > out.boxes[:, :2]).all()


@mixing
def test_mixing_one_pixel_and_no_objects(transform: Any) -> None:
    empty = Sample(
        np.full((1, 1, 3), 9, np.uint8), boxes=np.zeros((0, 4), np.float32), labels=np.zeros(0, int)
    )
    out = transform(empty, rng(0), [empty] * transform.extra)
    assert len(out.boxes) == len(out.labels) == 0 and out.image.shape == (*out.size_hw, 3)


@mixing
def test_mixing_ones_come_back_from_their_configuration(transform: Any) -> None:
    tree = parse(dump(transform), "dumped.yml")
    assert bind(tree, Annotated[Any, Kind("transform")], PACKAGES) == transform


@every
def test_it_comes_back_from_its_configuration(transform: Any) -> None:
    tree = parse(dump(transform), "dumped.yml")
    assert bind(tree, Annotated[Any, Kind("transform")], PACKAGES) == transform


def one_object() -> Sample:
    """The second object of `full_sample`, with all fields."""
    whole, which = full_sample(), slice(1, 2)
    assert whole.mask is not None and whole.polygons is not None and whole.text is not None
    fields_of = ("mask", "boxes", "polygons", "keypoints", "labels", "text", "valid", "areas")
    return whole.replace(**{name: getattr(whole, name)[which] for name in fields_of})


@of_one
def test_one_object_is_cut_out(transform: Any) -> None:
    before = one_object()
    for array in arrays(before).values():
        array.flags.writeable = False  # an attempt to change it raises
    for seed in SEEDS:
        out, again = transform(before, rng(seed)), transform(one_object(), rng(seed))
        assert arrays(out).keys() == arrays(again).keys()
        assert all(np.array_equal(value, arrays(again)[name]) for name, value in arrays(out).items())
        assert out.image.shape == (32, 24, 3) and out.image.dtype == np.uint8 and out.id == "full"
        assert warp_of(out).source_hw == (HEIGHT, WIDTH) and warp_of(out).size_hw == (32, 24)
        assert out.keypoints is not None and before.keypoints is not None
        want = warp_of(out).points(before.keypoints[0, :, :2])
        found = out.keypoints[0, :, :2]
        known = out.keypoints[0, :, 2] > 0
        flipped = np.linalg.det(warp_of(out).matrix[:2, :2]) < 0 and getattr(
            transform, "keypoint_flip_pairs", ()
        )
        np.testing.assert_allclose(found[known], (want[::-1] if flipped else want)[known], atol=1e-3)


def text_sample(transform: Any) -> Sample:
    """A page for what takes pages, else a line of text."""
    whole = full_sample()
    if not isinstance(transform, CopyPasteText):
        return Sample(whole.image, text="abc", id="full")
    return whole.replace(mask=None, keypoints=None)


@of_text
def test_texts_stay_with_their_images(transform: Any) -> None:
    before = text_sample(transform)
    for array in arrays(before).values():
        array.flags.writeable = False  # an attempt to change it raises
    others = ([before],) if getattr(transform, "extra", 0) else ()
    images = set()
    for seed in range(12):
        out, again = (transform(before, rng(seed), *others) for _ in range(2))
        assert arrays(out).keys() == arrays(again).keys()
        assert all(np.array_equal(value, arrays(again)[name]) for name, value in arrays(out).items())
        assert out.image.dtype == np.uint8 and out.image.shape == (*out.size_hw, 3) and out.id == "full"
        assert out.image.flags.c_contiguous
        if out.polygons is None:
            assert out.text in ("abc", "abcabc")
        else:
            assert len(out.text) == len(out.polygons) == len(out.boxes) == len(out.valid) == len(out.labels)
            assert all(polygon.dtype == np.float32 for polygon in out.polygons)
        images.add(out.image.tobytes())
    assert len(images) > 1 or isinstance(transform, UNCHANGING)


@of_text
def test_the_smallest_images_with_text(transform: Any) -> None:
    one = Sample(np.full((1, 1, 3), 9, np.uint8), text="a")
    if isinstance(transform, CopyPasteText):
        one = Sample(one.image, polygons=(), text=())
    out = transform(one, rng(0), *(([one],) if getattr(transform, "extra", 0) else ()))
    assert out.image.shape == (*out.size_hw, 3)


@of_text
def test_those_of_texts_come_back_from_their_configuration(transform: Any) -> None:
    tree = parse(dump(transform), "dumped.yml")
    assert bind(tree, Annotated[Any, Kind("transform")], PACKAGES) == transform

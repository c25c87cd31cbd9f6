"""framework.vision.transforms' classes: what they draw, and what they refuse."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from PIL import Image

import framework
from framework.core.errors import ConfigError, InputError, ShapeError
from framework.core.host_rng import host_rng
from framework.vision import sample_transforms
from framework.vision import transforms as T
from framework.vision.sample import Sample

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 50, 3)).astype(np.uint8)
RANDOM = [
    T.ColorJitter(0.4, (0.5, 1.5), 0.4, 0.1),
    T.RandomCrop(20, padding=4),
    T.RandomResizedCrop(16),
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(0.5),
    T.RandomRotation(45, interpolation="bilinear", expand=True),
    T.RandomAffine(30, translate=(0.2, 0.1), scale=(0.5, 1.5), shear=(-5, 5, -3, 3), fill=None),
    T.RandomPerspective(0.9),
    T.RandomErasing(0.9, value="random"),
]


def test_what_a_paddle_user_types() -> None:
    transform = T.Compose(
        [
            T.Resize(32),
            T.CenterCrop((24, 28)),
            T.ToTensor(),
            T.Normalize(mean=[0.5, 0.4, 0.3], std=[0.5, 0.5, 0.5]),
        ]
    )
    expected = (
        T.to_tensor(T.center_crop(T.resize(IMAGE, 32), (24, 28))) - np.float32([0.5, 0.4, 0.3])
    ) / np.float32(0.5)
    np.testing.assert_allclose(transform(IMAGE), expected, rtol=1e-6)
    assert transform(Image.fromarray(IMAGE)).shape == (24, 28, 3)
    assert "CenterCrop(size=(24, 28))" in repr(transform)


@pytest.mark.parametrize("transform", RANDOM, ids=lambda transform: type(transform).__name__)
def test_random_ones_follow_the_seed(transform: T.BaseTransform) -> None:
    def draw(seed: int, image: Any) -> list[np.ndarray]:
        framework.seed(seed)
        return [np.asarray(transform(image)) for _ in range(8)]

    for image in (IMAGE, Image.fromarray(IMAGE)):
        first, again = draw(1, image), draw(1, image)
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert len({part.tobytes() for part in first}) > 1
    assert np.array_equal(IMAGE, np.random.default_rng(0).integers(0, 256, (40, 50, 3)))


def test_factors_come_from_their_ranges() -> None:
    framework.seed(0)
    gray = np.full((1, 1, 3), 100, np.uint8)
    drawn = {int(T.BrightnessTransform(0.5)(gray)[0, 0, 0]) for _ in range(200)}
    assert min(drawn) < 55 and max(drawn) > 145 and drawn <= set(range(50, 151))
    assert T.BrightnessTransform(3.0).value == (0, 4) and T.HueTransform(0.2).value == (-0.2, 0.2)
    for unchanged in (
        T.BrightnessTransform(0),
        T.ContrastTransform(0),
        T.SaturationTransform(0),
        T.HueTransform(0),
    ):
        assert unchanged(gray) is gray


def test_crops_lie_in_the_image() -> None:
    framework.seed(0)
    indexed = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    starts = {int(T.RandomCrop((2, 2))(indexed)[0, 0, 0]) for _ in range(100)}
    assert starts == {0, 1, 2, 4, 5, 6}
    assert T.RandomCrop((3, 4))(indexed).shape == (3, 4, 1)
    assert T.RandomCrop((9, 3), pad_if_needed=True)(indexed).shape == (9, 3, 1)
    wide = T.RandomResizedCrop(4, scale=(1.0, 1.0), ratio=(1.0, 1.0))  # no such part: the middle
    np.testing.assert_array_equal(wide(np.arange(20).reshape(2, 10, 1).astype(np.uint8)), T.resize(
        np.arange(20).reshape(2, 10, 1).astype(np.uint8)[:, 4:6], (4, 4)))  # fmt: skip


def test_erasing_paints_one_rectangle() -> None:
    framework.seed(0)
    image = np.zeros((20, 30, 3), np.uint8)
    for value in (7, (1, 2, 3)):
        out = T.RandomErasing(1.0, value=value)(image)
        rows, columns = np.nonzero(out.any(axis=2))
        part = out[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert 0.015 < part.shape[0] * part.shape[1] / 600 < 0.36 and (part == value).all()
    assert T.RandomErasing(0.0)(image) is image
    noise = T.RandomErasing(1.0, value="random")(np.zeros((20, 30, 1), np.float32))
    assert noise.min() < 0 < noise.max()


def test_transpose_and_grayscale() -> None:
    np.testing.assert_array_equal(T.Transpose()(IMAGE), IMAGE.transpose(2, 0, 1))
    assert T.Transpose((1, 0, -1))(IMAGE[..., 0]).shape == (50, 40, 1)
    assert T.Grayscale(3)(IMAGE).shape == IMAGE.shape and T.Grayscale()(Image.fromarray(IMAGE)).mode == "L"
    assert T.Pad((1, 2))(IMAGE).shape == (44, 52, 3)


class FlipAll(T.BaseTransform):
    """Paddle's own example of a transform of images, boxes and masks."""

    def _get_params(self, inputs: tuple[Any, ...]) -> dict[str, Any]:
        image = inputs[self.keys.index("image")]
        return {"flip": bool(host_rng().random() < 0.5), "width": image.shape[1]}

    def _apply_image(self, image: np.ndarray) -> np.ndarray:
        return T.hflip(image) if self.params["flip"] else image

    def _apply_boxes(self, boxes: np.ndarray) -> np.ndarray:
        mirrored = self.params["width"] - boxes[:, [2, 1, 0, 3]]
        mirrored[:, 1::2] = boxes[:, 1::2]
        return mirrored if self.params["flip"] else boxes


def test_keys_say_what_each_input_is() -> None:
    framework.seed(0)
    transform, box = FlipAll(keys=("image", "boxes")), np.array([[2.0, 3, 10, 12]])
    flips = set()
    for _ in range(12):
        image, boxes, label = transform((IMAGE, box, "cat"))
        flipped = bool((image[:, 0] != IMAGE[:, 0]).any())
        assert boxes.tolist() == ([[40, 3, 48, 12]] if flipped else box.tolist()) and label == "cat"
        flips.add(flipped)
    assert flips == {True, False} and transform.params is None


def test_params_belong_to_the_thread_of_a_call() -> None:
    class Sized(T.BaseTransform):
        def _get_params(self, inputs: tuple[Any, ...]) -> int:
            return inputs[0].shape[0]

        def _apply_image(self, image: np.ndarray) -> int:
            barrier()
            return self.params

    images = [np.zeros((side, 2, 3), np.uint8) for side in range(1, 9)]
    transform = Sized()
    with ThreadPoolExecutor(8) as pool:
        from threading import Barrier

        barrier = Barrier(8).wait
        assert list(pool.map(transform, images)) == list(range(1, 9))


def test_they_can_be_sent_to_processes() -> None:
    transform = T.Compose([T.RandomRotation(3), T.ColorJitter(0.1)])
    framework.seed(2)
    expected = transform(IMAGE)
    framework.seed(2)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(transform))(IMAGE), expected)


def test_both_kinds_have_the_same_names() -> None:
    sample = Sample(IMAGE, boxes=np.array([[0, 0, 25, 20]], np.float32))
    resized = sample_transforms.Resize((20, 25))(sample, np.random.default_rng(0))
    assert resized.boxes is not None and resized.boxes.tolist() == [[0, 0, 12.5, 10]]
    assert T.LetterBox is sample_transforms.LetterBox
    with pytest.raises(InputError, match=r"framework\.vision\.sample_transforms"):
        T.Resize((20, 25))(sample)


def test_an_error_names_the_transform() -> None:
    with pytest.raises(ShapeError) as caught:
        T.Compose([T.ToTensor(), T.CenterCrop(99)])(IMAGE)
    assert caught.value.__notes__ == ["in the transform CenterCrop(size=(99, 99)) of Compose"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: T.Resize(3, keys=("image", "boxes")), "define _apply_boxes"),
        (lambda: T.BaseTransform(), "define _apply_image"),
        (lambda: T.Resize(3, keys="image"), "a sequence of names"),
        (lambda: T.Resize(3, keys=1), "a sequence of names"),
        (lambda: T.Resize((1, 2, 3)), "Resize.size"),
        (lambda: T.RandomHorizontalFlip(1.5), "RandomHorizontalFlip.prob"),
        (lambda: T.RandomCrop(3, padding=(1, 2, 3)), "padding must be one, two or four numbers"),
        (lambda: T.RandomResizedCrop(3, scale=(1, 0.5)), "RandomResizedCrop.scale"),
        (lambda: T.ColorJitter(brightness=-1), "BrightnessTransform.value"),
        (lambda: T.ColorJitter(hue=(0, 0.7)), "HueTransform.value"),
        (lambda: T.Transpose((0, 1, 1)), "Transpose.order"),
        (lambda: T.RandomRotation(-3), "RandomRotation.degrees"),
        (lambda: T.RandomAffine(3, translate=(2, 0)), "RandomAffine.translate"),
        (lambda: T.RandomAffine(3, scale=(0, 1)), "RandomAffine.scale"),
        (lambda: T.RandomAffine(3, interpolation="area"), "RandomAffine.interpolation"),
        (lambda: T.RandomPerspective(distortion_scale=2), "RandomPerspective.distortion_scale"),
        (lambda: T.RandomErasing(value="noise"), "'random'"),
        (lambda: T.Pad(1, padding_mode="wrap"), "Pad.padding_mode"),
    ],
)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()


@pytest.mark.parametrize(
    "kind", [T.BrightnessTransform, T.ContrastTransform, T.SaturationTransform, T.HueTransform]
)
def test_a_range_that_is_no_two_numbers_is_a_type_error_as_of_paddle(kind: Callable[[Any], object]) -> None:
    for value in ("0.1", [0.1], None):
        with pytest.raises(TypeError, match="two ascending numbers"):
            kind(value)


def test_a_crop_larger_than_the_image_says_what_to_do() -> None:
    with pytest.raises(ShapeError, match="pad_if_needed"):
        T.RandomCrop(60)(IMAGE)

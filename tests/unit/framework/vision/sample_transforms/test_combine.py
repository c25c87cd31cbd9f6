"""framework.vision.sample_transforms.combine: when and which."""

from typing import Annotated, Any

import numpy as np
import pytest

from framework.config import Kind, bind
from framework.core.errors import ConfigError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import (
    BatchRandomResize,
    MixUp,
    Pad,
    RandomApply,
    RandomChoice,
    RandomHorizontalFlip,
)

PIXEL = Sample(np.zeros((1, 1, 3), np.uint8))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_apply_all_or_none():
    both = RandomApply((Pad((1, 0, 0, 0)), Pad((0, 2, 0, 0))), p=0.5)
    sizes = [both(PIXEL, rng(seed)).size_hw for seed in range(100)]
    assert set(sizes) == {(1, 1), (3, 2)} and 30 < sizes.count((3, 2)) < 70
    assert RandomApply((Pad(1),), p=0)(PIXEL, rng()) is PIXEL
    assert RandomApply((Pad(1),), p=1)(PIXEL, rng()).size_hw == (3, 3)


def test_choice():
    equal = RandomChoice((Pad(0), Pad(1), Pad(2)))
    assert {equal(PIXEL, rng(seed)).size_hw[0] for seed in range(50)} == {1, 3, 5}
    weighted = RandomChoice((Pad(0), Pad(1), Pad(2)), weights=(3.0, 0.0, 1.0))
    sides = [weighted(PIXEL, rng(seed)).size_hw[0] for seed in range(200)]
    assert set(sides) == {1, 5} and 120 < sides.count(1) < 180


def test_from_a_configuration():
    source = {
        "type": "RandomChoice",
        "transforms": [
            {"type": "RandomApply", "transforms": [{"type": "Pad", "padding": [1, 2, 3, 4]}], "p": 0.25},
            {"type": "RandomHorizontalFlip", "keypoint_flip_pairs": [[1, 2], [3, 4]]},
        ],
        "weights": [1, 2],
    }
    made = bind(source, Annotated[Any, Kind("transform")], ("framework",))
    assert made == RandomChoice(
        (
            RandomApply((Pad((1, 2, 3, 4)),), p=0.25),
            RandomHorizontalFlip(keypoint_flip_pairs=((1, 2), (3, 4))),
        ),
        weights=(1.0, 2.0),
    )


@pytest.mark.parametrize("inner", [MixUp(), BatchRandomResize((8,))])
def test_what_the_loader_has_to_call_cannot_be_inside(inner):
    for outer in (RandomApply, RandomChoice):
        with pytest.raises(ConfigError, match=f"the loader itself(?s:.)*{type(inner).__name__}"):
            outer((Pad(1), inner))

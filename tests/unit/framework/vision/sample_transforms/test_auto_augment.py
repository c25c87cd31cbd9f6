"""framework.vision.sample_transforms.auto_augment: the table's ends by hand, and what is drawn."""

import numpy as np
import pytest

from framework.vision.sample import Sample
from framework.vision.sample_transforms import AutoAugment, RandAugment, auto_augment

NOISE = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
SAMPLE = Sample(NOISE, boxes=np.array([[20, 10, 30, 20]], np.float32))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("name", "strength", "expected"),
    # The point right of the centre (30, 20) by 10 and below it by 10, in an image of 60 x 40.
    [
        ("ShearX", 1.0, (43, 30)),
        ("ShearX", -0.5, (38.5, 30)),
        ("ShearY", 1.0, (40, 33)),
        ("TranslateX", 1.0, (67, 30)),  # 60 * 150 / 331 = 27.2
        ("TranslateY", -1.0, (40, 12)),  # 40 * 150 / 331 = 18.1
        ("Rotate", 1.0, (30 + 8.660254 - 5, 20 + 5 + 8.660254)),
    ],
)
def test_warps(name, strength, expected):
    warp = auto_augment._WARPS[name]((40, 60), strength)
    np.testing.assert_allclose(warp.points(np.array([40.0, 30.0])), expected, atol=1e-6)
    assert warp.size_hw == (40, 60)


def test_ends_of_the_table():
    image = np.array([[[255, 130, 10]]], np.uint8)
    ops = auto_augment._OTHERS
    assert ops["Posterize"](image, 0).tolist() == [[[255, 130, 10]]] == ops["Solarize"](image, 0).tolist()
    assert ops["Posterize"](image, 1).tolist() == [[[240, 128, 0]]]
    assert ops["Solarize"](image, 1).tolist() == [[[0, 125, 245]]]
    assert ops["Identity"](image, 1) is image


def test_all_fourteen_are_drawn(monkeypatch):
    drawn = []
    monkeypatch.setattr(auto_augment, "_apply", lambda *args: (drawn.append(args[2:4]), args[1])[1])
    for seed in range(100):
        RandAugment(num_ops=3, magnitude=5)(SAMPLE, rng(seed))
    assert len(drawn) == 300 and {name for name, _ in drawn} == set(auto_augment._RAND_AUGMENT)
    assert len(auto_augment._RAND_AUGMENT) == 14 and {strength for _, strength in drawn} == {0.5}
    drawn.clear()
    for seed in range(100):
        RandAugment(magnitude=9, magnitude_std=2)(SAMPLE, rng(seed))
    strengths = [strength for _, strength in drawn]
    assert min(strengths) < 0.7 and max(strengths) == 1.0 and len(set(strengths)) > 50


def test_no_op():
    assert RandAugment(num_ops=0)(SAMPLE, rng()) is SAMPLE


def test_both_signs(monkeypatch):
    monkeypatch.setattr(auto_augment, "_RAND_AUGMENT", ("TranslateX",))
    shifts = {float(RandAugment(1, 10)(SAMPLE, rng(s)).warp.matrix[0, 2]) for s in range(30)}
    assert shifts == {-27.0, 27.0}


def test_strength_nothing_is_near_the_image(monkeypatch):
    monkeypatch.setattr(auto_augment, "_RAND_AUGMENT", (*auto_augment._WARPS, *auto_augment._ENHANCERS))
    for seed in range(40):
        np.testing.assert_array_equal(RandAugment(2, 0)(SAMPLE, rng(seed)).image, NOISE)


def test_policy_of_imagenet():
    assert len(auto_augment._IMAGENET) == 25
    known = {*auto_augment._WARPS, *auto_augment._ENHANCERS, *auto_augment._OTHERS}
    assert {op[0] for pair in auto_augment._IMAGENET for op in pair} <= known
    outs = [AutoAugment()(SAMPLE, rng(seed)) for seed in range(100)]
    assert all(out.image.shape == NOISE.shape and out.image.dtype == np.uint8 for out in outs)
    turned = [out for out in outs if out.warp is not None]
    assert 5 < len(turned) < 50 and all(out.boxes.tolist() != SAMPLE.boxes.tolist() for out in turned)
    assert len({out.image.tobytes() for out in outs}) > 20

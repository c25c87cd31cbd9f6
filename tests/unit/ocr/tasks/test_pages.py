from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from ocr.tasks.pages import PageOrientation, PageUnwarping

PLAIN = Normalize((0.0,) * 3, (1.0,) * 3)


class Corner:
    """In place of a network: logits by which corner of the image is bright, with a preference for 0 degrees."""

    def __init__(self, preference: float = 0.0) -> None:
        self.preference, self.seen = preference, 0

    def __call__(self, x):  # type: ignore[no-untyped-def]
        self.seen += len(x)
        corners = jnp.stack([x[:, 0, 0, 0], x[:, 0, -1, 0], x[:, -1, -1, 0], x[:, -1, 0, 0]], axis=-1)
        return corners + jnp.array([self.preference, 0, 0, 0])


def marked(corner: int) -> np.ndarray:
    """[1, 4, 4, 3]: an upright image has its mark at the top left, a turned one further on, clockwise."""
    image = np.zeros((4, 4, 3), np.uint8)
    image[0, 0] = 255
    return np.ascontiguousarray(np.rot90(image, -corner))[None]


def test_a_packed_page_has_no_width() -> None:
    task = PageOrientation(PLAIN, (4, 4))
    packed = task.pack(Sample(marked(1)[0], labels=np.array(1)))
    assert set(packed) == {"image", "label"} and packed["label"] == 1
    with pytest.raises(InputError, match="a sample has no direction"):
        task.pack(Sample(marked(1)[0]))


def test_one_reading() -> None:
    task = PageOrientation(PLAIN, (4, 4))
    for turns in range(4):
        assert task.infer(Corner(), {"image": marked(turns)})["probability"].argmax() == turns
    # A network that prefers 0 degrees says so.
    assert task.infer(Corner(1.5), {"image": marked(2)})["probability"].argmax() == 0


def test_the_mean_of_four_readings_has_no_preference() -> None:
    task = PageOrientation(PLAIN, (4, 4), turn_all=True)
    images = np.concatenate([marked(turns) for turns in (2, 0, 3)])
    model = Corner(1.5)
    probability = np.asarray(task.infer(model, {"image": images})["probability"])
    assert model.seen == 12 and probability.shape == (3, 4)
    assert probability.argmax(axis=1).tolist() == [2, 0, 3]
    # The preference adds the same to all: softmax of (1, 0, 0, 0) in any order.
    np.testing.assert_allclose(np.sort(probability, axis=1)[:, -1], np.e / (np.e + 3), rtol=1e-5)


def test_in_training_every_direction_is_seen() -> None:
    batch = {"image": marked(3), "label": np.array([3])}
    once, model = Corner(), Corner()
    alone = PageOrientation(PLAIN, (4, 4)).loss(once, batch)
    losses = PageOrientation(PLAIN, (4, 4), turn_all=True).loss(model, batch)
    assert (once.seen, model.seen) == (1, 4)
    # All four are right, and equally sure.
    assert float(losses.parts["accuracy"]) == 1
    np.testing.assert_allclose(float(losses.total), float(alone.total), rtol=1e-5)


def test_an_oblong_image_cannot_be_turned() -> None:
    with pytest.raises(ConfigError, match=r"(?s)task.turn_all: .*another shape.*a square"):
        PageOrientation(PLAIN, (4, 6), turn_all=True)


def test_what_the_reader_is_told() -> None:
    about = PageOrientation(PLAIN, (64, 64), short_side=300, patches=3, turn_all=True).describe_stage(None)
    assert about["kind"] == "document_orientation"
    assert about["options"]["patches"] == 3 and about["options"]["short_side"] == 300
    assert about["options"]["turn_all"] is True


def test_unwarping_is_of_inference_alone() -> None:
    task = PageUnwarping(Normalize((0.0,) * 3, (1.0,) * 3, bgr=True))
    out = task.infer(lambda x: x[:, :2, :2, :2], {"image": np.full((1, 4, 4, 3), (0, 51, 255), np.uint8)})  # type: ignore[arg-type]
    np.testing.assert_allclose(out["grid"][0, 0, 0], [1.0, 0.2], rtol=1e-6)  # B, G
    with pytest.raises(ConfigError, match="be trained"):
        task.loss(None, {})  # type: ignore[arg-type]

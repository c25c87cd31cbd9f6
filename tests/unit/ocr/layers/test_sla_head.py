"""The loop of the structure's tokens: where it ends, and that it says what the scan over all steps says."""

import jax.numpy as jnp
import numpy as np

import framework
from ocr.layers.sla_head import SLAHead


def make_head(last: float) -> tuple[SLAHead, np.ndarray]:
    framework.seed(3)
    head = SLAHead(8, 16, 6, 4, 20).eval()
    head.structure_generator[1].bias = head.structure_generator[1].bias.at[-1].add(last)
    return head, np.random.default_rng(0).normal(size=(3, 5, 8)).astype(np.float32)


def test_the_loop_ends_with_the_last_table():
    head, features = make_head(100.0)
    said, steps = head.decode(features)
    assert int(steps) == 1
    assert said.logits.shape == (3, 21, 6) and said.boxes.shape == (3, 21, 4)
    assert (np.asarray(said.logits[:, 0]).argmax(-1) == 5).all()
    assert not np.asarray(said.logits[:, 1:]).any()


def test_the_loop_says_what_the_scan_says():
    head, features = make_head(-100.0)
    said, steps = head.decode(features)
    assert int(steps) == 21
    for found, wanted in zip(said, head(features)):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_given_tokens_take_the_place_of_its_own():
    head, features = make_head(-100.0)
    free = head(features)
    own = jnp.concatenate(
        [jnp.zeros((3, 1), jnp.int32), free.logits.argmax(-1)[:, :-1].astype(jnp.int32)], axis=1
    )
    np.testing.assert_allclose(head(features, own).logits, free.logits, atol=1e-6)
    assert np.abs(head(features, (own + 1) % 6).logits - free.logits).max() > 1e-3

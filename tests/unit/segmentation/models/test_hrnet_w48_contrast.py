import jax
import numpy as np
import pytest

from framework import nn
from segmentation.contracts import Embedded
from segmentation.models.hrnet_w48_contrast import (
    VARIANTS,
    HRNetW48Contrast,
    HRNetW48ContrastConfig,
    ProjectionHead,
)


def outputs(model: nn.Layer, x: tuple[int, ...]) -> tuple:
    graphdef, params, buffers = nn.abstract(model)
    image, key = jax.ShapeDtypeStruct(x, np.float32), jax.random.key(0)
    return jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, key, x)[0], params, buffers, image)


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_and_in_training_the_embedding(variant: str) -> None:
    model = HRNetW48Contrast(HRNetW48ContrastConfig(variant))
    logits, embedded = outputs(model, (2, 512, 1024, 3))
    assert logits.shape == (2, 512, 1024, 19)
    assert isinstance(embedded, Embedded)
    assert embedded.logits.shape == (2, 128, 256, 19) and embedded.embedding.shape == (2, 128, 256, 720)
    (alone,) = outputs(model.eval(), (2, 512, 1024, 3))
    assert alone.shape == logits.shape and alone.dtype == np.float32


def test_other_channels_classes_and_sizes() -> None:
    config = HRNetW48ContrastConfig(
        "hrnet_w18_small_v1", num_classes=2, in_channels=5, align_corners=True, embedding_dim=7
    )
    model = HRNetW48Contrast(config)
    logits, embedded = outputs(model, (2, 65, 33, 5))
    assert logits.shape == (2, 65, 33, 2)
    assert embedded.logits.shape == (2, 17, 9, 2) and embedded.embedding.shape == (2, 17, 9, 7)
    assert outputs(model.eval(), (1, 1, 1, 5))[0].shape == (1, 1, 1, 2)


def test_embeddings_have_length_1() -> None:
    head = ProjectionHead(16, 6)
    out = head(np.random.default_rng(0).standard_normal((2, 3, 5, 16), np.float32))
    np.testing.assert_allclose(np.linalg.norm(out, axis=-1), 1, rtol=1e-5)

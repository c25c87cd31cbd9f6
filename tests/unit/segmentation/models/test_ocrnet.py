import jax.numpy as jnp
import numpy as np
import pytest

from segmentation.models.ocrnet import VARIANTS, OCRHead, OCRNet, OCRNetConfig, gather_regions
from tests.family import shapes


@pytest.mark.parametrize("variant", VARIANTS)
def test_outputs_of_the_image_s_size(variant: str) -> None:
    model = OCRNet(OCRNetConfig(variant))
    assert shapes(model, (1, 512, 1024, 3)) == [(1, 512, 1024, 19)] * 2
    assert shapes(model.eval(), (1, 512, 1024, 3)) == [(1, 512, 1024, 19)]


def test_other_channels_classes_and_sizes() -> None:
    model = OCRNet(
        OCRNetConfig("hrnet_w18_small_v1", num_classes=2, in_channels=5, align_corners=True)
    ).eval()
    assert shapes(model, (2, 65, 33, 5)) == [(2, 65, 33, 2)]
    assert shapes(model, (1, 1, 1, 5)) == [(1, 1, 1, 2)]


def test_regions_by_hand() -> None:
    pixels = jnp.array([1.0, 3.0, 5.0]).reshape(1, 1, 3, 1)
    scores = jnp.stack(
        [jnp.zeros(3), jnp.log(jnp.array([6.0, 1.0, 1.0])), jnp.array([0.0, 0.0, 100.0])], axis=-1
    )
    regions = gather_regions(pixels, scores.reshape(1, 1, 3, 3))
    assert regions.shape == (1, 3, 1, 1)
    np.testing.assert_allclose(regions[0, :, 0, 0], [3, 6 / 8 + 3 / 8 + 5 / 8, 5], rtol=1e-6)
    one = gather_regions(pixels[:, :, :1], scores.reshape(1, 1, 3, 3)[:, :, :1])
    np.testing.assert_allclose(one, 1)  # of one pixel all regions are that pixel


def test_the_head_starts_small_and_drops_channels_in_training_alone() -> None:
    head = OCRHead(4, 3, dropout=0.5)
    kernels = [p.value for name, p in head.named_parameters() if p.value.ndim == 4]
    assert np.concatenate([np.ravel(x) for x in kernels]).std() == pytest.approx(0.001, rel=0.05)
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 4), np.float32)
    first, second = head(x)[0], head(x)[0]
    assert not np.array_equal(first, second)
    head.eval()
    assert np.array_equal(head(x)[0], head(x)[0])

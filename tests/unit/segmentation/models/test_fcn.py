import numpy as np
import pytest

from segmentation.models.fcn import FCN, VARIANTS, FCNConfig
from tests.family import shapes


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_output_of_the_image_s_size(variant: str) -> None:
    model = FCN(FCNConfig(variant))
    assert shapes(model, (1, 512, 1024, 3)) == shapes(model.eval(), (1, 512, 1024, 3)) == [(1, 512, 1024, 19)]


def test_other_channels_classes_and_sizes() -> None:
    model = FCN(FCNConfig("hrnet_w18_small_v1", num_classes=2, in_channels=5, align_corners=True)).eval()
    assert shapes(model, (2, 65, 33, 5)) == [(2, 65, 33, 2)]
    assert shapes(model, (1, 1, 1, 5)) == [(1, 1, 1, 2)]


def test_the_head_starts_small() -> None:
    head = FCN(FCNConfig("hrnet_w18_small_v1")).head
    for conv in (head.conv_1._conv, head.cls):
        assert np.asarray(conv.weight).std() == pytest.approx(0.001, rel=0.1)
        assert not np.asarray(conv.bias).any()

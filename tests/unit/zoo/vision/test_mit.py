import numpy as np
import pytest

from framework.core.errors import ShapeError
from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.mit import VARIANTS, MixVisionTransformer, MixVisionTransformerConfig


@pytest.mark.parametrize("variant", VARIANTS)
def test_maps_of_every_variant(variant: str) -> None:
    model = build_backbone(MixVisionTransformerConfig(variant))
    widths = VARIANTS[variant].widths
    assert model.features == tuple(Feature(c, s) for c, s in zip(widths, (4, 8, 16, 32)))
    assert eval_shapes(model, (1, 512, 1024, 3)) == [
        (1, 512 // s, 1024 // s, c) for c, s in zip(widths, (4, 8, 16, 32))
    ]


def test_table_is_complete_and_the_classifier_adds_its_layer() -> None:
    assert list(VARIANTS) == [f"mit_b{i}" for i in range(6)]
    model = MixVisionTransformer(MixVisionTransformerConfig(num_classes=7))
    assert eval_shapes(model, (2, 224, 224, 3)) == [(2, 7)]
    assert sum(p.size for p in model.parameters()) == VARIANTS["mit_b0"].params - 257 * 993


def test_logits_are_the_head_on_the_mean_of_the_last_map() -> None:
    model = MixVisionTransformer(MixVisionTransformerConfig(num_classes=2))
    last = np.zeros((1, 1, 2, 256), np.float32)
    last[0, 0, :, 3] = 1, 5
    model.forward_features = lambda x: (last,)  # type: ignore[method-assign]
    weight = np.zeros((256, 2), np.float32)
    weight[3] = 2, -1
    model.head.weight, model.head.bias = weight, np.array([0.5, 0], np.float32)
    np.testing.assert_allclose(model(np.zeros((1, 32, 32, 3), np.float32)), [[6.5, -3]], rtol=1e-6)


def test_smallest_image() -> None:
    model = MixVisionTransformer(MixVisionTransformerConfig(num_classes=0))
    assert eval_shapes(model, (1, 29, 29, 3))[-1] == (1, 1, 1, 256)
    with pytest.raises(ShapeError) as error:
        eval_shapes(model, (1, 64, 28, 3))
    assert str(error.value) == (
        "MixVisionTransformer: the image is too small for the reductions of the attention\n"
        "  received: height 64, width 28\n  allowed: both at least 29"
    )


def test_any_number_of_channels() -> None:
    model = MixVisionTransformer(MixVisionTransformerConfig("mit_b0", num_classes=0, in_channels=5))
    assert model.state_shapes()["patch_embed1.proj.weight"][1] == 5
    assert eval_shapes(model, (1, 64, 64, 5))[-1] == (1, 2, 2, 256)

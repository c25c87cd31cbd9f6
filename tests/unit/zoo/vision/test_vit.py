import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.vit import VARIANTS, VisionTransformer, VisionTransformerConfig


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_of_every_variant(variant: str) -> None:
    model = VisionTransformer(VisionTransformerConfig(variant))
    side = 384 if variant.endswith("384") else 224
    assert eval_shapes(model, (2, side, side, 3)) == [(2, 1000)]


def test_one_map_of_patches() -> None:
    model = build_backbone(VisionTransformerConfig("vit_base_patch32_384"))
    assert model.features == (Feature(768, 32),)
    assert eval_shapes(model, (2, 384, 384, 3)) == [(2, 12, 12, 768)]
    model = build_backbone(VisionTransformerConfig("deit_tiny_distilled", image_size=16))
    assert eval_shapes(model, (1, 16, 16, 3)) == [(1, 1, 1, 192)]
    assert not any(name.startswith("head") for name in model.state_shapes())


def test_map_and_logits_come_from_their_own_tokens() -> None:
    model = VisionTransformer(VisionTransformerConfig("deit_tiny_distilled", num_classes=1, image_size=32))
    tokens = jnp.tile(jnp.arange(6.0)[None, :, None], (1, 1, 192))  # class, distillation, four patches
    model.tokens = lambda x: tokens  # type: ignore[method-assign]
    model.head.weight, model.head_dist.weight = jnp.full((192, 1), 1 / 192), jnp.full((192, 1), 10 / 192)
    model.head.bias = jnp.ones(1)
    x = jnp.zeros((1, 32, 32, 3))
    np.testing.assert_allclose(model(x), [[(1 + 10) / 2]], rtol=1e-5)
    np.testing.assert_array_equal(model.forward_features(x)[0][0, :, :, 0], [[2, 3], [4, 5]])


def test_image_size() -> None:
    model = VisionTransformer(VisionTransformerConfig("deit_tiny"))
    with pytest.raises(ShapeError) as error:
        eval_shapes(model, (1, 224, 256, 3))
    assert str(error.value) == (
        "VisionTransformer: the position embedding is for images of one size\n"
        "  received: height 224, width 256\n  allowed: 224 by 224\n"
        "  what to do: resize the images, or build the model with another image_size and train it"
    )
    for side in (100, 0):
        with pytest.raises(ConfigError) as wrong:
            VisionTransformer(VisionTransformerConfig("deit_tiny", image_size=side))
        assert str(wrong.value) == (
            "VisionTransformerConfig.image_size: the image does not divide into patches\n"
            f"  received: {side}\n  allowed: a multiple of 16"
        )


def test_torchvision_names_load() -> None:
    model = VisionTransformer(VisionTransformerConfig("vit_base_patch16", num_classes=2, image_size=16))
    spellings = (
        ("patch_embed.proj", "conv_proj"),
        ("cls_token", "class_token"),
        ("pos_embed", "encoder.pos_embedding"),
        ("head.", "heads.head."),
        ("norm1", "ln_1"),
        ("norm2", "ln_2"),
        ("attn.qkv.", "self_attention.in_proj_"),
        ("attn.proj", "self_attention.out_proj"),
        ("mlp.fc1", "mlp.0"),
        ("mlp.fc2", "mlp.3"),
        ("blocks.", "encoder.layers.encoder_layer_"),
    )
    theirs = {}
    for name, shape in model.state_shapes().items():
        name = f"encoder.ln.{name[5:]}" if name.startswith("norm.") else name
        for ours, other in spellings:
            name = name.replace(ours, other)
        theirs[name] = np.zeros(shape, np.float32)
    assert "encoder.layers.encoder_layer_11.self_attention.in_proj_weight" in theirs
    assert model.set_state_dict(theirs) == ([], [])

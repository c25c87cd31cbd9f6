import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.interop.named_weights import named_weights
from ocr.layers.ctc_head import CTCHead, CTCHeadConfig, EncoderConfig, GuideLayer, MultiHead, ReshapeConfig
from ocr.layers.nrtr import NRTRConfig
from ocr.layers.svtr import LightSVTRConfig, SVTREncoderConfig


def test_classifier_in_one_and_two_steps() -> None:
    one = CTCHead(CTCHeadConfig(), 4, 10)
    two = CTCHead(CTCHeadConfig(mid_channels=3), 4, 10)
    assert one.state_shapes() == {"fc.weight": (4, 10), "fc.bias": (10,)}
    assert {k: v for k, v in two.state_shapes().items() if "weight" in k} == {
        "fc1.weight": (4, 3),
        "fc2.weight": (3, 10),
    }
    x = jnp.ones((2, 5, 4))
    assert one(x).shape == two(x).shape == (2, 5, 10)
    bound = 4**-0.5
    assert np.abs(one.fc.weight).max() <= bound and np.abs(one.fc.bias).max() > 0


def test_guide_layer_by_hand() -> None:
    layer = GuideLayer(1).eval()
    state = {"0.weight": np.array([[[1.0, 0.0, 2.0, 0.0, 4.0]]]), "3.weight": np.full((1, 1, 1), 2.0)}
    for bn in ("1", "4"):
        state |= {f"{bn}.weight": np.ones(1), f"{bn}.bias": np.zeros(1)}
        state |= {f"{bn}._mean": np.zeros(1), f"{bn}._variance": np.full(1, 1 - 1e-5)}
    layer.set_state_dict(state)
    x = np.array([1.0, 0.0, 0.0], np.float32).reshape(1, 3, 1)
    # taps at -2, 0, +2 give 2, 0, 1; hard swish x * (x + 3) / 6 gives 5/3, 0, 2/3; times 2 and again
    first = np.array([5 / 3, 0.0, 2 / 3])
    second = np.where(2 * first >= 3, 2 * first, 2 * first * (2 * first + 3) / 6)
    np.testing.assert_allclose(np.asarray(layer(x))[0, :, 0], second, rtol=1e-5)
    deployed = GuideLayer(1, deploy=True)
    deployed.set_state_dict(layer.deploy_state())  # type: ignore[attr-defined]
    np.testing.assert_allclose(deployed(x), layer(x), atol=1e-6)


def test_multi_head_names_and_branches() -> None:
    head = MultiHead(LightSVTRConfig(dims=8, depth=1), CTCHeadConfig(), NRTRConfig(dims=32, depth=1), 6, 10)
    names = set(head.state_shapes())
    assert {
        "ctc_encoder.encoder.svtr_block.0.mixer.qkv.weight",
        "ctc_head.fc.bias",
        "before_gtc.1.fc.weight",
        "gtc_head.decoder.0.cross_attn.kv.bias",
        "gtc_head.embedding.embedding.weight",
        "gtc_head.positional_encoding.pe",
        "gtc_head.tgt_word_prj.weight",
    } <= names
    head.eval()
    x = jnp.ones((2, 1, 7, 6))
    assert head(x).shape == (2, 7, 10)
    assert head.guide(x, jnp.array([[2, 4, 3, 0]] * 2)).shape == (2, 3, 14)


@pytest.mark.parametrize(
    "encoder", [SVTREncoderConfig(dims=8, depth=1, hidden_dims=8), LightSVTRConfig(dims=8, depth=1)]
)
def test_ctc_trains_the_backbone_unless_a_guided_encoder_has_a_decoder_beside(encoder: EncoderConfig) -> None:
    """PaddleOCR's configs have `use_guide` in the recognisers of PP-OCRv3 to v5, with svtr, and not in v6."""
    x, tokens = jnp.ones((2, 1, 7, 16)), jnp.array([[2, 4, 3, 0]] * 2)
    guided, alone = (
        MultiHead(encoder, CTCHeadConfig(), gtc, 16, 10).eval()
        for gtc in (NRTRConfig(dims=32, depth=1), None)
    )
    losses = (
        lambda x: guided(x).sum(),
        lambda x: guided.guide(x, tokens).sum(),
        lambda x: alone(x).sum(),
    )
    slopes = jax.jit(lambda x: [jax.grad(loss)(x) for loss in losses])(x)
    assert [bool((slope == 0).all()) for slope in slopes] == [encoder.guided, False, False]


def test_multi_head_in_deploy_form_has_no_guide() -> None:
    parts = (ReshapeConfig(), CTCHeadConfig(mid_channels=3, guide=True), NRTRConfig(dims=32, depth=1), 6, 10)
    head, deployed = MultiHead(*parts).eval(), MultiHead(*parts, deploy=True).eval()
    head.set_state_dict(named_weights(head.state_shapes()))
    deployed.set_state_dict(head.deploy_state())  # type: ignore[attr-defined]
    assert not any("gtc" in name for name in deployed.state_shapes())
    x = np.random.RandomState(0).standard_normal((1, 1, 9, 6)).astype(np.float32)
    np.testing.assert_allclose(deployed(x), head(x), atol=1e-5)

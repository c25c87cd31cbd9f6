from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import Kind, bind
from framework.core.dtypes import precision_scope
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from framework.optimizer import Adam
from ocr.layers.ctc_head import CTCHeadConfig, ReshapeConfig
from ocr.models.text_recognizer import VARIANTS, TextRecognizer, TextRecognizerConfig, greedy

TINY = "PP-OCRv6_tiny_rec"


@pytest.fixture(scope="module")
def tiny() -> TextRecognizer:
    model = TextRecognizer(TextRecognizerConfig(TINY, num_classes=50))
    model.set_state_dict(named_weights(model.state_shapes()))
    return reparameterize(model)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.RandomState(0).standard_normal((2, 48, 80, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def exact(tiny: TextRecognizer, image: np.ndarray) -> np.ndarray:
    return jitted(tiny, image)


def jitted(model: TextRecognizer, x: np.ndarray) -> np.ndarray:
    graphdef, params, buffers = nn.split(model)
    return np.asarray(jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(params, buffers, x))


@pytest.mark.parametrize(
    ("variant", "trained", "deployed"),
    [
        ("PP-OCRv6_tiny_rec", 1109774, 1103318),
        ("PP-OCRv6_small_rec", 5284070, 5266550),
        ("PP-OCRv6_medium_rec", 19155318, 19113430),
    ],
)
def test_parameter_counts(variant: str, trained: int, deployed: int) -> None:
    assert sum(p.size for p in TextRecognizer(TextRecognizerConfig(variant)).parameters()) == trained
    deploy = TextRecognizer(TextRecognizerConfig(variant, deploy=True))
    assert sum(p.size for p in deploy.parameters()) == deployed


@pytest.mark.parametrize(
    ("variant", "spared"),
    [
        ("PP-OCRv3_mobile_rec", 54),
        ("PP-OCRv4_mobile_rec", 254),
        ("PP-OCRv4_server_rec", 84),
        ("PP-OCRv6_small_rec", 10),
    ],
)
def test_weight_decay_is_upstreams(variant: str, spared: int) -> None:
    """The numbers are those of PaddleOCR's networks, counted by the regularizers of their parameters."""
    head = CTCHeadConfig(fc_decay=1e-5)
    model = TextRecognizer(TextRecognizerConfig(variant, num_classes=40, head=head, guided=True))
    decay = {n: group.coupled.l2 for n, group in Adam(weight_decay=3e-5).param_groups(model).items()}
    assert sum(value == 0.0 for value in decay.values()) == spared
    classifier = [name for name, value in decay.items() if value == 1e-5]
    assert classifier == ["head.ctc_head.fc.weight", "head.ctc_head.fc.bias"]
    assert set(decay.values()) == {0.0, 1e-5, 3e-5}


def test_shapes_of_full_size_models_without_computing() -> None:
    for variant in (f"PP-OCRv6_{size}_rec" for size in ("tiny", "small", "medium")):
        parts = VARIANTS[variant]
        model = TextRecognizer(TextRecognizerConfig(variant, guided=True)).eval()
        graphdef, params, buffers = nn.abstract(model)
        x, tokens = jax.ShapeDtypeStruct((3, 48, 320, 3), np.float32), jax.ShapeDtypeStruct((3, 27), np.int32)

        def both(p: Any, b: Any, x: Any, t: Any, graphdef: nn.GraphDef = graphdef) -> Any:
            guided = nn.apply(graphdef, p, b, None, x, t, method="forward_guided")[0]
            return nn.apply(graphdef, p, b, None, x)[0], guided

        logits, guided = jax.eval_shape(both, params, buffers, x, tokens)
        assert logits.shape == guided.ctc.shape == (3, 40, parts.num_classes)
        assert guided.gtc.shape == (3, 26, parts.num_classes + 4)


def test_eager_equals_jitted(tiny: TextRecognizer, image: np.ndarray, exact: np.ndarray) -> None:
    eager = np.asarray(tiny(image))
    assert eager.shape == (2, 10, 50) and eager.std() > 0.1
    np.testing.assert_allclose(exact, eager, atol=1e-5)


def test_bfloat16_dots_change_the_probabilities_little(
    tiny: TextRecognizer, image: np.ndarray, exact: np.ndarray
) -> None:
    with precision_scope("bfloat16"):
        rough = jitted(tiny, image)
    # On lines of text with official weights the difference is at most 6e-4 and no symbol changes.
    assert 0 < np.abs(jax.nn.softmax(rough) - jax.nn.softmax(exact)).max() < 0.005


def test_guided_training_has_both_branches() -> None:
    model = TextRecognizer(TextRecognizerConfig(TINY, num_classes=6, guided=True))
    x = np.random.RandomState(0).standard_normal((2, 48, 64, 3)).astype(np.float32)
    logits = model.forward_guided(x, jnp.array([[2, 4, 5, 3, 0], [2, 4, 3, 0, 0]]))
    assert logits.ctc.shape == (2, 8, 6) and logits.gtc.shape == (2, 4, 10)
    assert not any("gtc" in name for name in reparameterize(model).state_shapes())


@pytest.mark.parametrize("shape", [(48, 80, 3), (1, 3, 48, 80), (1, 48, 80, 1)])
def test_only_color_images(tiny: TextRecognizer, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"takes color images[\s\S]*\[N, 48, W, 3\]"):
        tiny(np.zeros(shape, np.float32))


def test_binding_from_a_file() -> None:
    tree = {
        "type": "TextRecognizer",
        "variant": TINY,
        "num_classes": 97,
        "encoder": {"kind": "reshape"},
        "head": {"mid_channels": 8},
        "guided": True,
    }
    config = bind(tree, Annotated[Any, Kind("model")], ("ocr", "zoo", "framework"))
    assert config.parts[1:3] == (ReshapeConfig(), CTCHeadConfig(mid_channels=8))
    assert config.parts.num_classes == 97 and config.guided


def test_greedy_by_hand() -> None:
    logits = jnp.log(jnp.array([[[0.1, 0.7, 0.2], [0.25, 0.25, 0.5], [0.4, 0.4, 0.2]]]))
    indices, probabilities = greedy(logits + 3.0)
    assert indices.dtype == jnp.int32 and indices.tolist() == [[1, 2, 0]]
    np.testing.assert_allclose(probabilities, [[0.7, 0.5, 0.4]], rtol=1e-6)


def test_greedy_with_a_nan_an_empty_line_and_one_class() -> None:
    indices, probabilities = greedy(jnp.array([[[1.0, jnp.nan, 2.0]]]))
    assert indices.tolist() == [[0]] and np.isnan(probabilities).all()
    assert greedy(jnp.zeros((2, 0, 5)))[0].shape == (2, 0)
    indices, probabilities = greedy(jnp.full((1, 2, 1), 1e4))
    assert indices.tolist() == [[0, 0]] and probabilities.tolist() == [[1.0, 1.0]]

from typing import Annotated, Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import Kind, bind
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import deploy_state, reparameterize
from framework.workflow.domain.weights import load_state_into
from ocr.models.crnn import CRNN, CRNNConfig
from zoo.vision.mobilenet_v3 import MobileNetV3Config

BACKBONE = MobileNetV3Config("mobilenetv3_small_x0_35", form="line", vertical_strides=(1, 2, 2, 2))
SMALL = CRNNConfig(BACKBONE, hidden_size=6, num_classes=11)


def loud_weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Named weights with larger kernels, without which little of the image arrives at the end of so deep a network."""
    weights = named_weights(shapes)
    return {name: 1.9 * value if value.ndim == 4 else value for name, value in weights.items()}


@pytest.fixture(scope="module")
def small() -> CRNN:
    model = CRNN(SMALL)
    model.set_state_dict(loud_weights(model.state_shapes()))
    model.eval()
    return model


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.RandomState(0).standard_normal((2, 32, 44, 3)).astype(np.float32)


def jitted(model: CRNN, x: np.ndarray) -> np.ndarray:
    graphdef, params, buffers = nn.split(model)
    return np.asarray(jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(params, buffers, x))


def test_eager_jitted_and_deployed_agree(small: CRNN, image: np.ndarray) -> None:
    eager = np.asarray(small(image))
    assert eager.shape == (2, 11, 11) and np.ptp(eager, (0, 1)).min() > 0.01
    np.testing.assert_allclose(jitted(small, image), eager, atol=1e-5)
    np.testing.assert_allclose(jitted(reparameterize(small), image), eager, atol=1e-5)


def test_the_lstm_looks_both_ways(small: CRNN) -> None:
    x = (
        np.random.RandomState(0)
        .standard_normal((1, 1, 5, small.backbone.features[-1].channels))
        .astype(np.float32)
    )
    changed = x.copy()
    changed[:, :, 2] += 1
    assert (np.abs(small.neck(changed) - small.neck(x)).max((0, 2)) > 0).all()


def test_names_are_upstream_s() -> None:
    shapes = CRNN(CRNNConfig(num_classes=97)).state_shapes()
    assert shapes["neck.encoder.lstm.weight_ih_l0"] == (192, 288)
    assert shapes["neck.encoder.lstm.weight_hh_l1_reverse"] == (192, 48)
    assert shapes["head.fc.weight"] == (96, 97)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 454321 and len(shapes) == 229


def test_a_checkpoint_that_names_the_cells_of_the_lstm() -> None:
    """Paddle saves each array of an LSTM under two names."""
    model = CRNN(SMALL)
    state = named_weights(model.state_shapes())
    cells = {}
    for layer in range(2):
        for suffix, cell in (("", "cell_fw"), ("_reverse", "cell_bw")):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                value = state[f"neck.encoder.lstm.{name}_l{layer}{suffix}"]
                cells[f"neck.encoder.lstm.{layer}.{cell}.{name}"] = value
    load_state_into(model, {**state, **cells})
    np.testing.assert_array_equal(
        model.neck.encoder.lstm.bias_hh_l1_reverse, cells["neck.encoder.lstm.1.cell_bw.bias_hh"]
    )
    deployed = load_state_into(CRNN(CRNNConfig(SMALL.backbone, 6, 11, deploy=True)), {**state, **cells})
    assert all(
        np.array_equal(value, deploy_state(model)[name]) for name, value in deployed.state_dict().items()
    )


@pytest.mark.parametrize("shape", [(32, 44, 3), (1, 3, 32, 44), (1, 32, 44, 1)])
def test_only_color_images(small: CRNN, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"takes color images[\s\S]*\[N, 32, W, 3\]"):
        small(np.zeros(shape, np.float32))


def test_other_heights_are_refused(small: CRNN) -> None:
    with pytest.raises(ShapeError, match=r"one height[\s\S]*2 rows of features[\s\S]*32 pixels high"):
        graphdef, params, buffers = nn.abstract(small)
        x = jax.ShapeDtypeStruct((1, 64, 32, 3), np.float32)
        jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x), params, buffers, x)


def test_binding_from_a_file() -> None:
    tree = {
        "type": "CRNN",
        "num_classes": 97,
        "backbone": {
            "type": "MobileNetV3",
            "variant": "mobilenetv3_small_x0_5",
            "form": "line",
            "vertical_strides": [1, 2, 2, 2],
        },
    }
    config = bind(tree, Annotated[Any, Kind("model")], ("ocr", "zoo", "framework"))
    assert config == CRNNConfig(num_classes=97)

from typing import Annotated, Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import Kind, bind
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from ocr.models.text_classifier import ClassHead, TextClassifier, TextClassifierConfig
from zoo.vision.mobilenet_v3 import MobileNetV3Config


def loud_weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Named weights with larger kernels, without which little of the image arrives at the end of so deep a network."""
    weights = named_weights(shapes)
    return {name: 1.9 * value if value.ndim == 4 else value for name, value in weights.items()}


def jitted(model: TextClassifier, x: np.ndarray) -> np.ndarray:
    graphdef, params, buffers = nn.split(model)
    return np.asarray(jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(params, buffers, x))


def test_training_and_deploy_form_agree() -> None:
    model = TextClassifier(TextClassifierConfig(num_classes=4))
    model.set_state_dict(loud_weights(model.state_shapes()))
    model.eval()
    x = np.random.RandomState(0).standard_normal((3, 48, 64, 3)).astype(np.float32)
    want = jitted(model, x)
    assert want.shape == (3, 4) and np.ptp(want, 0).min() > 0.01
    np.testing.assert_allclose(
        jitted(reparameterize(model), x), want, rtol=0, atol=1e-5 * max(1.0, np.abs(want).max())
    )


def test_head_by_hand() -> None:
    head = ClassHead(2, 1)
    head.set_state_dict({"fc.weight": np.array([[1.0], [10.0]]), "fc.bias": np.array([0.5])})
    x = np.array([[1.0, 2.0], [3.0, 6.0]], np.float32).reshape(1, 1, 2, 2)
    assert np.asarray(head(x)).tolist() == [[2.0 + 40.0 + 0.5]]


@pytest.mark.parametrize(
    ("variant", "entries", "values", "classes"),
    [
        ("ch_ppocr_mobile_v2.0_cls", 213, 133628, (200, 2)),
        ("PP-LCNet_x0_25_textline_ori", 145, 79354, (128, 2)),
        ("PP-LCNet_x1_0_textline_ori", 146, 1685026, (1280, 2)),
        ("PP-LCNet_x1_0_doc_ori", 146, 1687588, (1280, 4)),
    ],
)
def test_sizes_of_the_official_programs(
    variant: str, entries: int, values: int, classes: tuple[int, int]
) -> None:
    shapes = TextClassifier(TextClassifierConfig(variant)).state_shapes()
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == values and len(shapes) == entries
    assert shapes["head.fc.weight"] == classes


@pytest.mark.parametrize("shape", [(48, 192, 3), (1, 3, 48, 192), (1, 48, 192, 4)])
def test_only_color_images(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"takes color images[\s\S]*\[N, H, W, 3\]"):
        TextClassifier(TextClassifierConfig())(np.zeros(shape, np.float32))


def test_binding_from_a_file() -> None:
    backbone = {"type": "MobileNetV3", "variant": "mobilenetv3_small_x0_5", "form": "line"}
    tree = {"type": "TextClassifier", "backbone": backbone, "deploy": True}
    config = bind(tree, Annotated[Any, Kind("model")], ("ocr", "zoo", "framework"))
    assert config.parts == (MobileNetV3Config("mobilenetv3_small_x0_5", form="line"), 2) and config.deploy
    tree = {
        "type": "TextClassifier",
        "backbone": {"type": "PPLCNet", "strides": [[2, 2]] * 5, "pool": True},
        "num_classes": 4,
    }
    config = bind(tree, Annotated[Any, Kind("model")], ("ocr", "zoo", "framework"))
    assert config.parts == TextClassifierConfig("PP-LCNet_x1_0_doc_ori").parts

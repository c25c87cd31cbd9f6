import functools
from typing import Annotated, Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import Kind, bind
from framework.core.dtypes import precision_scope
from framework.core.errors import ShapeError
from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from framework.optimizer import Adam
from ocr.layers.db_head import DBHeadConfig
from ocr.layers.rep_lk import RepLKFPNConfig, RepLKPANConfig
from ocr.models.dbnet import DBNet, DBNetConfig
from zoo.vision.pp_lcnet_v4 import PPLCNetV4Config
from zoo.vision.resnet import ResNetConfig

PACKAGES = ("ocr", "zoo", "framework")


@pytest.fixture(scope="module")
def tiny() -> DBNet:
    model = DBNet(DBNetConfig("PP-OCRv6_tiny_det"))
    model.set_state_dict(named_weights(model.state_shapes()))
    return reparameterize(model)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.RandomState(0).standard_normal((2, 32, 64, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def exact(tiny: DBNet, image: np.ndarray) -> np.ndarray:
    return jitted(tiny, image)


def jitted(model: DBNet, x: np.ndarray) -> np.ndarray:
    graphdef, params, buffers = nn.split(model)
    return np.asarray(
        jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0])(params, buffers, x).probability
    )


# Deploy counts are those of the official programs; the published sizes (1.5, 7.7, 34.5 M) count the recogniser too.
@pytest.mark.parametrize(
    ("variant", "trained", "deployed"),
    [
        ("PP-OCRv6_tiny_det", 512980, 428405),
        ("PP-OCRv6_small_det", 2650004, 2453353),
        ("PP-OCRv6_medium_det", 16774984, 15487329),
    ],
)
def test_parameter_counts(variant: str, trained: int, deployed: int) -> None:
    assert sum(p.size for p in DBNet(DBNetConfig(variant)).parameters()) == trained
    assert sum(p.size for p in DBNet(DBNetConfig(variant, deploy=True)).parameters()) == deployed


@pytest.mark.parametrize(
    ("variant", "spared"),
    [("PP-OCRv4_mobile_det", 254), ("PP-OCRv5_server_det", 160), ("PP-OCRv6_small_det", 10)],
)
def test_weight_decay_is_upstreams(variant: str, spared: int) -> None:
    """The numbers are those of PaddleOCR's networks, counted by the regularizers of their parameters."""
    groups = Adam(weight_decay=5e-5).param_groups(DBNet(DBNetConfig(variant)))
    assert sum(group.coupled.l2 == 0.0 for group in groups.values()) == spared
    assert {group.coupled.l2 for group in groups.values()} == {0.0, 5e-5}


def test_training_maps_of_full_size_models_without_computing() -> None:
    x = jax.ShapeDtypeStruct((2, 640, 320, 3), np.float32)
    for size in ("tiny", "small", "medium"):
        graphdef, params, buffers = nn.abstract(DBNet(DBNetConfig(f"PP-OCRv6_{size}_det")))
        call = functools.partial(nn.apply, graphdef)
        maps, _ = jax.eval_shape(lambda p, b, x, call=call: call(p, b, None, x), params, buffers, x)
        assert {leaf.shape for leaf in jax.tree.leaves(maps)} == {(2, 640, 320)}
        assert len(jax.tree.leaves(maps)) == 12


def test_eager_equals_jitted(tiny: DBNet, image: np.ndarray, exact: np.ndarray) -> None:
    eager = np.asarray(tiny(image).probability)
    assert eager.shape == (2, 32, 64) and eager.std() > 0.05
    np.testing.assert_allclose(exact, eager, atol=1e-5)


def test_bfloat16_dots_change_the_map_little(tiny: DBNet, image: np.ndarray, exact: np.ndarray) -> None:
    with precision_scope("bfloat16"):
        rough = jitted(tiny, image)
    # 8 bits of mantissa; on a receipt with official weights the difference is at most 0.05, on average 1e-4
    assert 0 < np.abs(rough - exact).max() < 0.03


@pytest.mark.parametrize("shape", [(1, 32, 40, 3), (1, 33, 32, 3), (1, 3, 32, 32), (32, 32, 3)])
def test_sides_must_be_multiples_of_32(tiny: DBNet, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="multiples of 32"):
        tiny(np.zeros(shape, np.float32))


def bound(**model: Any) -> DBNetConfig:
    return bind({"type": "DBNet", **model}, Annotated[Any, Kind("model")], PACKAGES)


def test_binding_from_a_file() -> None:
    assert bound(variant="PP-OCRv6_tiny_det", deploy=True) == DBNetConfig("PP-OCRv6_tiny_det", deploy=True)
    config = bound(
        backbone={"type": "PPLCNetV4", "variant": "pplcnetv4_tiny"},
        neck={"kind": "RepLKPAN", "out_channels": 32, "intracl": False},
        head={"auxiliary": False},
    )
    assert config.parts == (
        PPLCNetV4Config("pplcnetv4_tiny"),
        RepLKPANConfig(out_channels=32, intracl=False),
        DBHeadConfig(),
    )
    assert bound(neck={"kind": "RepLKFPN", "kernel_size": 9}).neck == RepLKFPNConfig(kernel_size=9)


def test_parts_given_take_the_place_of_the_variant_s() -> None:
    config = DBNetConfig("PP-OCRv6_tiny_det", neck=RepLKFPNConfig(out_channels=32, kernel_size=5))
    assert config.parts.backbone == PPLCNetV4Config("pplcnetv4_tiny")
    model = DBNet(config)
    assert model.neck.out_channels == 32
    assert model.state_shapes()["head.binarize.conv1.weight"] == (8, 32, 3, 3)


def test_the_deploy_form_on_a_backbone_of_one_form() -> None:
    """ResNet keeps its normalisations, while those of neck and head are folded."""
    model = DBNet(DBNetConfig("DB_R50_vd", backbone=ResNetConfig("resnet18_vd")))
    model.set_state_dict(named_weights(model.state_shapes()))
    model.eval()
    deployed = reparameterize(model)
    assert not any(name.startswith("head.thresh.") for name in deployed.state_shapes())
    x = np.random.default_rng(0).standard_normal((1, 32, 32, 3)).astype(np.float32)
    np.testing.assert_allclose(jitted(deployed, x), jitted(model, x), atol=1e-5)

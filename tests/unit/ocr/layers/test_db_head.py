import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.interop.named_weights import named_weights
from ocr.layers.db_head import DBHead, DBHeadConfig, DBMaps, MapHead
from ocr.layers.pyramid import Pyramid


def pyramid(channels: int = 8) -> Pyramid:
    rng = np.random.RandomState(0)

    def level(size: int) -> jax.Array:
        return jnp.asarray(rng.standard_normal((1, size, 2 * size, channels)), jnp.float32)

    return Pyramid(level(8), (level(8), level(4), level(2)))


def filled(head: nn.Layer) -> nn.Layer:
    head.set_state_dict(named_weights(head.state_shapes()))
    return head


def test_map_head_by_hand() -> None:
    head = MapHead(4).eval()
    state = {name: np.zeros(shape) for name, shape in head.state_shapes().items()}
    state |= {name: np.full(1, 1 - 1e-5) for name in state if name.endswith("_variance")}
    state |= {f"conv_bn{i}.weight": np.ones(1) for i in (1, 2)}
    state["conv1.weight"] = np.zeros((1, 4, 3, 3))
    state["conv1.weight"][0, :, 1, 1] = 1.0
    state["conv2.weight"] = np.array([[1.0, 2.0], [3.0, -4.0]])[None, None]
    state["conv3.weight"] = np.ones((1, 1, 2, 2))
    state["conv3.bias"] = np.array([-2.0])
    head.set_state_dict(state)
    out = np.asarray(
        head(jnp.full((1, 1, 1, 4), 0.25))
    )  # 1, then [[1, 2], [3, 0]], each pixel twice as large, minus 2
    logits = np.kron([[1.0, 2.0], [3.0, 0.0]], np.ones((2, 2))) - 2
    np.testing.assert_allclose(out, 1 / (1 + np.exp(-logits))[None], rtol=1e-5)


def test_eval_gives_the_probability_alone() -> None:
    maps = filled(DBHead(DBHeadConfig(auxiliary=True), 8)).eval()(pyramid())
    assert maps.probability.shape == (1, 32, 64)
    assert maps == DBMaps(maps.probability)


def test_training_gives_threshold_and_soft_binary_maps() -> None:
    head = filled(DBHead(DBHeadConfig(steepness=50.0), 8))
    maps = head(pyramid())
    p, t, b = (np.asarray(m, np.float64) for m in maps[:3])
    assert p.shape == t.shape == b.shape == (1, 32, 64) and maps.auxiliary == ()
    np.testing.assert_allclose(b, 1 / (1 + np.exp(-50 * (p - t))), atol=1e-4)
    assert b.std() > 0.1


def test_auxiliary_heads_see_the_levels_from_the_coarsest_at_the_size_of_the_input() -> None:
    head = filled(DBHead(DBHeadConfig(auxiliary=True), 8))
    features = pyramid()
    maps = head(features)
    assert len(maps.auxiliary) == 3
    assert all(m.probability.shape == (1, 32, 64) for m in maps.auxiliary)
    finest = head.aux_binarize_p2(features.levels[0])  # type: ignore[attr-defined]
    np.testing.assert_allclose(maps.auxiliary[2].probability, finest, atol=1e-6)
    assert jax.tree.structure(maps).num_leaves == 12


def test_deploy_form_keeps_the_map_and_has_no_other_head() -> None:
    head = filled(DBHead(DBHeadConfig(auxiliary=True), 8)).eval()
    deployed = DBHead(DBHeadConfig(auxiliary=True), 8, deploy=True)
    deployed.set_state_dict(head.deploy_state())  # type: ignore[attr-defined]
    names = ["conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "conv3.weight", "conv3.bias"]
    assert list(deployed.state_shapes()) == [f"binarize.{name}" for name in names]
    np.testing.assert_allclose(
        deployed.train()(pyramid()).probability, head(pyramid()).probability, atol=1e-5
    )


def test_the_local_map_sees_the_base_map_and_the_features() -> None:
    head = filled(DBHead(DBHeadConfig(local="small"), 8)).eval()
    assert head.state_shapes()["cbn_layer.last_3.conv.weight"] == (1, 3, 3, 3)
    fused = pyramid().fused
    features = head.binarize.features(fused)
    base = np.asarray(head.binarize.classify(features))
    np.testing.assert_allclose(base, head.binarize(fused), atol=1e-6)
    joined = np.concatenate([base[..., None], np.repeat(np.repeat(features, 2, 1), 2, 2)], axis=-1)
    local = jax.nn.sigmoid(head.cbn_layer.last_1(head.cbn_layer.last_3(jnp.asarray(joined))))[..., 0]
    assert np.abs(local - base).max() > 0.01
    np.testing.assert_allclose(head(pyramid()).probability, (base + local) / 2, atol=1e-6)


def test_the_local_map_is_trained_beside_the_base_map() -> None:
    head = filled(DBHead(DBHeadConfig(local="large"), 8))
    assert head.state_shapes()["cbn_layer.last_3.conv.weight"] == (2, 3, 3, 3)
    with_local = head(pyramid())
    plain = filled(DBHead(DBHeadConfig(), 8))(pyramid())
    np.testing.assert_allclose(with_local.binary, plain.binary, atol=1e-6)
    assert np.abs(with_local.probability - plain.probability).max() > 0.01


def test_deploy_form_keeps_the_local_map() -> None:
    head = filled(DBHead(DBHeadConfig(local="large"), 8)).eval()
    deployed = DBHead(DBHeadConfig(local="large"), 8, deploy=True)
    deployed.set_state_dict(head.deploy_state())  # type: ignore[attr-defined]
    assert not any("bn" in name.split(".")[-2] for name in deployed.state_shapes())
    np.testing.assert_allclose(deployed(pyramid()).probability, head(pyramid()).probability, atol=1e-5)

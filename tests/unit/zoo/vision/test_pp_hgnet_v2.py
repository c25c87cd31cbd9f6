import numpy as np

from framework.interop.named_weights import named_weights
from framework.nn.reparam import reparameterize
from zoo.vision.pp_hgnet_v2 import ConvBNAct, HGBlock, PPHGNetV2, PPHGNetV2Config, Stage


def test_affines_where_the_variant_or_the_config_has_them() -> None:
    def affines(**settings: bool) -> set[str]:
        names = PPHGNetV2(PPHGNetV2Config("pphgnetv2_b4", 0, **settings)).state_shapes()
        return {name for name in names if name.endswith("lab.scale")}

    assert not affines()
    added = affines(use_lab=True)
    assert "stem.stem2a.lab.scale" in added and "stages.3.blocks.0.layers.5.conv2.lab.scale" in added
    # not where there is no activation
    assert not any("conv1.lab" in name or "downsample.lab" in name for name in added)
    rates = {
        p.attr.learning_rate for n, p in ConvBNAct(3, 4, 1, use_lab=True).named_parameters() if "lab" in n
    }
    assert rates == {0.01}


def test_a_block_by_hand() -> None:
    """One pixel, all kernels 1 at the centre: 1 -> layers 1 and 2 give 2 each (two channels), the sum of all inputs."""
    block = HGBlock(2, Stage(2, 2, 1), 3, 2, light=False, residual=True, use_lab=False, deploy=False).eval()
    state = {name: np.zeros(shape) for name, shape in block.state_shapes().items()}
    for name, array in state.items():
        if name.endswith("_variance"):
            array += 1 - 1e-5
        elif name.endswith("bn.weight"):
            array += 1
        elif array.ndim == 4:
            array[:, :, array.shape[2] // 2, array.shape[2] // 2] = 1
    block.set_state_dict(state)
    # x = (1, 1); layers (2, 2) and (4, 4); joined 2 + 4 + 8 = 14 in one channel, 14 in both outputs; x is added
    np.testing.assert_allclose(block(np.ones((1, 1, 1, 2), np.float32)), np.full((1, 1, 1, 2), 15), rtol=1e-4)


def test_deploy_form() -> None:
    model = PPHGNetV2(PPHGNetV2Config("pphgnetv2_b0", num_classes=5)).eval()
    weights = named_weights(model.state_shapes())
    model.set_state_dict({name: 1.7 * w if w.ndim == 4 else w for name, w in weights.items()})
    x = np.random.RandomState(0).standard_normal((2, 33, 40, 3)).astype(np.float32)
    deployed = reparameterize(model)
    assert not any(".bn." in name for name in deployed.state_shapes())
    want = np.asarray(model(x))
    assert np.ptp(want, axis=0).max() > 0.01
    np.testing.assert_allclose(deployed(x), want, atol=1e-5 * np.abs(want).max())

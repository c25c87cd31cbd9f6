import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import WeightError
from framework.interop.named_weights import named_weights
from tests.family import eval_shapes
from zoo.contracts import Feature, build_backbone
from zoo.vision.swin import (
    VARIANTS,
    PatchMerging,
    SwinTransformer,
    SwinTransformerBlock,
    SwinTransformerConfig,
    axis_regions,
    position_index,
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_of_every_variant(variant: str) -> None:
    model = SwinTransformer(SwinTransformerConfig(variant))
    side = 384 if variant.endswith("384") else 224
    assert eval_shapes(model, (2, side, side, 3)) == [(2, 1000)]


def test_maps_of_any_size() -> None:
    model = build_backbone(SwinTransformerConfig("swin_tiny"))
    assert model.features == (Feature(96, 4), Feature(192, 8), Feature(384, 16), Feature(768, 32))
    assert eval_shapes(model, (2, 250, 333, 3)) == [
        (2, 63, 84, 96),
        (2, 32, 42, 192),
        (2, 16, 21, 384),
        (2, 8, 11, 768),
    ]
    assert eval_shapes(model, (1, 1, 1, 3)) == [(1, 1, 1, c) for c in (96, 192, 384, 768)]


def test_normalised_maps_have_the_names_of_detectors() -> None:
    model = SwinTransformer(SwinTransformerConfig(num_classes=0, norm_maps=True))
    extra = {name for name in model.state_shapes() if name.startswith("norm")}
    assert extra == {f"norm{i}.{kind}" for i in range(4) for kind in ("weight", "bias")}
    maps = [np.arange(2.0 * f.channels, dtype=np.float32).reshape(1, 1, 2, -1) for f in model.features]
    model._maps = lambda x: maps  # type: ignore[method-assign]
    for one in model(np.zeros((1, 8, 8, 3), np.float32)):
        np.testing.assert_allclose(np.mean(one, -1), 0, atol=1e-5)


def test_position_index() -> None:
    # places 0 1 / 2 3; the rows of the table are the offsets (dy, dx) from (-1, -1) to (1, 1)
    assert position_index(2).tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]


def test_regions() -> None:
    assert axis_regions(6, 3, 1).tolist() == [[0, 0, 0], [0, 0, 1]]
    assert axis_regions(3, 3, 0).tolist() == [[0, 0, 0]]


def seen_by(h: int, w: int, shift: int) -> np.ndarray:
    """[h * w, h * w]: which pixels change where one pixel of the normalised map changes, in windows of 4."""
    block = SwinTransformerBlock(2, 1, 4, shift, 0.0)
    block.set_state_dict({"attn.relative_position_index": position_index(4), **drawn(block)})
    block.eval()
    start = np.random.RandomState(1).standard_normal((1, h, w, 2)).astype(np.float32)
    batch = np.repeat(start, h * w + 1, 0)
    for i in range(h * w):
        batch[i, i // w, i % w] += 1
    out = np.asarray(block.attend(jnp.asarray(batch))).reshape(h * w + 1, h * w, 2)
    return (np.abs(out[:-1] - out[-1]) > 1e-6).any(-1)


def drawn(layer: nn.Layer) -> dict[str, np.ndarray]:
    kept = {n: s for n, s in layer.state_shapes().items() if not n.endswith("relative_position_index")}
    return named_weights(kept)


@pytest.mark.parametrize(("h", "w"), [(6, 9), (3, 8)])
def test_windows_never_join_the_ends_of_an_axis(h: int, w: int) -> None:
    def group(place: int, side: int) -> int:
        return (place + 2) // 4 if side > 4 else place // 4

    rows, columns = np.divmod(np.arange(h * w), w)
    groups = np.array([(group(y, h), group(x, w)) for y, x in zip(rows, columns)])
    want = (groups[:, None] == groups[None]).all(-1)
    np.testing.assert_array_equal(seen_by(h, w, 2), want)


def test_merging_puts_left_before_right() -> None:
    model = PatchMerging(1)
    model.set_state_dict(
        {
            "norm.weight": np.ones(4),
            "norm.bias": np.zeros(4),
            "reduction.weight": np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]),
        }
    )
    x = np.array([[[1.0], [3.0], [5.0]], [[2.0], [4.0], [6.0]]], np.float32)[None]  # 1 3 5 / 2 4 6
    out = np.asarray(model(x))
    # normalised 1 2 3 4, and 5 6 0 0 where the image ends: above and below of the left column are kept
    np.testing.assert_allclose(out[0, 0, 0], (np.array([1, 2]) - 2.5) / np.sqrt(1.25), rtol=1e-4)
    np.testing.assert_allclose(out[0, 0, 1], (np.array([5, 6]) - 2.75) / np.sqrt(7.6875), rtol=1e-4)


def test_other_spellings_load() -> None:
    model = SwinTransformer(SwinTransformerConfig(num_classes=3))
    state = {n: np.asarray(v) for n, v in named_weights(model.state_shapes()).items()}
    index = [name for name in state if name.endswith("relative_position_index")]
    microsoft = {**state, **{name: position_index(7) for name in index}}
    microsoft["layers.0.blocks.1.attn_mask"] = np.zeros((64, 49, 49))
    assert model.set_state_dict(microsoft) == ([], [])
    timm = {n: v for n, v in state.items() if n not in index and not n.startswith(("head", "layers"))}
    for name, value in state.items():
        if name.startswith("layers") and name not in index:
            number, rest = int(name[7]), name[9:]
            timm[f"layers.{number + rest.startswith('downsample')}.{rest}"] = value
    timm |= {f"head.fc.{n}": 2 * state[f"head.{n}"] for n in ("weight", "bias")}
    assert model.set_state_dict(timm) == ([], [])
    loaded = model.state_dict()
    np.testing.assert_array_equal(loaded["head.weight"], 2 * state["head.weight"])
    np.testing.assert_array_equal(
        loaded["layers.1.downsample.norm.bias"], state["layers.1.downsample.norm.bias"]
    )
    np.testing.assert_array_equal(loaded[index[0]], position_index(7))
    with pytest.raises(WeightError, match=r"1 missing: norm\.weight"):
        model.load_dict({n: v for n, v in timm.items() if n != "norm.weight"})


def test_drop_path_rates() -> None:
    def last(config: SwinTransformerConfig) -> float:
        return SwinTransformer(config).layers[3].blocks[1].drop_path.p

    assert last(SwinTransformerConfig("swin_base")) == 0.5
    assert last(SwinTransformerConfig("swin_base", drop_path_rate=0.0)) == 0.0

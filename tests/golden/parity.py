"""What the parity tests share: the outputs of named sublayers, and the few values of each that a reference stores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from framework import nn
from framework.interop.named_weights import named_weights
from tests.golden.thinning import KEPT, amplify, images, thin

__all__ = ["KEPT", "check_reference", "check_stages", "spelled", "stages"]
DATA = Path(__file__).parent / "data"


def stages(model: nn.Layer, names: list[str], x: np.ndarray) -> dict[str, np.ndarray]:
    """The outputs of named sublayers under one jitted call, maps as [N, C, H, W] like the reference's."""
    found: dict[str, jax.Array] = {}
    owners = dict(model.named_sublayers())

    def run(
        params: dict[str, jax.Array], buffers: dict[str, jax.Array], x: jax.Array
    ) -> dict[str, jax.Array]:
        found.clear()
        nn.apply(graphdef, params, buffers, None, x)
        return dict(found)

    def keep(name: str) -> Any:
        return lambda layer, args, out: found.__setitem__(name, getattr(out, "fused", out))

    handles = [owners[name].register_forward_post_hook(keep(name)) for name in names]
    graphdef, params, buffers = nn.split(model)
    outs = jax.jit(run)(params, buffers, x)
    for handle in handles:
        handle.remove()
    arrays = {name: np.asarray(out) for name, out in outs.items()}
    return {name: out.transpose(0, 3, 1, 2) if out.ndim == 4 else out for name, out in arrays.items()}


def check_stages(
    model: nn.Layer, reference: dict[str, np.ndarray], x: np.ndarray, tolerance: float = 1e-4
) -> None:
    """Compare every stage of `reference` (name to thinned values) within `tolerance` of its largest value or of 1."""
    for name, ours in stages(model, list(reference), x).items():
        want = reference[name]
        flat = ours.reshape(-1)
        flat = flat[:: -(-flat.size // KEPT)]
        assert flat.size == want.size and want.std() > 0.01, name
        limit = tolerance * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(flat, want, rtol=0, atol=limit, err_msg=name)


def spelled(shapes: dict[str, tuple[int, ...]]) -> str:
    """Names and shapes of a state dict, one a line, as references store them."""
    return "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))


def check_reference(
    model: nn.Layer, test: str, name: str, case: Mapping[str, Any], tolerance: float = 1e-4
) -> None:
    """Names, number of parameters, stages and outputs against what tools/golden/reference.py wrote for `case`.

    Of the maps of a backbone without its classifier the last are compared, as many as the reference gives. The
    reference's names are loaded strictly; where `state_dict()` has others, the model's aliases lead to them.
    Outputs in training are taken with dropout switched off, within three times the tolerance: statistics over few
    pixels, block after block, amplify rounding.
    """
    with np.load(DATA / test / f"{name}.npz") as data:
        reference = {key: data[key] for key in data.files}
    lines = (line.partition(" ") for line in bytes(reference.pop("keys")).decode().splitlines())
    shapes = {key: tuple(map(int, shape.split("x"))) for key, _, shape in lines}
    assert sum(value.size for value in model.parameters()) == int(reference.pop("count"))
    assert spelled(dict(model._without_aliases(shapes))) == spelled(model.state_shapes())
    model.set_state_dict(amplify(named_weights(shapes), case))
    x = images(case).transpose(0, 2, 3, 1)
    wanted = {
        mode: {key: reference.pop(key) for key in sorted(reference) if key.startswith(f"{mode}.")}
        for mode in ("eval", "train")
    }
    assert wanted["eval"] and bool(wanted["train"]) == case.get("train", False)
    check_stages(model.eval(), reference, x, tolerance)
    for mode, outputs in wanted.items():
        if not outputs:
            continue
        model.train(mode == "train")
        for layer in model.sublayers():
            if isinstance(layer, nn.Dropout | nn.Dropout2D):
                layer.eval()
        graphdef, params, buffers = nn.split(model)
        run = jax.jit(lambda p, b, x, g=graphdef: nn.apply(g, p, b, None, x)[0])
        found = jax.tree.leaves(run(params, buffers, x))
        for out, (key, want) in zip(found[-len(outputs) :], outputs.items(), strict=True):
            assert out.dtype == np.float32 and want.std() > 0.01, key
            ours = np.asarray(out).transpose(0, 3, 1, 2) if out.ndim == 4 else np.asarray(out)
            limit = tolerance * (3 if mode == "train" else 1) * max(1.0, float(np.abs(want).max()))
            np.testing.assert_allclose(thin(ours), want, rtol=0, atol=limit, err_msg=key)

"""What the parity tests share: the outputs of named sublayers, and the few values of each that a reference stores."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from framework import nn

KEPT = 160  # values of each stage, as in tools/golden


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

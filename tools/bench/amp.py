"""A training step in float32, O1 and O2, with and without recomputation: CPU time and memory of temporaries.

The step is loss and gradients, compiled; temporaries are what XLA plans for it (memory_analysis), without parameters
and gradients. Times are of the process, summed over its threads, because machines are shared; variants run in turn.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework import amp as mixed_precision
from framework import nn
from framework.core.compilation import CPU_RECOMPUTE_OPTIONS
from framework.inference import compile_options
from framework.nn import functional as F
from tools.bench.peers import arguments


class Bottleneck(nn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        inner = width // 4
        self.conv1, self.norm1 = nn.Conv2D(width, inner, 1, bias_attr=False), nn.BatchNorm2D(inner)
        self.conv2, self.norm2 = nn.Conv2D(inner, inner, 3, padding=1, bias_attr=False), nn.BatchNorm2D(inner)
        self.conv3, self.norm3 = nn.Conv2D(inner, width, 1, bias_attr=False), nn.BatchNorm2D(width)

    def forward(self, x: jax.Array) -> jax.Array:
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(x + self.norm3(self.conv3(y)))


class ResNet(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2D(3, 128, 7, 4, 3, bias_attr=False)
        self.blocks = nn.LayerList([Bottleneck(128) for _ in range(6)])
        self.head = nn.Linear(128, 100)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(F.global_avg_pool2d(x).reshape(x.shape[0], -1))


class Encoder(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 256)
        blocks = [nn.TransformerEncoderLayer(256, 4, 1024, 0.1, "gelu") for _ in range(6)]
        self.blocks = nn.LayerList(blocks)
        self.head = nn.Linear(256, 100)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def step(layer: nn.Layer, level: str, dtype: Any, pattern: str | None, inputs: tuple[Any, Any]) -> Any:
    """The compiled (params, buffers, key, x, label) -> (loss, grads) and its arguments."""
    nn.set_recompute(layer, pattern)
    graphdef, params, buffers = nn.split(layer)

    def loss(params: Any, buffers: Any, key: jax.Array, x: jax.Array, label: jax.Array) -> Any:
        with mixed_precision.auto_cast(
            enable=level != "f32", level="O2" if level == "O2" else "O1", dtype=dtype
        ):
            out, after = nn.apply(graphdef, params, buffers, key, x)
            return F.cross_entropy(out, label), after

    arguments = (params, buffers, jax.random.key(0), *inputs)
    options = (
        {**compile_options(jax.devices()[0]), **CPU_RECOMPUTE_OPTIONS}
        if jax.default_backend() == "cpu"
        else {}
    )
    run = jax.jit(jax.value_and_grad(loss, has_aux=True))
    return run.lower(*arguments).compile(compiler_options=options), arguments


def amp(argv: list[str]) -> None:
    parser = arguments(__doc__, rounds=3, only="")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16"))
    options = parser.parse_args(argv)
    rng = np.random.default_rng(0)
    image = jnp.asarray(rng.standard_normal((8, 224, 224, 3)), jnp.float32)
    tokens = jnp.asarray(rng.integers(0, 1000, (8, 256)), jnp.int32)
    label = jnp.asarray(rng.integers(0, 100, 8), jnp.int32)
    for name, layer, x in (("resnet", ResNet(), image), ("transformer", Encoder(), tokens)):
        if options.only not in name:
            continue
        variants = {
            f"{level}{' recompute' if pattern else ''}": step(
                layer, level, options.dtype, pattern, (x, label)
            )
            for level in ("f32", "O1", "O2")
            for pattern in (None, r"blocks\.\d+$")
        }
        times: dict[str, list[float]] = {variant: [] for variant in variants}
        losses: dict[str, float] = {}
        for _ in range(options.rounds + 1):
            for variant, (run, given) in variants.items():
                start = time.process_time()
                losses[variant] = float(jax.block_until_ready(run(*given))[0][0])
                times[variant].append(time.process_time() - start)
        print(f"{name}, {jax.default_backend()}, {options.dtype}")
        for variant, (run, _) in variants.items():
            megabytes = run.memory_analysis().temp_size_in_bytes / 1e6
            seconds = statistics.median(times[variant][1:])  # the first run warms up
            print(f"  {variant:15} {megabytes:8.1f} MB  {seconds:6.2f} s CPU  loss {losses[variant]:.4f}")

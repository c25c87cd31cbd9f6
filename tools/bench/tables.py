"""Large tables: lookups against torch, a step by rows against dense gradients, and memory on many devices.

tables       sums of bags a second: nn.ShardedEmbedding in a compiled program, torch.nn.EmbeddingBag. Ids follow
             Zipf's law. Processes take turns; a ratio above 1 says that Oar is faster. `--peers dense` compares
             the engine's step (row-wise Adagrad of the rows that were met) with that of nn.Embedding (dense Adagrad)
large_table  the training step of a table that no machine holds, compiled for many devices: memory of each by the
             compiler. No array is made
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from tools.bench.peers import Run, Worker, arguments, compare, pin, serve


def bags(rows: int, samples: int, fields: int) -> np.ndarray:
    """Ids [samples, fields] by Zipf's law, scattered over the rows."""
    draw = np.random.default_rng(0)
    return (draw.zipf(1.1, (samples, fields)) * 2654435761 % rows).astype(np.int64)


def lookups(peer: str, rows: int, features: int, samples: int, fields: int, threads: int) -> tuple[Run, dict]:
    """Twenty sums of all bags."""
    ids = bags(rows, samples, fields)
    if peer == "torch":
        import torch

        torch.set_num_threads(threads)
        layer, words = torch.nn.EmbeddingBag(rows, features, mode="sum"), torch.from_numpy(ids)

        def run() -> float:
            with torch.no_grad():
                for _ in range(20):
                    out = layer(words)
            return float(out[0, 0])

        return run, {}
    pin(threads)
    import jax

    from framework import nn

    table = nn.ShardedEmbedding(rows, features, combiner="sum")
    graphdef, params, buffers = nn.split(table.eval())
    program = jax.jit(lambda params, ids: nn.apply(graphdef, params, buffers, None, ids)[0])
    numbers = jax.numpy.asarray(ids.astype(np.int32))

    def look_up() -> float:
        for _ in range(20):
            out = jax.block_until_ready(program(params, numbers))
        return float(out[0, 0])

    return look_up, {}


def steps(peer: str, rows: int, features: int, samples: int, fields: int, threads: int) -> tuple[Run, dict]:
    """A training step of the engine."""
    pin(threads)
    import jax

    from framework import nn
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.optimizer import Adagrad

    task, options, optimizer = _task(), TrainOptions(iters=1), Adagrad(0.05).resolve(1)
    model = _model(rows, features, sharded=peer == "rows")
    groups, tables = optimizer.param_groups(model), optimizer.table_groups(model)
    graphdef, params, buffers = nn.split(model.train())
    state = init_state(params, buffers, groups, optimizer, options, tables)
    device = jax.local_devices()[0]
    step = train_step(graphdef, task, optimizer, optimizer.schedule, groups, options, device, tables=tables)
    batch = {"ids": jax.numpy.asarray(bags(rows, samples, fields).astype(np.int32))}

    def run() -> float:
        nonlocal state
        state, log = step(state, batch)
        return float(log["loss"])

    return run, {}


def _model(rows: int, features: int, sharded: bool) -> Any:
    from framework import nn

    class Model(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            wide = rows >= 2**31
            self.table = (
                nn.ShardedEmbedding(rows, features, "hashed" if wide else "exact", wide_ids=wide)
                if sharded
                else nn.Embedding(rows, features)
            )
            self.out = nn.Linear(features, 1)

        def forward(self, ids: Any) -> Any:
            return self.out(self.table(ids).sum(1))

    return Model()


def _task() -> Any:
    from framework.engine.task import Losses

    class Task:
        def loss(self, model: Any, batch: Any) -> Losses:
            return Losses((model(batch["ids"]) ** 2).mean())

    return Task()


def tables(argv: list[str]) -> None:
    parser = arguments(
        __doc__, peers=("torch", "dense"), rounds=7, rows=1_000_000, features=64, samples=2048, fields=26, threads=2,
        torch_python=sys.executable,
    )  # fmt: skip
    args = parser.parse_args(argv)
    sizes = [str(n) for n in (args.rows, args.features, args.samples, args.fields, args.threads)]
    for peer in args.peers:
        kind, first = ("lookups", "oar") if peer == "torch" else ("steps", "rows")
        python = args.torch_python if peer == "torch" else sys.executable
        workers = [
            Worker(name, path, __name__, kind, name, *sizes, threads=args.threads)
            for name, path in ((first, sys.executable), (peer, python))
        ]
        count = args.samples * args.fields * (20 if peer == "torch" else 1)
        print(f"{kind}: {args.rows:,} x {args.features}, {args.samples} bags of {args.fields} ids")
        compare(workers, args.rounds, count, "ids")


def large_table(argv: list[str]) -> None:
    parser = arguments(
        __doc__,
        rows=10**11,
        features=16,
        devices=512,
        samples=65536,
        fields=26,
        dtype=("bfloat16", "float32"),
    )
    args = parser.parse_args(argv)
    # The memory of arrays is planned before code is made; well-made code for 512 devices takes minutes.
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={args.devices} --xla_backend_optimization_level=0 "
        "--xla_llvm_disable_expensive_passes=true"
    )
    began = time.perf_counter()
    for dtype in args.dtype:
        memory = compile_large(args.rows, args.features, args.samples, args.fields, dtype)
        table = args.rows * args.features * (2 if dtype == "bfloat16" else 4) / args.devices
        print(
            f"{args.rows:,} rows x {args.features} of {dtype} on {args.devices} devices, {args.samples} samples of "
            f"{args.fields} ids: {memory.argument_size_in_bytes / 1e9:.2f} GB of state and batch a device "
            f"(table {table / 1e9:.2f}), of which {memory.alias_size_in_bytes / 1e9:.2f} are updated in place, "
            f"{memory.temp_size_in_bytes / 1e9:.3f} GB of temporaries; "
            f"compiled in {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        began = time.perf_counter()


def compile_large(rows: int, features: int, samples: int, fields: int, dtype: str) -> Any:
    """The compiler's memory of one device for a training step on all devices that there are."""
    import jax
    import jax.numpy as jnp

    from framework import nn
    from framework.distributed import Partitioner
    from framework.engine.experiment import TrainOptions
    from framework.engine.step import init_state, train_step
    from framework.nn.functional.tables import table_shape
    from framework.optimizer import Adagrad

    options, optimizer = TrainOptions(iters=1), Adagrad(0.05).resolve(1)
    model = _model(rows, features, sharded=True)
    model.table._parameters["weight"].dtype = np.dtype(jnp.dtype(dtype))
    partitioner = Partitioner()
    partitioner.set_model(model)
    groups, by_rows = optimizer.param_groups(model), optimizer.table_groups(model)
    graphdef, params, buffers = nn.functional_core.abstract(model.train())
    shape = (*table_shape(rows, len(partitioner.devices)), features)
    params["table.weight"] = jax.ShapeDtypeStruct(shape, params["table.weight"].dtype)
    state = jax.eval_shape(
        lambda params: init_state(params, buffers, groups, optimizer, options, by_rows), params
    )
    shardings = partitioner.step_shardings(state, list(groups))
    step = train_step(
        graphdef, _task(), optimizer, optimizer.schedule, groups, options, partitioner.devices[0],
        shardings=shardings, tables=by_rows,
    )  # fmt: skip
    described = jax.tree.map(
        lambda leaf, where: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where),
        state,
        partitioner.shardings(state),
    )
    words = (2,) if rows >= 2**31 else ()
    kind = jnp.uint32 if words else jnp.int32
    batch = {"ids": jax.ShapeDtypeStruct((samples, fields, *words), kind, sharding=partitioner.batch)}
    return step.lower(described, batch).compile().memory_analysis()


if __name__ == "__main__":  # a competitor, see `Worker`
    kind, peer, *sizes = sys.argv[1:]
    serve(lambda: {"lookups": lookups, "steps": steps}[kind](peer, *map(int, sizes)))

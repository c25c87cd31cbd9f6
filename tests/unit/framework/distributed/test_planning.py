"""Plans for devices that are not here: how arrays are divided, what a step needs, and which division is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import framework.nn.functional as F
from framework import nn
from framework import optimizer as O
from framework.core.errors import ConfigError
from framework.distributed import ParallelOptions
from framework.distributed.mesh import AXES
from framework.distributed.planning.calibration import calibrate, hardware_of
from framework.distributed.planning.estimate import estimate
from framework.distributed.planning.hardware import (
    HARDWARE,
    Hardware,
    collective_seconds,
    find_hardware,
    parse_memory,
    with_memory,
)
from framework.distributed.planning.search import Division, Search, Variant, search
from framework.distributed.planning.spread import Bits, Spreader, Traffic, input_bits
from framework.distributed.planning.trace import flatten
from framework.engine.abstract_step import AbstractStep
from framework.engine.experiment import TrainOptions
from framework.engine.task import Batch, Losses, Task
from framework.nn import functional_core
from framework.nn.mesh_scope import Gathered
from framework.nn.recompute import set_recompute
from framework.workflow.train.plan import find_blocks

DATA, FSDP, TENSOR = (1 << AXES.index(axis) for axis in ("data", "fsdp", "tensor"))
SIZES = {"data": 2, "fsdp": 2, "tensor": 2}
COUNTS = tuple(SIZES.get(axis, 1) for axis in AXES)
BATCH = DATA | FSDP


def spread(function: Callable[..., jax.Array], *arguments: tuple[tuple[int, ...], Bits]) -> tuple[Bits, list]:
    """The division of what the function gives of arrays of these shapes and divisions, and the traffic."""
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape, _ in arguments]
    program = flatten(jax.make_jaxpr(function)(*shapes))
    found = Spreader(COUNTS).spread(program, [*[None] * program.constants, *(bits for _, bits in arguments)])
    (output,) = program.outputs
    assert output is not None
    return found.divisions[output], [(one.kind, one.bits) for one in found.traffic]


def split_heads(x: jax.Array) -> jax.Array:
    return jnp.tanh(x).reshape(8, 16, 4, 8).swapaxes(1, 2)


def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.conv(x, w, (1, 1), "SAME")


IMAGES = ((8, 4, 6, 6), (BATCH, 0, 0, 0))
X = ((8, 16, 32), (BATCH, 0, 0))


@pytest.mark.parametrize(
    "function, arguments, division, traffic",
    [
        (lambda x, w: x @ w, (X, ((32, 64), (0, TENSOR))), (BATCH, 0, TENSOR), []),
        (lambda x, w: x @ w, (((8, 32), (BATCH, TENSOR)), ((32, 64), (TENSOR, 0))), (BATCH, 0), [TENSOR]),
        (lambda x, y: x.reshape(-1, 32).T @ y.reshape(-1, 32), (X, X), (0, 0), [BATCH]),
        (split_heads, (((8, 16, 32), (BATCH, 0, TENSOR)),), (BATCH, TENSOR, 0, 0), []),
        (lambda x: x.sum(axis=(0, 1)), (X,), (0,), [BATCH]),
        (lambda x: x - x.mean(axis=-1, keepdims=True), (X,), (BATCH, 0, 0), []),
        (convolve, (IMAGES, ((16, 4, 3, 3), (TENSOR, 0, 0, 0))), (BATCH, TENSOR, 0, 0), []),
        (lambda t, x: t[x.astype(int)[:, :, 0]], (((100, 16), (0, TENSOR)), X), (BATCH, 0, TENSOR), []),
        (lambda x: jax.lax.scan(lambda c, y: (c + y, c), x[0], x)[1], (((4, 8, 6), (0, BATCH, 0)),), (0, BATCH, 0), []),
        (lambda x: jnp.where(x > 0, x, jnp.zeros_like(x)), (X,), (BATCH, 0, 0), []),
    ],
)  # fmt: skip
def test_divisions_are_carried(
    function: Callable[..., jax.Array], arguments: tuple, division: Bits, traffic: list[int]
) -> None:
    bits, found = spread(function, *arguments)
    assert bits == division
    assert found == [("all-reduce", one) for one in traffic]


@pytest.mark.parametrize("columns", [0, FSDP])
def test_the_gradient_of_a_table_that_lies_by_columns_is_summed_by_columns(columns: int) -> None:
    """Each device gets all ids: it makes no table, and of two axes of samples one is left to be summed over."""
    table, ids = jax.ShapeDtypeStruct((96, 16), jnp.float32), jax.ShapeDtypeStruct((8, 5), jnp.int32)
    program = flatten(jax.make_jaxpr(jax.grad(lambda t, i: jnp.tanh(t[i]).sum()))(table, ids))
    spreader = Spreader(COUNTS, {table.shape: (0, columns)} if columns else None)
    found = spreader.spread(program, [*[None] * program.constants, (0, 0), (BATCH, 0)])
    index = next(k for k, one in enumerate(program.operations) if one.name.startswith("scatter"))
    operation = program.operations[index]
    traffic = [(one.kind, one.bits, one.bytes) for one in found.traffic if one.operation == index]
    size = 4 * 96 * 16
    if columns:  # ids of the devices of one data, and a quarter of what is added
        expected = [("all-gather", FSDP, 80), ("all-to-all", FSDP, 640), ("all-reduce", DATA, size // 2)]
    else:
        expected = [("all-reduce", BATCH, size)]
    assert traffic == expected
    for one in (operation.results[0], operation.operands[0]):  # the zeros that it adds to, too
        assert one is not None and found.divisions[one] == (0, columns)


def test_what_does_not_divide_is_whole() -> None:
    bits, found = spread(lambda x: x * 2, ((7, 4), (BATCH, 0)))
    assert bits == (0, 0) and not found


def test_two_uses_of_one_axis() -> None:
    bits, found = spread(lambda x, w: x @ w, ((8, 32), (BATCH, TENSOR)), ((32, 64), (0, TENSOR)))
    assert bits == (BATCH, TENSOR)  # features of samples are gathered: the weights have divided the result
    assert found == [("all-gather", TENSOR)]


# -- steps --------------------------------------------------------------------------------------------------------


class Block(nn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc2(F.tanh(self.fc1(x)))


class Blocks(nn.Layer):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.first = nn.Linear(16, width)
        self.blocks = nn.LayerList([Block(width) for _ in range(depth)])
        self.last = nn.Linear(width, 8)

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


@dataclass(frozen=True)
class Mean(Task):
    def infer(self, model: nn.Layer, inputs: Batch) -> dict[str, jax.Array]:
        return {}

    def metrics(self, labels: tuple[str, ...]) -> dict:
        return {}

    def loss(self, model: nn.Layer, batch: Batch) -> Losses:
        return Losses((model(batch["x"]) ** 2).mean(), {})


def make_step(
    width: int = 256, depth: int = 6, batch: int = 64, recompute: str | None = None
) -> AbstractStep:
    return AbstractStep(
        Blocks(width, depth),
        Mean(),
        O.AdamW(learning_rate=1e-3),
        TrainOptions(iters=10, recompute=recompute),
        {"x": jax.ShapeDtypeStruct((batch, 16), jnp.float32)},
    )


@pytest.mark.parametrize("width, depth, batch", [(256, 6, 64), (64, 4, 8192)])
def test_the_estimate_is_near_the_compiler(width: int, depth: int, batch: int) -> None:
    step = make_step(width, depth, batch)
    program = step.trace()
    one = {str(axis): 1 for axis in AXES}
    specs = step.inputs(ParallelOptions(), one)
    needs = estimate(program, input_bits(program, specs), tuple(one.values()))
    analysis = step.compile(jax.devices()[:1], ParallelOptions()).program.memory_analysis()
    assert analysis is not None
    real = analysis.argument_size_in_bytes + analysis.temp_size_in_bytes
    assert needs.state == pytest.approx(analysis.argument_size_in_bytes, rel=1e-3)
    assert needs.memory == pytest.approx(real, rel=0.15)
    assert (
        needs.products
        == 3 * 2 * batch * (16 * width + depth * 4 * width**2 + width * 8) - 2 * batch * 16 * width
    )
    assert all(parameter._value is None for _, parameter in step.model.named_parameters())


class Clicks(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.ShardedEmbedding(100_001, 16), nn.Linear(16, 1)

    def forward(self, ids: jax.Array) -> jax.Array:
        return self.out(self.embed(ids))


@pytest.mark.parametrize("devices", [1, 2])
def test_a_step_with_a_table_is_compiled_by_shapes(devices: int) -> None:
    """Each device has its share of the rows and of their state, which are updated in place, and no copy of them."""
    batch = {"x": jax.ShapeDtypeStruct((64,), jnp.int32)}
    step = AbstractStep(Clicks(), Mean(), O.AdamW(learning_rate=1e-3), TrainOptions(iters=10), batch)
    analysis = step.compile(jax.devices()[:devices], ParallelOptions()).program.memory_analysis()
    assert analysis is not None
    assert analysis.argument_size_in_bytes == pytest.approx(4 * (16 + 1) * 100_001 / devices, rel=1e-2)
    assert analysis.temp_size_in_bytes < 0.05 * analysis.argument_size_in_bytes
    assert step.model.embed._parameters["weight"]._value is None


def test_a_table_is_planned_as_it_is_dealt_out() -> None:
    batch = {"x": jax.ShapeDtypeStruct((64,), jnp.int32)}
    step = AbstractStep(Clicks(), Mean(), O.AdamW(learning_rate=1e-3), TrainOptions(iters=10), batch)
    found = search([Variant(None, partial(step.trace, 8), step.inputs)], 8, 64, HARDWARE["a100"])
    for division in found.fitting:
        assert division.needs.state == pytest.approx(4 * (16 + 1) * 100_001 / 8, rel=1e-2)
        assert division.needs.working < 0.1 * division.needs.state


def test_divisions_take_less() -> None:
    step = make_step(batch=8192)
    program = step.trace()

    def needs(recompute: str | None = None, fsdp: int = 1, tensor: int = 1) -> tuple[int, int]:
        traced = (
            program
            if recompute is None
            else replace(step, options=TrainOptions(iters=1, recompute=recompute)).trace()
        )
        options = ParallelOptions(fsdp=fsdp, tensor=tensor)
        sizes = {str(axis): 1 for axis in AXES} | {
            "fsdp": fsdp,
            "tensor": tensor,
            "data": 8 // fsdp // tensor,
        }
        specs = step.inputs(options, sizes)
        found = estimate(traced, input_bits(traced, specs), tuple(sizes[axis] for axis in AXES))
        return found.state, found.working

    whole, fsdp, pair = needs(), needs(fsdp=8), needs(fsdp=2, tensor=4)
    assert fsdp[0] < 0.16 * whole[0] and pair[0] < 0.2 * whole[0]
    assert fsdp[1] == pytest.approx(whole[1], rel=0.2)  # activations are divided as before
    assert needs(recompute=r"^blocks\.\d+$", fsdp=8)[1] < fsdp[1]


def test_divided_parameters_are_gathered_again() -> None:
    """For each one the forward pass gathers it, and so does the backward pass, which keeps no gathered copy; and a
    block that is computed again is so under it too."""
    mesh = Mesh(np.array(jax.devices()[:1]).reshape((1,) * len(AXES)), AXES)
    model = Blocks(32, 2)

    def gathers(mark: bool, pattern: str | None = None) -> tuple[int, int]:
        set_recompute(model, pattern)
        graph, params, buffers = functional_core.split(model.train())

        def loss(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
            bound = graph.bind(params, buffers)
            for name, parameter in bound.named_parameters() if mark else ():
                if name.endswith("weight"):
                    parameter.gathered = Gathered(NamedSharding(mesh, P()), NamedSharding(mesh, P("fsdp")))
            return (bound(x) ** 2).mean()

        x = jnp.ones((4, 16))
        program = flatten(jax.make_jaxpr(jax.grad(loss))(params, x))
        names = [one.name for one in program.operations]
        shardings = [one.parameters.get("sharding") for one in program.operations]
        divided = [one for one in shardings if isinstance(one, NamedSharding) and "fsdp" in one.spec]
        assert len(divided) == (6 if mark else 0)  # gradients are summed where the parameters lie
        found.append(jax.grad(loss)(params, x))
        return names.count("sharding_constraint"), names.count("tanh")

    found: list[dict[str, jax.Array]] = []
    assert gathers(False) == (0, 2)
    # Six weights: forward, backward (but for the first one, of whose input there is no gradient), and of the gradient.
    assert gathers(True) == (6 + 5 + 6, 2)
    assert gathers(True, r"^blocks\.\d+$") == (6 + 5 + 6, 4)
    for other in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(value, other[name])


# -- search ---------------------------------------------------------------------------------------------------------


def search_step(step: AbstractStep, devices: int, memory: float, batch: int) -> Search:
    hardware = with_memory(HARDWARE["a100"], memory)
    blocks = find_blocks(step.model)
    assert blocks == r"^blocks\.\d+$"
    again = replace(step, options=replace(step.options, recompute=blocks))
    variants = [Variant(one.options.recompute, one.trace, one.inputs) for one in (step, again)]
    return search(variants, devices, batch, hardware)


def test_what_fits_goes_before_what_does_not() -> None:
    step = make_step(width=512, depth=4, batch=96)
    state = 16 * sum(int(np.prod(one.shape)) for _, one in step.model.named_parameters())
    roomy, narrow = search_step(step, 8, 1e9, 96), search_step(step, 8, state / 4, 96)
    assert roomy.fitting and not roomy.too_large
    assert roomy.fitting[0].seconds == min(one.seconds for one in roomy.fitting)
    assert narrow.fitting and all(one.sizes[0] < 8 for one in narrow.fitting)
    assert any(one.sizes == counts(data=8) for one in narrow.too_large)
    assert not search_step(step, 8, 1e3, 96).fitting
    few = search_step(step, 64, 1e9, 96)
    assert sum(few.dropped.values()) and any("no multiple" in reason for reason in few.dropped)


def test_what_the_compiler_says_decides() -> None:
    """The division that is estimated to be the fastest is too large by the compiler; the others are timed."""
    step = make_step(width=32, depth=1, batch=16)
    variants = [Variant(None, step.trace, step.inputs)]
    guessed = search(variants, 2, 16, HARDWARE["a100"])
    first, *others = guessed.fitting

    def compile_division(division: Division) -> Division:
        if division is first:
            return replace(division, needs=replace(division.needs, working=2**40), compiled=True)
        compiled = step.compile(jax.devices()[:2], replace(division.options, data=None))
        state, working = compiled.memory() or (0, 0)
        needs = replace(division.needs, state=state, working=working)
        return replace(division, needs=needs, compiled=True, measured=compiled.measure(1))

    found = guessed.compiled(2, HARDWARE["a100"].memory, compile_division)
    assert len(found.fitting) == len(others) and [one.sizes for one in found.too_large] == [first.sizes]
    assert [one.compiled for one in found.fitting] == [True, True, *[False] * (len(others) - 2)]
    assert 0 < found.fitting[0].seconds <= found.fitting[1].seconds
    assert found.fitting[0].needs.state == pytest.approx(others[0].needs.state, rel=0.5)


def test_where_nothing_is_estimated_to_fit_the_smallest_are_compiled() -> None:
    step = make_step(width=32, depth=1, batch=16)
    guessed = search([Variant(None, step.trace, step.inputs)], 2, 16, with_memory(HARDWARE["a100"], 1e4))
    assert not guessed.fitting
    needs = replace(guessed.too_large[0].needs, state=100, working=100)
    found = guessed.compiled(1, 1e4, lambda one: replace(one, needs=needs, compiled=True))
    assert len(found.fitting) == 1 and len(found.too_large) == len(guessed.too_large) - 1


def counts(**sizes: int) -> tuple[int, ...]:
    return tuple(sizes.get(axis, 1) for axis in AXES)


def test_collectives_cost_what_links_take() -> None:
    hardware = HARDWARE["h100"]
    inside = collective_seconds(Traffic("all-gather", FSDP, 8 << 30, 0), counts(fsdp=8), hardware)
    assert inside == pytest.approx((8 << 30) * 7 / 8 / 450e9, rel=0.01)
    across = collective_seconds(Traffic("all-reduce", FSDP, 8 << 30, 0), counts(fsdp=64), hardware)
    assert across == pytest.approx(2 * (8 << 30) * 63 / 64 / 50e9, rel=0.01)
    assert collective_seconds(Traffic("all-reduce", DATA, 1, 0), counts(fsdp=8), hardware) == 0


@pytest.mark.parametrize(
    "text, size", [("80GB", 80e9), ("40 gib", 40 * 2**30), ("16e9", 16e9), ("512MiB", 2**29)]
)
def test_sizes_of_memory(text: str, size: float) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "-3GB", "nan", "inf"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ConfigError, match="no size of memory"):
        parse_memory(text)


def test_unknown_hardware() -> None:
    with pytest.raises(ConfigError, match="h200") as caught:
        find_hardware("h2000")
    assert "did you mean" in str(caught.value)


# -- devices of a CPU -----------------------------------------------------------------------------------------------


def test_devices_of_a_cpu_are_measured() -> None:
    """Two of them have the same cores, so each has half of the memory and the rates are the machine's."""
    found = hardware_of(jax.devices()[:2])
    alone = calibrate(jax.devices()[:1])
    assert found.shared and found.memory == alone.memory / 2
    assert found.latency > 0 and alone.latency == 0
    assert 1e8 < found.products < 1e14 and 1e8 < found.link <= found.bandwidth < 1e13


def test_devices_of_a_cpu_meet_at_a_cost() -> None:
    """Whatever the group, all devices of the machine take part; gradients are summed in one, tensors one by one."""
    cpu = Hardware(1e11, 1e10, 1e10, 1e11, 1e11, 1 << 20, shared=True, latency=1e-3)
    pairs = collective_seconds(Traffic("all-reduce", TENSOR, 1000, 0), counts(data=4, tensor=2), cpu)
    assert pairs == pytest.approx(8 * (1e-3 + 2 * 1000 / 1e11))
    step = make_step(depth=4, batch=64)
    variants = [Variant(None, step.trace, step.inputs)]
    found = {one.sizes: one for one in search(variants, 8, 64, cpu).fitting}
    data, tensor = found[counts(data=8)], found[counts(tensor=8)]
    assert data.hidden == 0 and data.exposed < 3 * 8 * 1e-3 < tensor.exposed
    assert search(variants, 8, 64, cpu).fitting[0].sizes[AXES.index("tensor")] == 1


def test_gradients_that_a_cpu_sums_are_whole_beside_their_sums() -> None:
    step = make_step(width=512, depth=4, batch=64)
    program = step.trace()
    whole = 4 * sum(int(np.prod(one.shape)) for _, one in step.model.named_parameters())
    sizes = {str(axis): 1 for axis in AXES} | {"fsdp": 8}
    specs = step.inputs(ParallelOptions(fsdp=8), sizes)
    inputs = input_bits(program, specs)
    arguments = program.inputs[program.constants :]
    divided = {program.arrays[one].shape: bits for one, bits in zip(arguments, inputs) if any(bits)}
    needs = estimate(program, inputs, tuple(sizes[axis] for axis in AXES), divided, combined=True)
    assert needs.working == pytest.approx(2 * whole, rel=0.02)


def test_a_cpu_gathers_all_parameters_first() -> None:
    """Those for the backward pass lie beside the activations: eight devices of a CPU need the parameters once more."""
    step = make_step(width=256, depth=6, batch=8192)
    program, state = step.trace(), step.state
    whole = 4 * sum(leaf.size for leaf in state.params.values())
    working = {}
    for fsdp in (1, 8):
        sizes = {str(axis): 1 for axis in AXES} | {"data": 8 // fsdp, "fsdp": fsdp}
        specs = step.inputs(ParallelOptions(fsdp=fsdp), sizes)
        bits, count = input_bits(program, specs), tuple(sizes[axis] for axis in AXES)
        working[fsdp] = [estimate(program, bits, count, combined=on).working for on in (False, True)]
    assert working[1][0] == pytest.approx(working[8][0], rel=0.05)
    assert 0.7 * whole < working[8][1] - working[1][1] < 1.3 * whole

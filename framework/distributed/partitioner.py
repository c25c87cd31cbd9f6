"""Where the arrays of a training run lie: batches are divided over a mesh of devices, the state by layouts."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import ArrayLike

from framework.core.device import Device
from framework.core.errors import ConfigError
from framework.core.types import PyTree
from framework.distributed.axes_check import check_experts, find_blocks
from framework.distributed.experts import ExpertParallel
from framework.distributed.layout import parameter_specs, state_specs, without_axis
from framework.distributed.mesh import BATCH_AXES, ParallelOptions, make_mesh
from framework.distributed.one_f_one_b import OneForwardOneBackward
from framework.distributed.pipeline import GPipe
from framework.distributed.ring import RingAttention
from framework.distributed.scope import StepScope
from framework.nn.functional.tables import BUCKETS, LARGE, collect_rows, deal_rows, table_shape
from framework.nn.layer import Layer, Parameter
from framework.nn.lookups import Table
from framework.nn.mesh_scope import Gathered

Tree = TypeVar("Tree")
_BLOCK = 1 << 20  # numbers that are drawn at once


@dataclass(frozen=True)
class StepShardings:
    """Where the arrays of a training step lie.

    Attributes:
        mesh: The devices.
        state, log: What it leaves.
        gathered: Where each parameter that `fsdp` divides is computed with: whole, so that activations stay divided by
            samples alone.
        gradients: None: as comes.
        scope: How layers compute; None: as they are written.
    """

    mesh: Mesh
    state: PyTree
    log: NamedSharding
    gathered: dict[str, Gathered]
    gradients: dict[str, NamedSharding] | None
    scope: StepScope | None


class Partitioner:
    """Divides batches, parameters and the state of an optimizer over a mesh; of one device, nothing.

    Args:
        devices: Those of the mesh; None takes all, of all processes.
        options: The axes of the mesh and the rules; by default all devices divide the batch and have all parameters.
    """

    def __init__(
        self, devices: Sequence[Device] | None = None, options: ParallelOptions | None = None
    ) -> None:
        self.options = options = options or ParallelOptions()
        self.mesh = make_mesh(options, devices)
        self.devices = tuple(self.mesh.devices.flat)
        self.sizes = dict(zip(self.mesh.axis_names, self.mesh.devices.shape))
        self.replicated = self.sharding(PartitionSpec())
        self.batch = self.sharding(PartitionSpec(BATCH_AXES))
        self.several_processes = len({device.process_index for device in self.devices}) > 1
        self._parameters: dict[str, PartitionSpec] = {}
        self._tables: dict[str, int] = {}  # rows of the tables that are dealt out
        self.dealt = self.sharding(PartitionSpec(None, self.mesh.axis_names))
        self._blocks: tuple[str, ...] = ()

    def sharding(self, spec: PartitionSpec) -> NamedSharding:
        """A sharding over this mesh."""
        return NamedSharding(self.mesh, spec)

    # -- batches ----------------------------------------------------------------------------------------------------

    @property
    def _batch_parts(self) -> int:
        return math.prod(self.sizes[axis] for axis in BATCH_AXES)

    @property
    def _micro_batches(self) -> int:
        """Into how many a batch is cut; 1 where there is no pipeline."""
        stages = self.sizes["pipeline"]
        return 1 if stages == 1 else self.options.micro_batches or 2 * stages

    def check_batch_size(self, count: int, *, last: bool = False) -> None:
        """Raises: ConfigError, where a batch of `count` samples, or the last one of an epoch, cannot be divided among
        the devices."""
        micro = self._micro_batches
        if count % (self._batch_parts * micro):
            pipeline = f" and {micro} micro batches" if micro > 1 else ""
            raise ConfigError(
                f"the {'last batch of an epoch' if last else 'batch'} cannot be divided among the devices",
                where="the training data" if last else "data.train.batch_size",
                received=f"{count} samples for {self._batch_parts} devices{pipeline}",
                allowed=f"a multiple of {self._batch_parts * micro}",
                fix="drop_last=True, as `oar train` has it" if last else None,
            )

    def divides(self, count: int) -> bool:
        """Whether a batch of `count` samples can be divided among the devices."""
        return count % self._batch_parts == 0

    def local_rows(self, count: int) -> list[int] | None:
        """Which samples of a batch of `count` this process reads: those of its devices. None: all of them."""
        if not self.several_processes:
            return None
        slices = self.batch.addressable_devices_indices_map((count,)).values()
        return sorted({row for one in slices if one for row in range(*one[0].indices(count))})

    def place_batch(self, arrays: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
        """Arrays of a whole batch, which each process has: divided where their number allows it, else replicated."""
        placed = {}
        for name, array in arrays.items():
            sharding = self.batch if self.divides(len(array)) else self.replicated
            placed[name] = self._put(array, sharding)
        return placed

    # -- parameters and state -----------------------------------------------------------------------------------------

    def set_model(self, model: Layer) -> None:
        """Lay out the parameters of this model. Raises: ConfigError, as `parameter_specs` does."""
        check_experts(model, self.sizes)
        self._blocks = find_blocks(model, self.options)
        self._parameters = parameter_specs(model, self.options, self.sizes, self._blocks)
        tables = {
            name: parameter for name, parameter in model.named_parameters() if isinstance(parameter, Table)
        }
        self._tables = {name: one.shape[0] for name, one in tables.items() if len(self.devices) > 1}
        large = next((name for name, one in tables.items() if one.shape[0] >= LARGE), None)
        if large is not None and BUCKETS % len(self.devices):
            raise ConfigError(
                "a table of 2**31 rows or more is dealt out over a power of two of devices",
                where=large,
                received=f"{len(self.devices)} devices",
                allowed=f"a power of two up to {BUCKETS}",
            )

    def scope(self, training: bool = True) -> StepScope | None:
        """How layers compute on this mesh; None: as they are written. In evaluation blocks run one after the other."""
        sizes, is_pipeline = self.sizes, training and self.sizes["pipeline"] > 1
        if sizes["sequence"] == sizes["expert"] == sizes["tensor"] == 1 and not is_pipeline:
            return None
        turns = is_pipeline and self.options.schedule == "1f1b"
        return StepScope(
            RingAttention(self.mesh) if sizes["sequence"] > 1 else None,
            ExpertParallel(self.mesh) if sizes["expert"] > 1 else None,
            GPipe(self.mesh, self._micro_batches) if is_pipeline and not turns else None,
            OneForwardOneBackward(self.mesh, self._micro_batches, self._blocks) if turns else None,
            sizes["tensor"],
        )

    def parameter_specs(self) -> dict[str, PartitionSpec]:
        """The axes of each parameter of the model by name, as they lie between two steps."""
        if self.options.stage == 3:
            return dict(self._parameters)
        return {name: without_axis(spec, "fsdp") for name, spec in self._parameters.items()}

    def init_arrays(self, model: Layer) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        """(parameters, buffers) of a model by name, for `build`. The model stays as it is.

        Of one device they are the model's own. Of several they are copies on the mesh: parameters that were not read
        yet are drawn one after the other, block by block, of which each process keeps what its devices have.
        """
        buffers = dict(model.named_buffers())
        if len(self.devices) == 1:
            return {name: parameter.value for name, parameter in model.named_parameters()}, buffers
        specs, params = self.parameter_specs(), {}
        for name, parameter in model.named_parameters():
            sharding = self.sharding(specs.get(name, PartitionSpec()))
            if parameter._value is None:
                rng = copy.deepcopy(parameter.rng)  # the model draws the same when it is read itself
                if name not in self._tables:
                    params[name] = _draw(parameter, rng, sharding)
                    continue
                value = parameter.initializer(rng, parameter.shape).astype(parameter.dtype)
            else:
                value = parameter.value
            if name in self._tables:
                params[name] = self._put(
                    deal_rows(np.asarray(value), len(self.devices)), self.dealt, copy=True
                )
            else:
                params[name] = self._put(value, sharding, copy=True)
        return params, self.place(buffers, copy=True)

    def shardings(self, tree: Tree, params: str = "params") -> Tree:
        """The sharding of each leaf of a state (arrays or their shapes): what is kept for a parameter lies as the
        parameter does, in all but its leading dimensions; the rest is whole on every device.

        Args:
            params: The field of the parameters themselves, which stage 1 and 2 leave whole.
        """
        specs = state_specs(tree, self._parameters, self.parameter_specs(), self.sizes, params)

        def choose(path: tuple[object, ...], leaf: ArrayLike, spec: PartitionSpec) -> NamedSharding:
            if self._table(path) is not None:
                return self.dealt if np.ndim(leaf) > 0 else self.replicated
            return self.sharding(spec)

        return jax.tree_util.tree_map_with_path(choose, tree, specs)

    def build(self, make: Callable[..., Tree], *arguments: PyTree) -> Tree:
        """What `make` makes of the arrays of `init_arrays`, laid out by `shardings`, and on no device whole on the way.
        It shares no memory with the model's. On several devices the arguments are donated."""
        if len(self.devices) == 1:
            return self.place(make(*arguments), copy=True)
        shapes = jax.eval_shape(make, *arguments)
        # The arrays of `init_arrays` are copies, so what `make` leaves as it is needs no second one.
        donated = tuple(range(len(arguments)))
        with warnings.catch_warnings():  # what becomes of another type or shape cannot be taken over
            warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
            return jax.jit(make, out_shardings=self.shardings(shapes), donate_argnums=donated)(*arguments)

    def step_shardings(self, state: PyTree, trained: Sequence[str]) -> StepShardings | None:
        """Of a training step of this state; None where there is one device."""
        if len(self.devices) == 1:
            return None
        gradients = None
        if self.options.stage == 2:
            gradients = {name: self.sharding(self._parameters[name]) for name in trained}
        gathered = {
            name: Gathered(self.sharding(without_axis(spec, "fsdp")), self.sharding(spec))
            for name, spec in self.parameter_specs().items()
            if "fsdp" in spec and name not in self._tables
        }
        return StepShardings(
            self.mesh, self.shardings(state), self.replicated, gathered, gradients, self.scope()
        )

    def place(self, tree: Tree, *, copy: bool = False) -> Tree:
        """A pytree of arrays on the mesh, by `shardings`. Tables are given whole.

        Args:
            copy: The arrays share no memory with those given, which stay when these are donated.
        """

        def deal(path: tuple[object, ...], leaf: ArrayLike) -> ArrayLike:
            rows = self._table(path)
            return (
                leaf if rows is None or np.ndim(leaf) == 0 else deal_rows(np.asarray(leaf), len(self.devices))
            )

        if self._tables:
            tree = jax.tree_util.tree_map_with_path(deal, tree)
        return jax.tree.map(lambda leaf, where: self._put(leaf, where, copy=copy), tree, self.shardings(tree))

    def _table(self, path: tuple[object, ...]) -> int | None:
        """The rows of the table that a leaf of this path lies beside; None of all else."""
        return next((self._tables[name] for name in path_names(path) if name in self._tables), None)

    @property
    def deals_tables(self) -> bool:
        """Whether rows of tables are dealt out to the devices: their arrays then have another shape here."""
        return bool(self._tables)

    def whole_shapes(self, tree: Tree) -> Tree:
        """A pytree of arrays of a state as shapes that do not depend on the mesh: those that `fetch` gives."""

        def whole(path: tuple[object, ...], leaf: jax.Array) -> jax.ShapeDtypeStruct:
            rows = self._table(path)
            shape = leaf.shape if rows is None or leaf.ndim == 0 else (rows, *leaf.shape[2:])
            return jax.ShapeDtypeStruct(shape, leaf.dtype)

        return jax.tree_util.tree_map_with_path(whole, tree)

    def dealt_shapes(self, tree: Tree) -> Tree:
        """The opposite of `whole_shapes`: the shapes of a state whose tables are dealt out to the devices."""

        def deal(path: tuple[object, ...], leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
            rows = self._table(path)
            if rows is None or not leaf.shape:
                return leaf
            return jax.ShapeDtypeStruct((*table_shape(rows, len(self.devices)), *leaf.shape[1:]), leaf.dtype)

        return jax.tree_util.tree_map_with_path(deal, tree) if self._tables else tree

    def structs(self, tree: Tree) -> Tree:
        """Shapes, types and shardings of the arrays of a pytree, with which a checkpoint is read onto this mesh."""
        return jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), tree)

    def is_divided(self, tree: PyTree) -> bool:
        """Whether no device has all of a pytree of arrays."""
        leaves = (leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array))
        return any(not leaf.sharding.is_fully_replicated for leaf in leaves)

    def fetch(self, tree: Tree) -> Tree:
        """A pytree of arrays as each process can read them: those that lie on several processes are gathered, one after
        the other, as numpy arrays; tables are collected, in the order of their rows. All processes call it."""
        if not self.several_processes and not self._tables:
            return tree

        def gather(path: tuple[object, ...], leaf: jax.Array) -> jax.Array | np.ndarray:
            rows = self._table(path)
            if rows is not None and np.ndim(leaf) > 0:
                return collect_rows(np.asarray(read(leaf)), rows)
            return read(leaf)

        def read(leaf: jax.Array) -> jax.Array | np.ndarray:
            if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable:
                return leaf
            if leaf.is_fully_replicated:
                return np.asarray(leaf)
            return np.asarray(multihost_utils.process_allgather(leaf, tiled=True))

        return jax.tree_util.tree_map_with_path(gather, tree)

    def _put(self, leaf: ArrayLike, sharding: NamedSharding, *, copy: bool = False) -> jax.Array:
        if not self.several_processes:
            # `may_alias=False` of device_put still aliases the part on the device where an array is already.
            return jax.device_put(jnp.array(leaf, copy=True) if copy else leaf, sharding)
        array = np.asarray(leaf)
        return jax.make_array_from_callback(
            array.shape, sharding, lambda index: np.array(array[index], copy=True)
        )


def _draw(parameter: Parameter, rng: np.random.Generator, sharding: NamedSharding) -> jax.Array:
    """A parameter that was not read yet, as its initializer draws it. In memory there are a block and the shares of the
    devices of this process."""
    indices = {d: one or () for d, one in sharding.addressable_devices_indices_map(parameter.shape).items()}
    shares: dict[tuple[tuple[int, int, int], ...], np.ndarray] = {}
    for index in indices.values():
        ranges = _ranges(index, parameter.shape)
        shares.setdefault(ranges, np.empty([stop - start for start, stop, _ in ranges], parameter.dtype))
    first = 0
    for block in parameter.initializer.blocks(rng, parameter.shape, _BLOCK):
        for ranges, share in shares.items():
            if not ranges:
                share[...] = block
                continue
            (start, stop, _), columns = ranges[0], tuple(slice(*one) for one in ranges[1:])
            low, high = max(start, first), min(stop, first + len(block))
            if low < high:
                share[low - start : high - start] = block[(slice(low - first, high - first), *columns)]
        first += len(block) if block.ndim else 0
    arrays = [  # copies, as training donates them
        jax.device_put(shares[_ranges(index, parameter.shape)], device, may_alias=False)
        for device, index in indices.items()
    ]
    return jax.make_array_from_single_device_arrays(parameter.shape, sharding, arrays)


def _ranges(index: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """The slices of a share as numbers."""
    return tuple(one.indices(size) for one, size in zip(index, shape))


def path_names(path: tuple[object, ...]) -> list[str]:
    """The keys of a path in a pytree, as texts."""
    return [str(getattr(key, "key", getattr(key, "name", ""))) for key in path]

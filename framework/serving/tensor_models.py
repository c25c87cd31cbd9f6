"""The programs of served models as functions of tensors, and requests of several clients in one run."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from framework.core.errors import ShapeError, did_you_mean
from framework.export import Artifact
from framework.inference.engine import Engine, check_inputs
from framework.serving.batching import Batcher, Bucket
from framework.serving.errors import BadRequestError, UnknownModelError
from framework.serving.models import ModelStore, ServedModel

Arrays = Mapping[str, np.ndarray]
VERSION = "1"
"""The only one of each model, where a protocol has several."""


@dataclass(frozen=True)
class TensorModel:
    """One program of a served model.

    Attributes:
        name: The model's, or of a stage of a pipeline <model>.<stage>.
    """

    name: str
    model: ServedModel
    engine: Engine

    @property
    def shares_batches(self) -> bool:
        """Whether the rows of all inputs and outputs are samples, so that those of several requests may run together:
        their first axes are one size of its own, which stands nowhere else."""
        specs = (*self.engine.inputs.values(), *self.engine.outputs.values())
        firsts = {spec.shape[0] if spec.shape else 1 for spec in specs}
        (first, *others) = firsts
        return (
            not others
            and isinstance(first, str)
            and first.isidentifier()
            and not any(first in str(size) for spec in specs for size in spec.shape[1:])
        )

    def bucket(self, inputs: Arrays) -> Bucket[Arrays, Arrays]:
        """What these inputs can run together with: those of their shapes, as many as fill a batch of the model."""
        shapes = tuple((name, inputs[name].shape) for name in sorted(inputs))
        rows = next(iter(inputs.values())).shape[0] if self.shares_batches else 0
        size = max(1, self.model.version.batch_size // rows) if rows else 1
        return Bucket((id(self.engine), shapes), functools.partial(run_batch, self.engine), size)

    async def infer(self, inputs: Arrays, deadline: float) -> Arrays:
        """The outputs by name, in a batch with the rows of other clients.

        Args:
            deadline: As `ServedModel.deadline` gives it.

        Raises:
            ShapeError: the program does not take these shapes. DeadlineError: they were not there in time.
        """
        arrays = check_inputs(inputs, self.engine.inputs)
        if empty := [name for name, array in arrays.items() if not array.size]:
            raise ShapeError("an input has no values", where=empty[0], received=arrays[empty[0]].shape)
        batcher = cast("Batcher[Arrays, Arrays]", self.model.batcher)  # what it runs is the bucket's matter
        future = batcher.submit(self.bucket(arrays), arrays, deadline)
        return await self.model.within(asyncio.wrap_future(future), deadline)


def run_batch(engine: Engine, requests: Sequence[Arrays]) -> Iterator[Arrays]:
    """The outputs of requests of one shape, whose rows run together.

    An engine that compiles each shape gets 1, 2, 4, … requests at a time, so that it compiles few: the last one is
    repeated until they are, and what comes of that is left out.
    """
    if len(requests) == 1:
        yield engine(requests[0])
        return
    count = len(requests) if engine.takes_any_shape else 1 << (len(requests) - 1).bit_length()
    filled = [*requests, *[requests[-1]] * (count - len(requests))]
    outputs = engine({name: np.concatenate([one[name] for one in filled]) for name in requests[0]})
    rows = len(next(iter(requests[0].values())))
    for index in range(len(requests)):
        yield {name: array[index * rows : (index + 1) * rows] for name, array in outputs.items()}


def find_programs(model: ServedModel) -> dict[str, Artifact]:
    """The artifacts of a model that are one program each, by their names in addresses: its own, or its stages'."""
    return dict(_walk(model.name, model.version.artifact))


def _walk(name: str, artifact: Artifact) -> Iterator[tuple[str, Artifact]]:
    if artifact.programs:
        yield name, artifact
    for stage, child in artifact.stages.items():
        yield from _walk(f"{name}.{stage}", child)


def find_served(store: ModelStore, name: str) -> ServedModel:
    """The model that has a name, or whose stage has. Raises: UnknownModelError, where none has."""
    prefix = name
    while prefix not in store.models and "." in prefix:
        prefix = prefix.rpartition(".")[0]
    return store.get(prefix if prefix in store.models else name)


def find_tensor_model(store: ModelStore, name: str) -> TensorModel:
    """The program of a name; it is opened where it is not yet, which takes a while.

    Raises:
        UnknownModelError: there is none. BadRequestError: it is a pipeline of several. RetryError: not ready yet.
    """
    model = find_served(store, name)
    programs = find_programs(model)
    if name not in programs:
        if name == model.name:
            raise BadRequestError(
                "this model is a pipeline, and the protocol has tensors of one program",
                received=name,
                allowed=", ".join(programs) or "none of its stages",
                fix=f"name a stage, or POST files to /v1/models/{name}:predict",
            )
        raise UnknownModelError(
            "the model has no stage of this name",
            received=name[:100],
            allowed=", ".join(programs),
            fix=did_you_mean(name[:100], programs),
        )
    return TensorModel(name, model, model.version.runtime.open(programs[name]))


def platform_of(engine: Engine) -> str:
    """What the protocol calls the kind of a program: <maker>_<format>."""
    return "onnx_onnxv1" if engine.takes_any_shape else "jax_stablehlo"


def check_version(name: str, version: str) -> None:
    """Raises: UnknownModelError, where it is another than the only one."""
    if version != VERSION:
        raise UnknownModelError(
            "the model has no such version", received=f"{name} {version}"[:100], allowed=VERSION
        )

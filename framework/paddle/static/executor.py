"""Executor: compiles a recorded program for each feed signature and fetch list, and runs it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeAlias

import jax
import numpy as np

from framework.core.errors import InputError
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.lod_tensor import LoDTensor
from framework.paddle._kernel.mode import mode, recorder_scope
from framework.paddle._kernel.symbol import Symbol
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.jit.program import trace
from framework.paddle.jit.recording import shape_and_type
from framework.paddle.jit.to_static import explained
from framework.paddle.legacy_operators import Levels
from framework.paddle.static.deferred import looks_at_values, settings_of
from framework.paddle.static.program import (
    Op,
    Program,
    StepOp,
    Values,
    Variable,
    default_main_program,
)
from framework.paddle.static.scope import Scope, global_scope
from framework.paddle.static.state import state
from framework.paddle.static.variable import value_of

log = logging.getLogger("oar")


class Batches(Protocol):
    """A dataset of paddle.distributed."""

    def batches(self) -> Iterator[dict[str, np.ndarray]]: ...


class FetchHandler(Protocol):
    """What a program does with what is fetched."""

    def handler(self, res_dict: Mapping[str, np.ndarray | Tensor | LoDTensor], /) -> None: ...


Fetched: TypeAlias = "Tensor | str | Op | Sequence[Fetched] | None"


class BuildStrategy:
    """Accepted as it is: XLA decides on fusion and order."""

    class ReduceStrategy:
        AllReduce, Reduce, _NoReduce = 0, 1, 2

    class GradientScaleStrategy:
        CoeffNumDevice, One, Customized = 0, 1, 2

    def __getattr__(self, name: str) -> bool:
        if name.startswith("__"):
            raise AttributeError(name)
        return False


class ExecutionStrategy(BuildStrategy):
    """Accepted as it is."""


class CompiledProgram:
    """A program with a build strategy, which changes nothing: every program is compiled."""

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise ArgumentTypeError(
                "CompiledProgram takes a Program", received=type(program_or_graph).__name__
            )
        self._program = program_or_graph

    def with_data_parallel(self, *args: object, **kwargs: object) -> CompiledProgram:
        return self


class Executor:
    """Runs programs; parameters, statistics and the optimizer's state live in their Tensors."""

    def __init__(self, place: object = None) -> None:
        self.place = place

    def close(self) -> None:
        """Nothing is held."""

    def run(
        self,
        program: Program | CompiledProgram | None = None,
        feed: Mapping[str, TensorLike] | Sequence[Mapping[str, TensorLike]] | None = None,
        fetch_list: Fetched = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        use_prune: bool = False,
    ) -> list[np.ndarray | Tensor | LoDTensor]:
        """Run a program on the fed arrays; returns what is named in `fetch_list` (variables or names). What has lengths
        of sequences comes as a LoDTensor, by `return_numpy=False` alone.

        With `use_prune` only what is fetched is computed, and the steps of optimizers; steps in `fetch_list`, as
        `minimize` returns them, are the only ones that run then.

        Raises:
            InputError: a fed array does not fit its variable, or `fetch_list` names what is not there.
            RuntimeError: what is fetched has lengths, and numpy's arrays are asked for.
            ArgumentTypeError: `fetch_list` holds something else than variables and names.
        """
        if isinstance(program, CompiledProgram):
            program = program._program
        program = default_main_program() if program is None else program
        steps, variables = _split_steps(fetch_list)
        fetches = _fetched(program, variables)
        feed = _merged(feed)
        if use_prune or steps:
            program, feed = self._prune_cached(program, feed, fetches, steps)
        fed = {name: value for read in program.readers for name, value in read().items()} | feed
        fed = _write_persistent(program, fed)
        computes = any(op.computes for op in program.ops)
        if computes and (unknown := sorted(set(fed) - set(program.data))):
            log.warning("the program has no inputs %s: what is fed to them is not used", ", ".join(unknown))
        _exchange(program, fed, scope or global_scope())
        names = [name for name in program.data if name in fed]
        with recorder_scope(None):
            for beginning in program.beginnings.values():
                beginning.run()
            tensors = [wrap(_given(program.data[name], fed[name])) for name in names]
            for tensor, name in zip(tensors, names, strict=True):
                tensor.stop_gradient = program.data[name].stop_gradient
            lengths = {name: _lengths_of(fed[name]) for name in names}
            found, levels = _run(program, names, tensors, fetches, {n: of for n, of in lengths.items() if of})
            if program.server_run is not None:
                program.server_run.after_step(program)
            return [_returned(t, of, return_numpy) for t, of in zip(found, levels, strict=True)]

    def _prune_cached(
        self,
        program: Program,
        feed: dict[str, TensorLike],
        fetches: Sequence[Tensor],
        steps: Sequence[Op],
    ) -> tuple[Program, dict[str, TensorLike]]:
        """The program without what is not needed, which is kept, and what is fed to it."""
        key = ("pruned", len(program.ops), *sorted(feed), *map(id, (*fetches, *steps)))
        if key not in program.compiled:
            pruned = self._prune_program(program, feed, list(fetches), list(steps))
            program.compiled[key] = [pruned, list(fetches)]
        pruned = program.compiled[key][0]
        dropped = set(program.data) - set(pruned.data)
        return pruned, {name: value for name, value in feed.items() if name not in dropped}

    def _prune_program(
        self,
        program: Program,
        feed: Mapping[str, TensorLike],
        fetch_list: list[Tensor],
        optimize_ops: list[Op],
    ) -> Program:
        """The program without what neither `fetch_list` nor these steps of optimizers, all without any, need."""
        steps = optimize_ops or [op for op in program.ops if isinstance(op, StepOp)]
        return program._prune_with_input(list(feed), [*fetch_list, *steps])

    def train_from_dataset(
        self,
        program: Program | CompiledProgram | None = None,
        dataset: Batches | None = None,
        scope: object = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Fetched = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """Run a program on all batches of a dataset; every `print_period` of them `fetch_list` is printed.

        Workers of a program for parameter servers may have different numbers of batches.

        Raises:
            InputError: there is no dataset, or `fetch_info` does not name what is fetched.
        """
        program = program._program if isinstance(program, CompiledProgram) else program
        program = default_main_program() if program is None else program
        if dataset is None:
            raise InputError("train_from_dataset needs a dataset", where="Executor.train_from_dataset")
        fetches = _flat(fetch_list)
        names = list(fetch_info or [one if isinstance(one, str) else one.name for one in fetches])
        if len(names) != len(fetches):
            raise InputError(
                "fetch_info names what is fetched", received=f"{len(names)} names", allowed=f"{len(fetches)}"
            )
        server_run, program.server_run = program.server_run, None  # averaged here, where data may end
        several = jax.process_count() > 1 and server_run is not None
        try:
            for step, batch in enumerate(dataset.batches(), 1):
                values = self.run(program, feed=batch, fetch_list=fetches)
                if server_run is not None and several and step % server_run.interval == 0:
                    server_run.average(program, True)
                if fetches and step % print_period == 0:
                    sized = [f"{name}[{np.size(value)}]:{value}" for name, value in zip(names, values)]
                    now = datetime.now().isoformat(" ", "seconds")
                    print(", ".join([f"time: [{now}]", f"batch: [{step}]", *sized]), flush=True)
                    if fetch_handler is not None:
                        fetch_handler.handler(dict(zip(names, values)))
            while server_run is not None and several and server_run.average(program, False):
                continue
        finally:
            program.server_run = server_run

    def infer_from_dataset(
        self,
        program: Program | CompiledProgram | None = None,
        dataset: Batches | None = None,
        scope: object = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Fetched = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: FetchHandler | None = None,
    ) -> None:
        """As `train_from_dataset` for a program without an optimizer."""
        self.train_from_dataset(
            program, dataset, scope, thread, debug, fetch_list, fetch_info, print_period, fetch_handler
        )


def _fetched(program: Program, fetch_list: Fetched) -> list[Tensor]:
    if fetch_list is None:
        return []
    chosen = _flat(fetch_list)
    named = {t.name: t for t in program.list_vars()} if any(isinstance(v, str) for v in chosen) else {}
    names = [v for v in chosen if isinstance(v, str) and v not in named]
    named |= {name: one for name in names if (one := program.find_gradient(name)) is not None}
    missing = [name for name in names if name not in named]
    if missing:
        raise InputError("the program has no such variables", received=", ".join(missing))
    return [named[v] if isinstance(v, str) else v for v in chosen]


def _split_steps(fetch_list: Fetched) -> tuple[list[Op], Fetched]:
    """The steps of optimizers in what is fetched, and the rest. `minimize` returns ([step], [(parameter, gradient)]).

    Raises:
        TypeError: an operation is no step of an optimizer.
    """
    if not isinstance(fetch_list, list | tuple):
        return _split_steps([fetch_list]) if isinstance(fetch_list, Op) else ([], fetch_list)
    steps: list[Op] = []
    variables: list[Fetched] = []
    for item in fetch_list:
        entries = [item]
        if isinstance(item, list | tuple):
            minimized = len(item) == 2 and isinstance(item[0], list) and _steps_of(item[0])
            entries = list(item[0] if minimized else item)  # type: ignore[arg-type]  # without the gradients
        steps += _steps_of(entries)
        variables.append([one for one in entries if not isinstance(one, Op)])
    if any(not isinstance(one, StepOp) for one in steps):
        raise TypeError("The operator in fetch_list is not an optimize_op")
    return steps, variables


def _steps_of(entries: Sequence[Fetched]) -> list[Op]:
    return [one for one in entries if isinstance(one, Op)]


def _flat(fetches: Fetched) -> list[Tensor | str]:
    """The variables and names of nested lists in their order.

    Raises:
        ArgumentTypeError: something else is among them.
    """
    if isinstance(fetches, Tensor | str):
        return [fetches]
    if isinstance(fetches, list | tuple):
        return [item for fetch in fetches for item in _flat(fetch)]
    if fetches is not None:
        raise ArgumentTypeError("fetch_list holds variables and their names", received=f"{fetches!r:.60}")
    return []


def _write_persistent(program: Program, fed: Mapping[str, TensorLike]) -> dict[str, TensorLike]:
    """What is fed to inputs; what is fed to a Tensor that stays between runs becomes its value, as in Paddle."""
    others = set(fed) - set(program.data)
    persistent = {t.name: t for t in program.list_vars() if t.name in others} if others else {}
    for name, tensor in persistent.items():
        if isinstance(tensor._value, Symbol):
            continue
        array = np.asarray(fed[name])
        if array.shape != tuple(tensor.shape):
            raise InputError(
                "what is fed has another shape than the variable",
                where=name,
                received=list(array.shape),
                allowed=list(tensor.shape),
            )
        tensor._value = as_array(array, tensor.dtype)
        others.discard(name)
    return {name: value for name, value in fed.items() if name in program.data or name in others}


def _merged(feed: Mapping[str, TensorLike] | Sequence[Mapping[str, TensorLike]] | None) -> dict[str, Any]:
    """The fed arrays by name; a DataLoader gives a list of one such dict."""
    if isinstance(feed, list | tuple):
        return {name: value for part in feed for name, value in part.items()}
    return dict(feed) if isinstance(feed, Mapping) else {}


def _exchange(program: Program, fed: dict[str, Any], scope: Scope) -> None:
    """Take the inputs that are not fed from the scope, and keep those there that stay between runs."""
    for name, variable in program.data.items():
        if name not in fed and name in scope.values and scope.values[name]._is_initialized():
            fed[name] = scope.values[name]
        elif name in fed and variable.persistable:
            scope.values.setdefault(name, LoDTensor()).set(np.asarray(fed[name]), None)


def _given(variable: Variable, value: TensorLike) -> jax.Array:
    array = as_array(value)
    want = list(variable.shape)
    fits = len(want) == array.ndim and all(w in (-1, s) for w, s in zip(want, array.shape, strict=True))
    if not fits:  # Paddle's executor runs the program on the shapes that are fed
        log.warning("%s is %s, and %s is fed: the program runs on it", variable.name, want, list(array.shape))
    return array if array.dtype == variable.dtype.numpy else as_array(array, variable.dtype)


def _lengths_of(value: object) -> Levels:
    """The lengths of the sequences of what is fed."""
    return value.recursive_sequence_lengths() if isinstance(value, LoDTensor) else ()


def _returned(tensor: Tensor, levels: Levels, return_numpy: bool) -> np.ndarray | Tensor | LoDTensor:
    """What is fetched, as the user asks for it. Raises: RuntimeError: an array cannot have its lengths."""
    if not levels:
        return np.asarray(tensor._value) if return_numpy else tensor
    if return_numpy:
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray. "
            "Please set the parameter 'return_numpy' as 'False' to return LoDTensor itself directly."
        )
    result = LoDTensor()
    result.set(np.asarray(tensor._value), None)
    result.set_recursive_sequence_lengths(levels)
    return result


def _run(
    program: Program,
    names: Sequence[str],
    tensors: list[Tensor],
    fetches: Sequence[Tensor],
    lengths: Mapping[str, Levels],
) -> tuple[list[Tensor], Sequence[Levels]]:
    """What is fetched, and the lengths of its sequences."""
    fed = Values({id(program.data[n]): t for n, t in zip(names, tensors, strict=True)})
    fed.lengths = {id(program.data[name]): levels for name, levels in lengths.items()}
    fed.settings = settings_of(program, fed)
    fetched_lengths: list[Levels] = [()] * len(fetches)

    def call() -> list[Tensor]:
        values = Values(fed)
        program.replay(values)
        fetched_lengths[:] = [values.lengths.get(id(fetch), ()) for fetch in fetches]
        return [_result(value_of(fetch, values)) for fetch in fetches]

    key = (
        (len(program.ops), state.changes),
        tuple(names),
        tuple([id(fetch) for fetch in fetches]),
        tuple([(*shape_and_type(t._value), t.stop_gradient) for t in tensors]),
        tuple([(key, *np.shape(value), *value.ravel().tolist()) for key, value in fed.settings.items()]),
        repr(lengths),
    )
    known = program.compiled.setdefault(key, [])
    with_lengths = program.fetched_lengths
    enabled, mode.grad_enabled = mode.grad_enabled, True
    try:
        for compiled in known:
            found = compiled.fits(tensors)
            if found is not None:
                return compiled(found, tensors), with_lengths.get(key, fetched_lengths)
        if not fetches and not any(op.computes for op in program.ops):
            return [], []
        with explained("Executor.run"):
            if looks_at_values(program):
                return call(), fetched_lengths
            compiled = trace(call, tensors, (), known[-1].slots if known else ())
        known.append(compiled)
        if any(fetched_lengths):
            with_lengths[key] = fetched_lengths
        found = compiled.fits(tensors)
        assert found is not None
        return compiled(found, tensors), fetched_lengths
    finally:
        mode.grad_enabled = enabled


def _result(tensor: Tensor) -> Tensor:
    """Without a history: what is fetched is not gone back from."""
    return wrap(tensor._value)

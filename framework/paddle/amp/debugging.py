"""paddle.amp.debugging: looking for NaN and Inf, and counting operations by type."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from framework.core.errors import ForeignNameError
from framework.paddle._kernel.dispatch import Compiled
from framework.paddle._kernel.mode import _route, mode
from framework.paddle._kernel.random import default_generator
from framework.paddle._kernel.tensor import Tensor, wrap


class DebugMode(enum.Enum):
    """What a checker of Tensors looks for, and whether it stops."""

    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


class TensorCheckerConfig:
    """What `enable_tensor_checker` checks: operations (all, those in `checked_op_list`, all but `skipped_op_list`), and
    in which steps (`debug_step` = [first, end]). `initial_seed` is that of random numbers when it was made."""

    current_step_id = 0

    def __init__(
        self,
        enable: bool,
        debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
        output_dir: str | None = None,
        checked_op_list: Sequence[str] | None = None,
        skipped_op_list: Sequence[str] | None = None,
        debug_step: Sequence[int] | None = None,
        stack_height_limit: int = 1,
    ) -> None:
        self.enable, self.debug_mode, self.output_dir = enable, debug_mode, output_dir
        self.checked_op_list, self.skipped_op_list = checked_op_list, skipped_op_list
        self.debug_step, self.stack_height_limit = debug_step, stack_height_limit
        self.seed = self.initial_seed = default_generator.initial_seed()
        self.start_step: int | None = None
        self.end_step: int | None = None
        if debug_step is not None:
            first, end = debug_step
            assert end > first, f"TensorCheckerConfig: debug_step is [first, end], received {debug_step}"
            self.start_step, self.end_step = max(first, 0), end

    def update_and_check_step_id(self) -> bool:
        """Whether this step is checked."""
        if self.enable and self.start_step is not None and self.end_step is not None:
            step = TensorCheckerConfig.current_step_id
            TensorCheckerConfig.current_step_id += 1
            return self.start_step <= step < self.end_step
        return self.enable

    def start_check_nan_inf(self) -> None:
        if self.enable:
            _set_watch("checker", self._check)

    def stop_check_nan_inf(self) -> None:
        _set_watch("checker", None)

    def _check(self, compiled: Compiled, args: Sequence[object]) -> None:
        name = compiled.name
        if self.checked_op_list is not None and name not in self.checked_op_list:
            return
        if self.skipped_op_list is not None and name in self.skipped_op_list:
            return
        for place, arg in enumerate(args):
            if isinstance(arg, Tensor):
                check_numerics(arg, name, f"input {place}", self.debug_mode)


Cast = Callable[[Compiled, Sequence[Any]], Sequence[Any]]
_watches: dict[str, Callable[[Compiled, Sequence[Any]], None]] = {}


class _Watched:
    """Shows the inputs of operations to the watches, after the casts of `auto_cast`."""

    def __init__(self, cast: Cast | None) -> None:
        self.cast = cast

    def __call__(self, compiled: Compiled, args: Sequence[object]) -> Sequence[object]:
        if self.cast is not None:
            args = self.cast(compiled, args)
        for watch in list(_watches.values()):
            watch(compiled, args)
        return args


def watched(cast: Cast | None) -> Cast | None:
    """A cast of AMP with the watches that there are."""
    return _Watched(cast) if _watches else cast


def _set_watch(name: str, watch: Callable[[Compiled, Sequence[object]], None] | None) -> None:
    """Have every operation's inputs seen by `watch`; None takes it away."""
    if watch is None:
        _watches.pop(name, None)
    else:
        _watches[name] = watch
    mode.amp = watched(mode.amp.cast if isinstance(mode.amp, _Watched) else mode.amp)
    _route()


def check_numerics(
    tensor: Tensor,
    op_type: str,
    var_name: str,
    debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
) -> tuple[Tensor, Tensor]:
    """Count NaN, Inf and zeros (int64 [3]) and give the greatest, smallest and mean value (float32 [3]).

    Raises:
        RuntimeError: there is a NaN or Inf, with CHECK_NAN_INF_AND_ABORT.
    """
    values = tensor.numpy()
    if values.dtype.kind not in "fV":
        values = values.astype(np.float64)
    values = values.astype(np.float64)
    counts = [int(np.isnan(values).sum()), int(np.isinf(values).sum()), int((values == 0).sum())]
    found = [values.max(initial=-np.inf), values.min(initial=np.inf), values.mean() if values.size else 0.0]
    if counts[0] or counts[1]:
        text = f"{op_type}, {var_name}: {counts[0]} NaN and {counts[1]} Inf among {values.size} numbers"
        if debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
            raise RuntimeError(text)
        print(text)
    return Tensor(np.array(counts, np.int64)), Tensor(np.array(found, np.float32))


def check_layer_numerics(func: Callable[..., object]) -> Callable[..., Any]:
    """A decorator of `forward` that looks for NaN and Inf in its first input and its outputs."""

    @functools.wraps(func)
    def forward(self: object, *args: object, **kwargs: object) -> Any:
        if not args or not isinstance(args[0], Tensor):
            raise RuntimeError("check_layer_numerics: the first input of the layer must be a Tensor")
        args[0].stop_gradient = False
        check_numerics(args[0], type(self).__name__, "input 0")
        result = func(self, *args, **kwargs)
        for place, part in enumerate(result if isinstance(result, tuple | list) else [result]):
            if isinstance(part, Tensor):
                check_numerics(wrap(part._value), type(self).__name__, f"output {place}")
        return result

    return forward


_counts: dict[str, Counter[str]] = {}


def _count(compiled: Compiled, args: Sequence[object]) -> None:
    kinds = {arg.dtype.name for arg in args if isinstance(arg, Tensor)}
    kind = next((k for k in ("float16", "bfloat16", "float32") if k in kinds), "other")
    _counts.setdefault(compiled.name, Counter())[kind] += 1


def enable_operator_stats_collection() -> None:
    """Count operations by the type of their inputs from here on."""
    _counts.clear()
    _set_watch("stats", _count)


def disable_operator_stats_collection() -> None:
    """Stop counting and print the table."""
    if "stats" not in _watches:
        return
    _set_watch("stats", None)
    print(f"<{' op list ':-^120}>")
    titles = (" FP16 Calls ", " BF16 Calls ", " FP32 Calls", " Other Calls ")
    print(f"<{' Op Name ':-^40}", "|", " | ".join(f"{title:-^17}" for title in titles) + ">")
    for name in sorted(_counts):
        found = [_counts[name][kind] for kind in ("float16", "bfloat16", "float32", "other")]
        print(f"  {name:<40s}|" + "|".join(f"  {number:<17d}" for number in found))
    print(f"<{f' op count: {len(_counts)} ':-^120}>\n")


@contextlib.contextmanager
def collect_operator_stats() -> Iterator[None]:
    """Count operations within the block and print the table."""
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """Look for NaN and Inf in the inputs of operations from here on."""
    if checker_config.update_and_check_step_id():
        checker_config.start_check_nan_inf()
    else:
        checker_config.stop_check_nan_inf()


def disable_tensor_checker() -> None:
    """Stop what `enable_tensor_checker` began."""
    _set_watch("checker", None)


def compare_accuracy(
    dump_path: str,
    another_dump_path: str,
    output_filename: str,
    loss_scale: float = 1,
    dump_all_tensors: bool = False,
) -> NoReturn:
    """Paddle compares the logs that its own CUDA kernels dump; operations here write none."""
    raise ForeignNameError(
        "operations here write no logs to compare",
        where="paddle.amp.debugging.compare_accuracy",
        fix="compare the outputs of two runs, or use collect_operator_stats and enable_tensor_checker",
    )


__all__ = [
    "DebugMode",
    "TensorCheckerConfig",
    "check_layer_numerics",
    "check_numerics",
    "collect_operator_stats",
    "compare_accuracy",
    "disable_operator_stats_collection",
    "disable_tensor_checker",
    "enable_operator_stats_collection",
    "enable_tensor_checker",
]

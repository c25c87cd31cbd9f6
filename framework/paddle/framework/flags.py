"""`paddle.set_flags` and `get_flags`. Names and defaults are those of Paddle 2.6.2, with the environment's values.

FLAGS_check_nan_inf stops at the operation that made a NaN. The others steer parts that do not exist here (memory
pools, executors, cuDNN): they are kept, so that programs run, and one line of the log says that they do nothing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping

import jax

from framework.core.process_state import state

log = logging.getLogger("oar")
Flag = bool | int | float | str

_OFF = (
    *("benchmark", "check_nan_inf", "cpu_deterministic", "cudnn_deterministic", "cudnn_exhaustive_search"),
    *("cudnn_batchnorm_spatial_persistent", "embedding_deterministic", "einsum_opt", "init_allocated_mem"),
    *("enable_pir_api", "enable_pir_in_executor", "enable_unused_var_check", "gemm_use_half_precision"),
    *("log_memory_stats", "new_executor_sequential_run", "new_executor_serial_run", "prim_enabled"),
    *("new_executor_static_build", "new_executor_use_cuda_graph", "new_executor_use_inplace", "print_ir"),
    *("set_to_1d", "sort_sum_gradient", "sync_after_alloc", "use_autotune", "use_cuda_managed_memory"),
    *("use_mkldnn", "use_shm_cache", "use_system_allocator", "use_virtual_memory_auto_growth"),
    *("enable_cublas_tensor_op_math", "reader_queue_speed_test_mode", "run_kp_kernel", "use_fast_math"),
)
_ON = (
    *("add_dependency_for_communication_op", "convert_all_blocks", "eager_delete_scope", "use_stride_kernel"),
    *("enable_api_kernel_fallback", "enable_pir_with_pt_in_dy2st", "fast_eager_deletion_mode"),
    *("new_executor_use_local_scope", "use_pinned_memory", "use_stream_safe_cuda_allocator"),
)
_DEFAULTS: dict[str, Flag] = {
    **dict.fromkeys(_OFF, False),
    **dict.fromkeys(_ON, True),
    "alloc_fill_value": -1,
    "allocator_strategy": "auto_growth",
    "auto_growth_chunk_size_in_mb": 0,
    "call_stack_level": 1,
    "check_nan_inf_level": 0,
    "communicator_max_merge_var_num": 20,
    "communicator_send_queue_size": 20,
    "conv_workspace_size_limit": 512,
    "cudnn_exhaustive_search_times": -1,
    "dist_threadpool_size": 0,
    "eager_delete_tensor_gb": 0.0,
    "enable_adjust_op_order": 0,
    "fraction_of_cpu_memory_to_use": 1.0,
    "fraction_of_cuda_pinned_memory_to_use": 0.5,
    "fraction_of_gpu_memory_to_use": 0.92,
    "fuse_parameter_groups_size": 1,
    "fuse_parameter_memory_size": -1.0,
    "gpu_allocator_retry_time": 10000,
    "gpu_memory_limit_mb": 0,
    "host_trace_level": 1,
    "initial_cpu_memory_in_mb": 500,
    "initial_gpu_memory_in_mb": 0,
    "inner_op_parallelism": 0,
    "jit_engine_type": "Predictor",
    "local_exe_sub_scope_limit": 256.0,
    "low_precision_op_list": 0,
    "max_inplace_grad_add": 0,
    "memory_fraction_of_eager_deletion": 1.0,
    "paddle_num_threads": 1,
    "reallocate_gpu_memory_in_mb": 0,
    "search_cache_max_number": 1000000,
    "selected_gpus": "",
    "tensor_operants_mode": "eager",
}


def _typed(name: str, value: object, like: Flag) -> Flag:
    if isinstance(like, bool):
        return value.lower() in ("1", "true", "yes", "on") if isinstance(value, str) else bool(value)
    try:
        return type(like)(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} takes a {type(like).__name__}, received {value!r}") from None


def _starting() -> dict[str, Flag]:
    named = {f"FLAGS_{name}": value for name, value in _DEFAULTS.items()}
    return {
        name: _typed(name, os.environ[name], value) if name in os.environ else value
        for name, value in named.items()
    }


_START = _starting()


def _known(name: str) -> str:
    if name not in _START:
        raise ValueError(f"there is no flag {name!r}; known: {', '.join(sorted(_START))}")
    return name


def set_flags(flags: Mapping[str, Flag]) -> None:
    """Set flags by name: `{"FLAGS_check_nan_inf": True}`.

    Raises:
        TypeError: `flags` is no dict.
        ValueError: a flag is unknown, or its value of another type.
    """
    if not isinstance(flags, Mapping):
        raise TypeError(f"set_flags takes a dict, received {type(flags).__name__}")
    typed = {_known(name): _typed(name, value, _START[name]) for name, value in flags.items()}
    for name, value in typed.items():
        if name == "FLAGS_check_nan_inf":
            jax.config.update("jax_debug_nans", bool(value))
        elif value != state.flags.get(name, _START[name]):
            log.info("%s is kept, but steers nothing here", name)
    state.flags.update(typed)


def get_flags(flags: str | Iterable[str]) -> dict[str, Flag]:
    """The values of these flags by name.

    Raises:
        ValueError: a flag is unknown.
    """
    names = [flags] if isinstance(flags, str) else list(flags)
    return {name: state.flags.get(_known(name), _START[name]) for name in names}

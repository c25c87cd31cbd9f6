"""`paddle.set_flags` and `get_flags`. Names and defaults are those of Paddle 2.6.2, with the environment's values.

FLAGS_check_nan_inf stops at the operation that made a NaN or an infinity. The others steer parts that do not exist
here (memory pools, executors, cuDNN): they are kept, so that programs run, and one line of the log says that they do
nothing.
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
    *("allreduce_record_one_event", "apply_pass_to_program", "cache_inference_while_scope"),
    *("enable_all2all_use_fp16", "enable_async_trace", "enable_dependency_builder_debug_info"),
    *("enable_dump_main_program", "enable_exit_when_partial_worker", "enable_graph_multi_node_sampling"),
    *("enable_neighbor_list_use_uva", "enable_opt_get_features", "enable_pir_in_executor_trace_run"),
    *("enable_record_memory", "enable_sparse_inner_gather", "enable_tracker_all2all"),
    *("fleet_executor_with_standalone", "gpugraph_debug_gpu_memory", "gpugraph_enable_gpu_direct_access"),
    *("gpugraph_enable_hbm_table_collision_stat", "gpugraph_enable_print_op_debug"),
    *("gpugraph_enable_segment_merge_grads", "gpugraph_force_device_batch_num_equal"),
    *("graph_edges_split_debug", "graph_edges_split_only_by_src_id", "graph_get_neighbor_id"),
    *("graph_load_in_parallel", "graph_metapath_split_opt", "npu_storage_format"),
    *("query_dest_rank_by_multi_node", "trt_ibuilder_cache", "use_auto_growth_pinned_allocator"),
)
_ON = (
    *("add_dependency_for_communication_op", "convert_all_blocks", "eager_delete_scope", "use_stride_kernel"),
    *("enable_api_kernel_fallback", "enable_pir_with_pt_in_dy2st", "fast_eager_deletion_mode"),
    *("new_executor_use_local_scope", "use_pinned_memory", "use_stream_safe_cuda_allocator"),
    *("communicator_is_sgd_optimizer", "enable_auto_detect_gpu_topo", "enable_auto_rdma_trans"),
    *("gpugraph_load_node_list_into_hbm", "graph_embedding_split_infer_mode"),
    *("multi_node_sample_use_gpu_table", "pir_apply_inplace_pass"),
)
# Those that Paddle shows in `core.globals()` alone, and lets nobody set.
_FIXED = ("free_idle_chunk", "free_when_no_cache_hit", "print_allocator_trace_info")
_DEFAULTS: dict[str, Flag] = {
    **dict.fromkeys(_OFF, False),
    **dict.fromkeys(_ON, True),
    "alloc_fill_value": -1,
    "allocator_strategy": "auto_growth",
    "async_trace_count": 5,
    "auto_growth_chunk_size_in_mb": 0,
    "call_stack_level": 1,
    "check_nan_inf_level": 0,
    "communicator_max_merge_var_num": 20,
    "communicator_send_queue_size": 20,
    "conv_workspace_size_limit": 512,
    "cudnn_exhaustive_search_times": -1,
    "dist_threadpool_size": 0,
    "dygraph_debug": 0,
    "eager_delete_tensor_gb": 0.0,
    "enable_adjust_op_order": 0,
    "executor_log_deps_every_microseconds": 0,
    "fraction_of_cpu_memory_to_use": 1.0,
    "fraction_of_cuda_pinned_memory_to_use": 0.5,
    "fraction_of_gpu_memory_to_use": 0.92,
    "fuse_parameter_groups_size": 1,
    "fuse_parameter_memory_size": -1.0,
    "get_host_by_name_time": 120,
    "gpu_allocator_retry_time": 10000,
    "gpu_memory_limit_mb": 0,
    "gpugraph_dedup_pull_push_mode": 0,
    "gpugraph_hbm_table_load_factor": 0.75,
    "gpugraph_merge_grads_segment_size": 128,
    "gpugraph_offload_gather_copy_maxsize": 16,
    "gpugraph_offload_param_extends": ".w_0_moment,.b_0_moment",
    "gpugraph_offload_param_stat": 0,
    "gpugraph_parallel_copyer_split_maxsize": 64,
    "gpugraph_parallel_stream_num": 8,
    "gpugraph_slot_feasign_max_num": 5,
    "gpugraph_sparse_table_storage_mode": 0,
    "gpugraph_storage_mode": 1,
    "graph_edges_debug_node_id": 0,
    "graph_edges_debug_node_num": 2,
    "graph_edges_split_mode": "hard",
    "graph_neighbor_size_percent": 1.0,
    "host_trace_level": 1,
    "initial_cpu_memory_in_mb": 500,
    "initial_gpu_memory_in_mb": 0,
    "inner_op_parallelism": 0,
    "ir_inplace_kernel_blacklist": "",
    "jit_engine_type": "Predictor",
    "local_exe_sub_scope_limit": 256.0,
    "low_precision_op_list": 0,
    "max_inplace_grad_add": 0,
    "memory_fraction_of_eager_deletion": 1.0,
    "multiple_of_cupti_buffer_size": 1,
    "paddle_num_threads": 1,
    "pe_profile_fname": "",
    "pir_subgraph_saving_dir": "",
    "print_sub_graph_dir": "",
    "reallocate_gpu_memory_in_mb": 0,
    "rocksdb_path": "database",
    "rpc_send_thread_num": 12,
    "search_cache_max_number": 1000000,
    "selected_gpus": "",
    "static_executor_perfstat_filepath": "",
    "tensor_operants_mode": "eager",
    "tracer_mkldnn_ops_off": "",
    "tracer_mkldnn_ops_on": "",
    "tracer_profile_fname": "xxgperf",
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
            jax.config.update("jax_debug_infs", bool(value))
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


class GlobalFlags:
    """What `core.globals()` gives: the flags, which can be read, searched and set by their names."""

    def keys(self) -> set[str]:
        """The names of all flags, also of those that cannot be set."""
        return {*_START, *(f"FLAGS_{name}" for name in _FIXED)}

    def __contains__(self, name: object) -> bool:
        return name in self.keys()

    def __getitem__(self, name: str) -> Flag:
        default = self.get_default(name)
        return state.flags.get(name, default)

    def get(self, name: str, default: Flag | None = None) -> Flag | None:
        """The value of a flag; `default` where there is none of this name."""
        try:
            return self[name]
        except RuntimeError:
            return default

    def get_default(self, name: str) -> Flag:
        """The value that a flag began with. Raises: RuntimeError: there is none of this name."""
        if name not in self:
            raise RuntimeError(f"(NotFound) Cannot find global variable {name}")
        return _START.get(name, False)

    def is_public(self, name: str) -> bool:
        """Whether `get_flags` and `set_flags` take a flag."""
        return name in _START

    def __setitem__(self, name: str, value: Flag) -> None:
        if not self.is_public(name):
            raise RuntimeError(f"(NotFound) Global variable {name} is not writable")
        try:
            set_flags({name: value})
        except ValueError as error:
            raise RuntimeError(str(error)) from None

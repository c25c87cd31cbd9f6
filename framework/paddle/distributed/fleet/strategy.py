"""DistributedStrategy: what a program says about how to spread its training."""

from __future__ import annotations

from typing import Any

_SWITCHES = (
    *("a_sync", "adam_d2sum", "adaptive_localsgd", "amp", "asp", "auto", "auto_search", "dgc", "elastic"),
    *("cudnn_batchnorm_spatial_persistent", "cudnn_exhaustive_search", "find_unused_parameters"),
    *("fp16_allreduce", "fuse_grad_merge", "gradient_merge", "heter_ccl_mode", "is_fl_ps_mode"),
    *("is_with_coordinator", "lamb", "lars", "localsgd", "pipeline", "qat", "recompute", "semi_auto"),
    *("sharding", "split_data", "sync_batch_norm", "tensor_parallel", "use_hierarchical_allreduce"),
    "without_graph_optimization",
)
_CONFIGS = (
    *("a_sync_configs", "adaptive_localsgd_configs", "amp_configs", "dgc_configs", "fleet_desc_configs"),
    *("gradient_merge_configs", "gradient_scale_configs", "lamb_configs", "lars_configs"),
    *("localsgd_configs", "pipeline_configs", "qat_configs", "recompute_configs", "sharding_configs"),
    *("sparse_table_configs", "tensor_parallel_configs", "trainer_desc_configs"),
)
_DEGREES = ("dp_degree", "mp_degree", "pp_degree", "sharding_degree", "sep_degree")


class DistributedStrategy:
    """Switches and settings; what is set is kept. A world of one process spreads nothing."""

    hybrid_configs: dict[str, Any]
    a_sync: bool
    a_sync_configs: dict[str, int | str]
    pipeline_configs: dict[str, Any]
    find_unused_parameters: bool

    def __init__(self) -> None:
        state: dict[str, Any] = {
            **dict.fromkeys(_SWITCHES, False),
            **{name: {} for name in _CONFIGS},
            "a_sync": True,
            "a_sync_configs": {
                "k_steps": -1,
                "max_merge_var_num": 1,
                "send_queue_size": 16,
                "independent_recv_thread": False,
                "min_send_grad_num_before_recv": 1,
                "thread_pool_size": 1,
                "send_wait_times": 1,
                "runtime_split_send_recv": False,
                "launch_barrier": True,
                "heter_worker_device_guard": "cpu",
                "lr_decay_steps": 10,
                "use_ps_gpu": 0,
                "use_gpu_graph": 0,
            },
            "hybrid_configs": {**dict.fromkeys(_DEGREES, 1), "dp_degree": -1},
            "build_strategy": None,
            "execution_strategy": None,
            "fs_client_param": None,
            "conv_workspace_size_limit": 512,
            "fuse_all_reduce_ops": True,
            "fuse_grad_size_in_MB": 32,
            "fuse_grad_size_in_num": 8,
            "hierarchical_allreduce_inter_nranks": 1,
            "last_comm_group_size_MB": 1,
            "nccl_comm_num": 1,
            "sync_nccl_allreduce": True,
        }
        self.__dict__.update(state)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"DistributedStrategy has no setting {name!r}")
        if name == "a_sync":  # as Paddle: it sets the interval anew
            self.__dict__["a_sync_configs"]["k_steps"] = 0 if value else -1
        old = self.__dict__[name]
        if isinstance(old, dict) and isinstance(value, dict):
            value = {**old, **value}
        self.__dict__[name] = value

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items() if value)
        return f"DistributedStrategy({fields})"

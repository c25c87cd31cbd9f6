"""Settings of `paddle.distributed.fleet.auto`, in groups."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from framework.paddle._kernel.modules import complete as _complete

_BASE: dict[str, object] = {
    **{"auto_mode": "semi", "gradient_scale": True, "use_cache": True, "return_numpy": True},
    **{"all_ranks": False, "split_data": True, "seed": None, "reinit": False},
}
_GROUPS: dict[str, dict[str, object]] = {
    "recompute": {
        **{"enable": False, "checkpoints": [], "no_recompute_segments": [], "sr": 0},
        **{"refined_ops_patterns": [], "enable_tuning": False},
    },
    "amp": {
        **{"enable": False, "dtype": "float16", "level": "o1", "init_loss_scaling": 32768.0},
        **{"incr_every_n_steps": 1000, "decr_every_n_nan_or_inf": 2, "incr_ratio": 2.0, "decr_ratio": 0.8},
        **{"use_dynamic_loss_scaling": True, "custom_white_list": [], "custom_black_list": []},
        **{"custom_black_varnames": [], "use_fp16_guard": False, "use_bf16_guard": False},
    },
    "sharding": {
        **{"enable": False, "stage": 1, "degree": 8, "enable_overlap": False, "param_comm_stream_num": 1},
        **{"grad_comm_stream_num": 1, "param_bucket_size_numel": 1, "grad_bucket_size_numel": 1},
        **{"enable_hierarchical_comm": False, "partition_algor": "greedy_even", "enable_tuning": False},
        "tuning_range": [],
    },
    "gradient_merge": {"enable": False, "k_steps": 1, "avg": True},
    "pipeline": {
        **{"enable": False, "schedule_mode": "1F1B", "micro_batch_size": 1, "accumulate_steps": 1},
        **{"generation_batch_size": 1, "enable_send_recv_overlap": False},
        **{"job_schedule_profiler_start": -1, "job_schedule_profiler_stop": -1},
    },
    "qat": {
        **{"enable": False, "channel_wise_abs_max": True, "weight_bits": 8, "activation_bits": 8},
        **{"not_quant_pattern": ["skip_quant"], "algo": None, "onnx_format": True},
    },
    "tuning": {
        **{"enable": False, "profile_start_step": 1, "profile_end_step": 1, "run_after_tuning": True},
        "debug": False,
    },
    "dataset": {"enable": False, "num_shards": 1},
    "fused_passes": {"enable": False, "fused_passes_list": []},
    "fused_linear_promotion": {"enable": False},
    "dp_optimization": {
        **{"enable": False, "fuse_all_reduce_ops": True, "fuse_grad_size_in_MB": 32},
        "overlap_comm_cacl": True,
    },
    "mp_optimization": {"allreduce_matmul_grad_overlapping": False},
    "sp_optimization": {"enable": False},
}


class BaseConfig:
    """Settings with defaults; `config_dict` changes some, and names that it has besides are left out, as in Paddle."""

    def __init__(self, category: str, config_dict: Mapping[str, object] | None = None) -> None:
        if config_dict is not None and not isinstance(config_dict, Mapping):
            raise ValueError(f"Expected a dictionary. But received: {config_dict}")
        self._names = tuple(_BASE if category == "base" else _GROUPS[category])
        defaults = _BASE if category == "base" else _GROUPS[category]
        self.from_dict({**copy.deepcopy(defaults), **(config_dict or {})})

    def from_dict(self, config_dict: Mapping[str, object]) -> None:
        """Set what the mapping has of these settings."""
        for name in self._names:
            if name in config_dict:
                setattr(self, name, config_dict[name])

    def to_dict(self) -> dict[str, object]:
        """All settings, groups as mappings of their own."""
        groups: dict[str, object] = {
            name: one.to_dict() for name, one in vars(self).items() if isinstance(one, BaseConfig)
        }
        return {name: getattr(self, name) for name in self._names} | groups

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()})"


class Strategy(BaseConfig):
    """How a program is trained: `strategy.sharding.enable = True`. `to_static` of one process uses none of it.

    Args:
        config: {"sharding": {"enable": True}}; what it does not have keeps its default.
    """

    def __init__(self, config: Mapping[str, Mapping[str, object]] | None = None) -> None:
        if config is not None and not isinstance(config, dict):
            raise ValueError(f"Expected a dictionary. But received: {config}")
        changes = copy.deepcopy(config or {})
        super().__init__("base", changes)
        for name in _GROUPS:
            setattr(self, name, BaseConfig(name, changes.get(name)))


_complete(__name__)

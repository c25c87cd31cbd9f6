"""Names that are not public in Paddle and that packages import, derive from or call: where each stands here."""

from __future__ import annotations

_MP_OPS = "paddle.distributed.fleet.layers.mpu.mp_ops"
_COLLECTIVE = "paddle.distributed.collective"
_OPTIMIZERS = "paddle.distributed.fleet.meta_optimizers.dygraph_optimizer"

_IMAGES = "paddle.vision.transforms.functional"  # takes arrays, PIL's images and Tensors alike
_ON_ARRAYS = (
    "to_tensor resize pad crop center_crop hflip vflip adjust_brightness adjust_contrast adjust_saturation adjust_hue "
    "affine rotate perspective to_grayscale erase"
)


def _names(home: str, names: str) -> dict[str, str]:
    return {name: f"{home}.{name}" for name in names.split()}


def _methods(names: str) -> dict[str, str]:
    """Functions that stand here as methods of Tensor alone."""
    return _names("paddle.Tensor", names)


# Module -> name in it -> full name here.
PRIVATE: dict[str, dict[str, str]] = {
    "paddle.nn.layer.conv": {"_ConvNd": "paddle.nn.conv._Conv"},
    "paddle.nn.layer.norm": {
        "_BatchNormBase": "paddle.nn.norm._BatchNorm",
        "_InstanceNormBase": "paddle.nn.norm._InstanceNorm",
    },
    "paddle.nn.layer.layers": {
        "in_declarative_mode": "paddle.base.dygraph.base.in_declarative_mode",
        "_convert_camel_to_snake": "paddle.nn.layer._snake_case",
        "HookRemoveHelper": "paddle.nn.layer.HookRemoveHelper",
    },
    "paddle.tensor.math": _names(
        "paddle.ops.axis_arithmetic",
        "_add_with_axis _subtract_with_axis _multiply_with_axis _divide_with_axis",
    )
    | _methods("scale_ add_ subtract_ log1p_ clip_ lerp_ erfinv_"),
    "paddle.static.log_helper": {"get_logger": "paddle.base.log_helper.get_logger"},
    "paddle.incubate.autograd.utils": {
        "as_tensors": "paddle.incubate.autograd.as_tensors",
        "prim_enabled": "paddle.incubate.autograd.prim_enabled",
    },
    "paddle.incubate.autograd.primx": {"prim2orig": "paddle.incubate.autograd.prim2orig"},
    "paddle.jit.dy2static.program_translator": {
        "ConcreteProgram": "paddle.jit.concrete.ConcreteProgram",
        "ProgramCache": "paddle.jit.concrete.ProgramCache",
        "StaticFunction": "paddle.jit.to_static.StaticFunction",
        "convert_to_static": "paddle.jit.ast_transform.transformed",
    },
    "paddle.jit.dy2static.logical_transformer": {
        "cmpop_node_to_str": "paddle.jit.dy2static.ast_utils.cmpop_node_to_str"
    },
    "paddle.quantization.observers.abs_max": {
        "AbsmaxObserverLayer": "paddle.quantization.observers.AbsmaxObserverLayer"
    },
    "paddle.static.nn.control_flow": {
        "Assert": "paddle.static.control.Assert",
        "While": "paddle.static.while_block.While",
        "select_input": "paddle.static.selection.select_input",
        "select_output": "paddle.static.selection.select_output",
    },
    "paddle.base.framework": {
        "core": "paddle.base.core",
        "Operator": "paddle.static.variable.Op",
        "unique_name": "paddle.utils.unique_name",
    },
    "paddle.base.libpaddle": {
        "DataType": "paddle.base.core.DataType",
        "AmpLevel": "paddle.base.core.AmpLevel",
        "pir": "paddle.pir",
    },
    "paddle.nn.initializer.lazy_init": {
        name: f"paddle.nn.initializer.{name}" for name in ("LazyInitHelper", "lazy_init_helper")
    },
    "paddle.io.reader": {"use_pinned_memory": "paddle.io.loader.use_pinned_memory"},
    "paddle.base.reader": {"use_pinned_memory": "paddle.io.loader.use_pinned_memory"},
    "paddle.nn.layer.transformer": {"tensor": "paddle.tensor"},
    "paddle.utils": {"to_sequence": "paddle.utils.structure.to_sequence"},
    "paddle.utils.layers_utils": {"to_sequence": "paddle.utils.structure.to_sequence"},
    "paddle.static.nn.sequence_lod": {"sequence_mask": "paddle.nn.functional.sequence_mask"},
    "paddle.io.dataloader.collate": {
        "default_collate_fn": "paddle.io.default_collate_fn",
        "default_convert_fn": "paddle.io.default_convert_fn",
    },
    "paddle.static.amp.fp16_lists": {
        name: f"paddle.static.amp.lists.{name}"
        for name in (
            *("AutoMixedPrecisionLists", "white_list", "black_list", "gray_list"),
            *("_extra_black_list", "_only_supported_fp16_list"),
        )
    },
    "paddle.static.amp.bf16.amp_lists": {
        name: f"paddle.static.amp.lists.{name}"
        for name in ("AutoMixedPrecisionListsBF16", "bf16_list", "fp32_list", "gray_list")
    },
    "paddle.static.amp.decorator": {
        name: f"paddle.static.amp.decorator.{name}" for name in ("OptimizerWithMixedPrecision", "decorate")
    },
    "paddle.static.amp.fp16_utils": {
        "_keep_layer_norm_scale_bias_to_fp32": "paddle.static.amp._keep_layer_norm_scale_bias_to_fp32"
    },
    "paddle.amp.auto_cast": {"amp_state": "paddle.amp.casting.amp_state"},
    "paddle.framework": {
        "dygraph_only": "paddle.base.framework.dygraph_only",
        "_current_expected_place_": "paddle.base.framework._current_expected_place_",
    },
    "paddle.framework.io_utils": {"Variable": "paddle.static.Variable"},
    "paddle.base.io": {name: f"paddle.base.reader.{name}" for name in ("DataLoader", "PyReader")},
    "paddle.tensor.manipulation": {"tensor_array_to_tensor": "paddle.tensor.array.tensor_array_to_tensor"}
    | _methods(
        "fill_ zero_ fill_diagonal_ fill_diagonal_tensor_ fill_diagonal_tensor flatten_ put_along_axis_ transpose"
    ),
    "paddle.tensor.ops": _methods(
        "reciprocal_ asin_ rsqrt_ atanh_ round_ sqrt_ asinh_ acosh_ cosh_ sigmoid_ ceil_ floor_ exp_"
    ),
    "paddle.tensor.logic": _methods("logical_xor_ not_equal_"),
    "paddle.tensor.search": _methods("top_p_sampling"),
    "paddle.nn.quant.quantized_linear": _names(
        "paddle.nn.quant", "weight_quantize weight_dequantize weight_only_linear llm_int8_linear"
    ),
    "paddle.nn.functional.extension": _names("paddle", "diag_embed"),
    "paddle.autograd.autograd": _names("paddle.incubate.autograd", "Jacobian Hessian"),
    "paddle.vision.transforms.functional_cv2": _names(_IMAGES, f"{_ON_ARRAYS} normalize"),
    "paddle.vision.transforms.functional_pil": _names(_IMAGES, _ON_ARRAYS),
    "paddle.vision.transforms.functional_tensor": _names(
        _IMAGES, _ON_ARRAYS.replace("to_tensor ", "") + " normalize"
    ),
    "paddle.base.core": {
        name: f"paddle.incubate.autotune.{name}"
        for name in ("use_layout_autotune", "enable_layout_autotune", "disable_layout_autotune")
    },
    "paddle.base.layer_helper_base": {"LayerHelperBase": "paddle.base.layer_helper.LayerHelper"},
    "paddle.static": {"setitem": "paddle.ops.indexing.setitem"},
    "paddle.tensor.random": {"gaussian": "paddle.ops.random.gaussian"},
    "paddle.optimizer.lr": {
        name: f"paddle.optimizer.lr.counted.{name}"
        for name in (
            *(
                "_decay_step_counter",
                "cosine_decay",
                "exponential_decay",
                "inverse_time_decay",
                "linear_lr_warmup",
            ),
            *("natural_exp_decay", "noam_decay", "piecewise_decay", "polynomial_decay"),
        )
    },
    "paddle.jit.dy2static.utils": {
        "_compatible_non_tensor_spec": "paddle.jit.spec._compatible_non_tensor_spec"
    },
    "paddle.static.nn.common": {"deformable_conv": "paddle.static.nn.deformable_conv"},
    "paddle.base.unique_name": {
        "UniqueNameGenerator": "paddle.utils.unique_name.UniqueNameGenerator",
        "dygraph_parameter_name_checker": "paddle.utils.unique_name.dygraph_parameter_name_checker",
    },
    "paddle.base": {"DatasetFactory": "paddle.base.dataset.DatasetFactory"},
    "paddle.utils.cpp_extension.cpp_extension": {"CUDA_HOME": "paddle.utils.cpp_extension.CUDA_HOME"},
    "paddle.quantization.quanters.abs_max": {
        "FakeQuanterWithAbsMaxObserverLayer": "paddle.quantization.quanters.FakeQuanterWithAbsMaxObserverLayer"
    },
    "paddle.io.dataloader.dataloader_iter": {"_DataLoaderIterBase": "paddle.io.loader._DataLoaderIterBase"},
    "paddle.distributed.collective": {
        **{name: f"{_MP_OPS}.{name}" for name in ("_c_concat", "_c_identity", "_c_split", "_mp_allreduce")},
        "_c_lookup_table": f"{_MP_OPS}._c_lookup_table",
        "_get_default_group": f"{_COLLECTIVE}._world",
        "_get_global_group": f"{_COLLECTIVE}._world",
    },
    "paddle.distributed.communication.group": {
        "Group": f"{_COLLECTIVE}.Group",
        "_get_global_group": f"{_COLLECTIVE}._world",
    },
    "paddle.distributed.communication.reduce": {"_get_reduce_op": f"{_COLLECTIVE}._get_reduce_op"},
    "paddle.distributed.fleet": {"auto": "paddle.distributed.auto_parallel"},
    "paddle.distributed.fleet.meta_parallel.parallel_layers.random": {
        "get_rng_state_tracker": "paddle.distributed.fleet.layers.mpu.random.get_rng_state_tracker"
    },
    "paddle.distributed.communication.batch_isend_irecv": {
        name: f"paddle.distributed.point_to_point.{name}" for name in ("P2POp", "batch_isend_irecv")
    },
    f"{_OPTIMIZERS}.dygraph_sharding_optimizer": {
        "DygraphShardingOptimizerV2": f"{_OPTIMIZERS}.DygraphShardingOptimizerV2"
    },
    "paddle.distributed.fleet.model": {
        "PipelineParallel": "paddle.distributed.fleet.meta_parallel.PipelineParallel",
        "TensorParallel": "paddle.distributed.fleet.meta_parallel.TensorParallel",
    },
}

"""Names of Paddle that packages import and that cannot be here: each raises when it is called, not when it is imported.

A package imports all that one of its functions may use; what it does not call must not stop it. Names that packages try
to import, to use something else where they are absent (fused kernels), are not among these: they stay absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

from framework.core.errors import ForeignNameError


class RefusedType(type):
    """Of classes that cannot be made: `isinstance` and deriving from them work."""

    fix: str

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        """Raises: ForeignNameError, always."""
        raise ForeignNameError(
            "this name of Paddle has no counterpart", where=f"{cls.__module__}.{cls.__name__}", fix=cls.fix
        )


_PASSES = (
    *("AddQuantDequantForInferencePass", "AddQuantDequantPass", "AddQuantDequantPassV2", "ConvertToInt8Pass"),
    *("OutScaleForInferencePass", "OutScaleForTrainingPass", "PostTrainingQuantization"),
    *("PostTrainingQuantizationProgram", "Quant2Int8MkldnnPass", "QuantInt8MkldnnPass", "QuantWeightPass"),
    *("QuantizationFreezePass", "QuantizationTransformPass", "QuantizationTransformPassV2"),
    *(
        "ReplaceFakeQuantDequantPass",
        "TransformForMobilePass",
        "WeightQuantization",
        "convert",
        "quant_aware",
    ),
)
_PRIMITIVES = "XLA takes operations apart as it compiles them: there is nothing to turn on"
_GRAPH = (
    "it works on the graph of Paddle's operators, and programs here are recorded operations: quantise the model before "
    "it is saved, with paddle.quantization (QuantConfig, PTQ, QAT)"
)
_CPP = (
    "operators in C++ or CUDA for Paddle do not load here: write them with paddle operations or jax "
    "(a paddle.autograd.PyLayer over jax functions); XLA fuses them"
)
_RECORDED = (
    "programs here are recorded operations, without descriptions of operators: paddle.static.Program has ops, and each "
    "of these its type, inputs and outputs"
)
_THREADS = "workers that read data are threads here: paddle.io.DataLoader(num_workers=...)"
_BYTE_CODE = (
    "functions are not compiled from byte code here: Python runs what paddle.jit.sot.symbolic_translate is given, and "
    "paddle.jit.to_static compiles from source"
)
_SOURCE = "source is converted in its own way here: StaticFunction.code shows the result"
_PROGRAMS = (
    "a compiled function is one program of XLA for each kind of arguments: StaticFunction.concrete_programs()"
)
_ALONE = (
    "arrays here do not share memory, and gradients travel together as they are: "
    "paddle.distributed.sharding.group_sharded_parallel"
)
_MESH = (
    "XLA divides what is compiled by where its arrays lie, and paddle.distributed.shard_tensor places them"
)
_DEVICES = "for a device that XLA has not"
_SERVERS = "there are no parameter servers: tables lie in the workers (paddle.distributed.fleet)"
# Module -> its names -> what to do.
_ROWS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("paddle.static.quantization", _PASSES, _GRAPH),
    (
        "paddle.static.quantization.utils",
        (
            "_get_op_input_var_names",
            "_get_op_output_var_names",
            "_get_input_name_index",
            "_get_output_name_index",
        ),
        "operations here are recorded by position, not by the names of their arguments: op.input_arg_names",
    ),
    (
        "paddle.incubate.layers.nn",
        (
            *(
                "bilateral_slice",
                "correlation",
                "fused_embedding_seq_pool",
                "fused_seqpool_cvm",
                "rank_attention",
            ),
            *(
                "search_pyramid_hash",
                "tdm_child",
                "tdm_sampler",
                "_pull_box_extended_sparse",
                "_pull_box_sparse",
            ),
            "_pull_gpups_sparse",
        ),
        "kernels for parameter servers and sequences without padding: pad the sequences and use paddle.nn",
    ),
    ("paddle.framework", ("IrGraph",), _GRAPH),
    ("paddle.base.framework", ("IrGraph",), _GRAPH),
    ("paddle.base.framework", ("OpProtoHolder", "canonicalize_attrs"), _RECORDED),
    ("paddle.base.core", ("get_grad_op_desc",), _RECORDED),
    ("paddle.base.core", ("set_eval_frame",), _BYTE_CODE),
    ("paddle.distributed.auto_parallel.static.dist_context", ("get_default_distributed_context",), _MESH),
    ("paddle.distributed.auto_parallel.static.dist_op", ("DistributedOperator",), _MESH),
    ("paddle.distributed.fleet.utils.tensor_fusion_helper", ("fused_parameters",), _ALONE),
    (
        "paddle.incubate.distributed.utils.io",
        ("save_for_auto_inference",),
        "paddle.jit.save writes a model with whole parameters, which every engine runs",
    ),
    (
        "paddle.incubate.distributed.models.moe",
        ("MoELayer",),
        "experts that lie in several processes: a gate and experts of paddle.nn, or a model of the core that has them",
    ),
    (
        "paddle.static",
        ("IpuCompiledProgram", "IpuStrategy", "ipu_shard_guard", "set_ipu_shard", "xpu_places"),
        _DEVICES,
    ),
    ("paddle.inference", ("XpuConfig",), _DEVICES),
    (
        "paddle.base.reader",
        ("CleanupFuncRegistrar", "_cleanup", "multiprocess_queue_set", "_reader_process_loop"),
        _THREADS,
    ),
    ("paddle.io.dataloader.worker", ("_worker_loop", "_generate_states"), _THREADS),
    (
        "paddle.distributed.fleet.meta_optimizers",
        ("DGCMomentumOptimizer",),
        "gradients travel whole here: paddle.optimizer.Momentum",
    ),
    (
        "paddle.base.core",
        ("CipherFactory", "CipherUtils"),
        "files are written as they are: encrypt them with a library for it",
    ),
    ("paddle.base.core", ("Fleet", "Dataset"), _RECORDED),
    ("paddle.cost_model", ("CostModel",), "XLA plans programs: measure them with paddle.profiler"),
    (
        "paddle.hapi.model",
        ("prepare_distributed_context",),
        "call paddle.distributed.init_parallel_env() before Model.prepare",
    ),
    ("paddle.base.core", ("Graph", "PassVersionChecker"), _GRAPH),
    (
        "paddle.pir",
        ("Value", "OpResult", "Program", "Block"),
        "programs here are recorded operations: paddle.static.Program",
    ),
    ("paddle.decomposition", ("decompose",), _PRIMITIVES),
    ("paddle.decomposition.decomp", ("decompose",), _PRIMITIVES),
    ("paddle.incubate.autograd.primapi", ("to_prim",), _PRIMITIVES),
    (
        "paddle.autograd.ir_backward",
        ("grad", "calc_gradient", "append_backward"),
        "programs here are recorded operations: paddle.static.gradients and append_backward",
    ),
    ("paddle.base.core", ("GraphPyClient", "GraphPyServer", "GraphPyService"), _SERVERS),
    ("paddle.distributed.ps.coordinator", ("Coordinator", "FLClient", "FLClientBase"), _SERVERS),
    ("paddle.incubate.distributed.fleet.fleet_util", ("FleetUtil", "GPUPSUtil"), _SERVERS),
    ("paddle.distributed.fleet.dataset", ("TreeIndex", "Index"), _SERVERS),
    (
        "paddle.distributed.fleet.meta_parallel.sharding.group_sharded_storage",
        ("GradStorage", "ParamStorage", "InternalStorage"),
        _ALONE,
    ),
    ("paddle.utils.cpp_extension", ("BuildExtension", "load_op_meta_info_and_register_op"), _CPP),
    (
        "paddle.utils.cpp_extension.extension_utils",
        (
            *("_import_module_from_library", "_jit_compile", "load_op_meta_info_and_register_op"),
            "_custom_api_content",
        ),
        _CPP,
    ),
    ("paddle.utils.cpp_extension.cpp_extension", ("BuildExtension",), _CPP),
    (
        "paddle.quantization",
        (
            *(
                "AbsmaxQuantizer",
                "BaseQuantizer",
                "HistQuantizer",
                "KLQuantizer",
                "PerChannelAbsmaxQuantizer",
            ),
            *("ImperativePTQ", "ImperativeQuantAware", "PTQConfig", "PTQRegistry"),
        ),
        "the older interface of quantisation: paddle.quantization has QuantConfig, QAT and PTQ",
    ),
    (
        "paddle.nn.quant",
        ("llm_int8_linear", "weight_dequantize", "weight_only_linear", "weight_quantize"),
        "integers in the order of one GPU's kernels: paddle.quantization makes layers of integers and scales",
    ),
    (
        "paddle.base.core.eager",
        ("_run_custom_op",),
        _CPP,
    ),
    (
        "paddle.jit.dy2static.program_translator",
        ("PartialProgramLayer",),
        _PROGRAMS,
    ),
    ("paddle.jit.dy2static", ("DygraphToStaticAst", "StaticAnalysisVisitor", "NodeVarType"), _SOURCE),
    ("paddle.jit.dy2static.loop_transformer", ("NameVisitor",), _SOURCE),
    ("paddle.jit.dy2static.utils", ("FunctionNameLivenessAnalysis", "GetterSetterHelper"), _SOURCE),
    ("paddle.jit.dy2static.partial_program", ("partial_program_from",), _PROGRAMS),
    ("paddle.jit.sot.utils", ("StepInfoManager", "StepState"), _BYTE_CODE),
    (
        "paddle.inference",
        ("convert_to_mixed_precision",),
        "save the model under paddle.amp.auto_cast, or with model.astype('bfloat16')",
    ),
)


def _make(module: str, name: str, fix: str) -> RefusedType:
    return RefusedType(name, (), {"__module__": module, "__doc__": f"Not here: {fix}.", "fix": fix})


_REFUSED = {f"{module}.{name}": _make(module, name, fix) for module, names, fix in _ROWS for name in names}


def refused(full_name: str) -> RefusedType | None:
    """What stands for a name of Paddle that cannot be here ("paddle.framework.IrGraph"); None: it is no such name."""
    return _REFUSED.get(full_name)


def refused_rows() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """(module, its names that cannot be here, what to do), for docs/paddle_api.md."""
    return iter(_ROWS)


def refused_in(module: str) -> Iterator[tuple[str, RefusedType]]:
    """The names of a module that cannot be here."""
    return ((value.__name__, value) for value in _REFUSED.values() if value.__module__ == module)

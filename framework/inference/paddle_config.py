"""paddle.inference's Config: what to run and where, with the names of Paddle 2.6 and 3.x, and its enumerations."""

from __future__ import annotations

import enum
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from framework.core.compilation import enable_compilation_cache
from framework.core.errors import InputError, nearest
from framework.core.process import cpu_count
from framework.export.artifact import CONFIG, WEIGHTS, program_file
from framework.interop.source import Source, find_paddle_program

log = logging.getLogger("oar")
# What Paddle's export commands call the program in a folder.


class PrecisionType(enum.Enum):
    """The precisions that a `Config` takes; the values are those of `framework.inference.choose_precision`.

    Half runs the bfloat16 program: an artifact has none of float16. Int8 is not there yet.
    """

    Float32 = "float32"
    Bfloat16 = "bfloat16"
    Half = "float16"
    Int8 = "int8"


class PlaceType(enum.Enum):
    """Where a predictor runs."""

    UNK, CPU, GPU, XPU, CUSTOM = -1, 0, 1, 2, 4


class DataType(enum.StrEnum):
    """Types of inputs and outputs, which equal numpy's names."""

    FLOAT64, FLOAT32, FLOAT16, BFLOAT16 = "float64", "float32", "float16", "bfloat16"
    INT64, INT32, INT8, UINT8, BOOL = "int64", "int32", "int8", "uint8", "bool"
    STRING = "str"


class PassBuilder:
    """Paddle's list of passes over a program: it is empty, and stays so."""

    def all_passes(self) -> list[str]:
        return []

    def turn_on_debug(self) -> None:
        """Nothing: there is no pass to speak of."""

    def append_pass(self, name: str) -> None:
        log.info("the pass %s is not run: XLA compiles the program", name)

    insert_pass = delete_pass = append_pass


class Config:
    """What to run and where: an artifact folder, Paddle's program with its parameters, the folder of an upstream
    export, or an ONNX file. Paddle's switches for other engines are accepted and logged."""

    # A name a line: what a switch of Paddle's engines and passes sets; queries give it back. XLA needs none of them.
    _SWITCHES: ClassVar[Mapping[str, tuple[str, object]]] = {
        "disable_glog_info": ("glog_info_disabled", True),
        "disable_mkldnn": ("mkldnn_enabled", False),
        "disable_onednn": ("onednn_enabled", False),
        "enable_cinn": ("cinn_enabled", True),
        "enable_low_precision_io": ("low_precision_io_enabled", True),
        "enable_memory_optim": ("memory_optim_enabled", True),
        "enable_mkldnn": ("mkldnn_enabled", True),
        "enable_mkldnn_bfloat16": ("mkldnn_bfloat16_enabled", True),
        "enable_mkldnn_int8": ("mkldnn_int8_enabled", True),
        "enable_new_executor": ("new_executor_enabled", True),
        "enable_new_ir": ("new_ir_enabled", True),
        "enable_onednn": ("onednn_enabled", True),
        "enable_onednn_bfloat16": ("onednn_bfloat16_enabled", True),
        "enable_onednn_int8": ("onednn_int8_enabled", True),
        "enable_profile": ("profile_enabled", True),
        "enable_save_optim_model": ("save_optimized_model", True),
        "exp_enable_use_cutlass": ("use_cutlass", True),
        "switch_ir_debug": ("ir_debug", True),
        "switch_ir_optim": ("ir_optim", True),
        "switch_specify_input_names": ("specify_input_name", True),
        "switch_use_feed_fetch_ops": ("use_feed_fetch_ops_enabled", True),
        "use_optimized_model": ("optimized_model_used", True),
        "use_pir": ("pir_used", True),
    }
    # What a setter of a number or a path sets.
    _VALUES: ClassVar[Mapping[str, str]] = {
        "collect_shape_range_info": "shape_range_info_path",
        "set_cpu_math_library_num_threads": "cpu_math_library_num_threads",
        "set_mkldnn_cache_capacity": "mkldnn_cache_capacity",
        "set_onednn_cache_capacity": "onednn_cache_capacity",
        "set_optimization_level": "optimization_level",
        "set_tensorrt_optimization_level": "tensorrt_optimization_level",
    }
    # Those of 2.6 where nothing is said.
    _DEFAULTS: ClassVar[Mapping[str, object]] = {
        **{"ir_optim": True, "memory_pool_init_size_mb": 100, "fraction_of_gpu_memory_for_pool": 0.0},
        **{"mkldnn_cache_capacity": 10, "tensorrt_optimization_level": 3, "optimization_level": 2},
        **{"shape_range_info_path": "", "xpu_device_id": 0, "tensorrt_precision_mode": PrecisionType.Float32},
    }
    _NO_EFFECT = frozenset(
        """
        delete_pass disable_mkldnn_fc_passes enable_custom_passes enable_dlnne enable_lite_engine
        enable_ort_optimization enable_quantizer enable_tensorrt_dla enable_tensorrt_engine
        enable_tensorrt_explicit_quantization enable_tensorrt_inspector enable_tensorrt_memory_optim
        enable_tensorrt_varseqlen enable_tuned_tensorrt_dynamic_shape exp_disable_mixed_precision_ops
        exp_disable_tensorrt_ops exp_disable_tensorrt_subgraph exp_enable_mixed_precision_ops
        exp_specify_tensorrt_subgraph_precision mark_trt_engine_outputs set_bfloat16_op set_exec_stream set_mkldnn_op
        set_onednn_op set_trt_dynamic_shape_info tensorrt_disable_ops
        """.split()  # noqa: SIM905
    )
    # Whether an engine of Paddle's is on that is not there.
    _OFF = frozenset(
        """
        lite_engine_enabled tensorrt_dla_enabled tensorrt_dynamic_shape_enabled
        tensorrt_engine_enabled tensorrt_explicit_quantization_enabled tensorrt_inspector_enabled
        tensorrt_varseqlen_enabled trt_allow_build_at_runtime tuned_tensorrt_dynamic_shape use_opencl use_xpu
        use_custom_device
        """.split()  # noqa: SIM905
    )
    _NO_DEVICE = frozenset(
        """
        dist_config enable_ipu enable_opencl enable_xpu load_ipu_config nnadapter quantizer_config set_dist_config
        set_ipu_config set_ipu_custom_info set_xpu_config set_xpu_device_id to_native_config xpu_config
        """.split()  # noqa: SIM905
    )
    Precision = PrecisionType
    Float32, Half, Int8, Bfloat16 = (
        PrecisionType.Float32, PrecisionType.Half, PrecisionType.Int8, PrecisionType.Bfloat16,
    )  # fmt: skip

    def __init__(self, model_dir: str | Path | None = None, params: str | Path | None = None) -> None:
        self._device, self._precision, self._buckets = "cpu", "float32", ()
        self._values: dict[str, object] = dict(Config._DEFAULTS)
        self._folder: Path | None = None
        self._program: tuple[Path | Source, Path | Source | None] | None = None
        if model_dir is not None:
            self.set_model(model_dir, params)
        elif params is not None:
            raise InputError(
                "parameters without a program", received=params, fix="Config(program, parameters)"
            )

    def set_model(self, model_dir: str | Path, params: str | Path | None = None) -> None:
        """An artifact's folder, or two files of one, as Paddle's programs name them; Paddle's own program and its
        parameters, or the folder with both; an ONNX file.

        Raises:
            InputError: the two are no files of one artifact, and no program with its parameters.
        """
        folder = Path(model_dir)
        self._program = None
        prefix = folder.with_suffix("")  # paddle.jit.save(layer, prefix) of framework.paddle writes a folder
        if params is not None and folder.suffix in (".pdmodel", ".json") and (prefix / CONFIG).is_file():
            self._folder = prefix
            return
        if folder.suffix in (".pdmodel", ".json", ".onnx") or folder.name == "__model__":
            self._program = folder, None if params is None else Path(params)
            folder = folder.parent
        elif params is not None:
            if not (folder.parent / CONFIG).is_file() or folder.suffix not in ("", ".jaxexp"):
                raise InputError(
                    "the files of a model must be an artifact or a program with its weights",
                    received=f"{model_dir}, {params}",
                    allowed="Config('inference_model/<name>'), two files in that folder, or Paddle's program "
                    "(.pdmodel or .json) and its .pdiparams",
                )
            folder = folder.parent
        elif not any(folder.glob("*.jaxexp")) and (program := find_paddle_program(folder)) is not None:
            self._program = program, None
        self._folder = folder

    def set_prog_file(self, program: str | Path) -> None:
        """The program; its parameters are those of `set_params_file`, or stand beside it."""
        self.set_model(
            program, self._program[1] if self._program and isinstance(self._program[1], Path) else None
        )

    def set_params_file(self, params: str | Path) -> None:
        """The parameters of the program that `set_prog_file` or `set_model` named, or will."""
        program = self._program[0] if self._program else None
        self._program = program if isinstance(program, Path) else Path(), Path(params)

    def set_model_buffer(
        self, program: bytes, program_size: int, params: bytes = b"", params_size: int | None = None
    ) -> None:
        """Paddle's program and its parameters, or an ONNX file, as bytes: nothing is read from the disk.

        Raises:
            InputError: a size is not that of its bytes.
        """
        sources = []
        for content, size, name in ((program, program_size, "program"), (params, params_size, "parameters")):
            data = bytes(content)
            if size is not None and not 0 <= size <= len(data):
                raise InputError(
                    f"the size of the {name} is not that of the bytes", received=size, allowed=len(data)
                )
            sources.append(Source(f"{name} in memory", memoryview(data[:size])))
        self._folder, self._program = None, (sources[0], sources[1] if sources[1].data.nbytes else None)

    def model_from_memory(self) -> bool:
        """Whether `set_model_buffer` gave the model."""
        return self._program is not None and isinstance(self._program[0], Source)

    def model_dir(self) -> str:
        """The folder, or "" where there is none yet."""
        return "" if self._folder is None else str(self._folder)

    def prog_file(self) -> str:
        if self._program is not None:
            return str(self._program[0]) if isinstance(self._program[0], Path) else ""
        return "" if self._folder is None else str(self._folder / program_file("float32"))

    def params_file(self) -> str:
        if self._program is None:
            return "" if self._folder is None else str(self._folder / WEIGHTS)
        program, params = self._program
        if isinstance(program, Source) or isinstance(params, Source):
            return ""
        return str(params or program.with_suffix(".pdiparams"))

    def check_model(self) -> None:
        """Raises: InputError, where no model is named yet."""
        if self._folder is None and (self._program is None or self._program[0] == Path()):
            raise InputError(
                "no model is named",
                where="Config",
                allowed="Config(folder), Config(program, parameters), set_model or set_model_buffer",
            )

    def enable_use_gpu(
        self, memory_pool_init_size_mb: int = 100, device_id: int = 0, precision: PrecisionType | None = None
    ) -> None:
        """Run on GPU `device_id`. The memory pool is jax's (XLA_PYTHON_CLIENT_MEM_FRACTION)."""
        self._device = f"gpu:{device_id}"
        self._values["memory_pool_init_size_mb"] = memory_pool_init_size_mb
        if precision is not None:
            self.set_precision(precision)

    def disable_gpu(self) -> None:
        self._device = "cpu"

    def use_gpu(self) -> bool:
        return self._device.startswith("gpu")

    def enable_custom_device(self, device_type: str, device_id: int = 0, *_: object) -> None:
        """Run on a device of this kind, such as "tpu"."""
        self._device = f"{device_type}:{device_id}"

    def gpu_device_id(self) -> int:
        return int(self._device.partition(":")[2] or 0) if self.use_gpu() else -1

    def enable_onnxruntime(self) -> None:
        """Run an ONNX file, or an artifact that holds one, with ONNX Runtime, which is an extra. Paddle's programs stay
        with XLA: `oar convert PROGRAM FOLDER --format onnx` makes such an artifact of one."""
        self._values["onnxruntime_enabled"] = True

    def disable_onnxruntime(self) -> None:
        self._values["onnxruntime_enabled"] = False

    def onnxruntime_enabled(self) -> bool:
        return bool(self._values.get("onnxruntime_enabled"))

    def shape_range_info_collected(self) -> bool:
        """Whether shapes were asked for: they are not collected, since a program takes any."""
        return bool(self._values["shape_range_info_path"])

    def pass_builder(self) -> PassBuilder:
        """Paddle's list of passes over a program, which is empty: XLA has its own."""
        return PassBuilder()

    def set_precision(self, precision: PrecisionType | str) -> None:
        """Raises: InputError: int8, which is not there yet."""
        name = precision.value if isinstance(precision, PrecisionType) else precision
        if name == "int8":
            raise InputError(
                "there is no int8 program", received=precision, allowed="Float32, Bfloat16, Half"
            )
        self._precision = "bfloat16" if name == "float16" else name

    def set_optim_cache_dir(self, folder: str | Path) -> None:
        """Keep compiled programs here instead of in OAR_HOME."""
        enable_compilation_cache(folder)

    def set_batch_buckets(self, sizes: Sequence[int]) -> None:
        """Pad batches up to one of these sizes, so that few shapes are compiled. Larger batches run as they are."""
        if not sizes or min(sizes) < 1:
            raise InputError("batch buckets are positive numbers", received=list(sizes), allowed="[1, 4, 16]")
        self._buckets = tuple(sorted(sizes))

    def _switch(
        self, name: str, query: str, standard: object, value: object = None, *_: object, **__: object
    ) -> None:
        self._values[query] = standard if value is None or name.startswith(("enable", "disable")) else value
        log.info("Config.%s has no effect: XLA compiles the program", name)

    def summary(self) -> str:
        model, buckets = self._folder or "a model in memory", self._buckets or "off"
        return f"{model} on {self._device} in {self._precision}, batch buckets {buckets}"

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name in Config._SWITCHES:
            return functools.partial(self._switch, name, *Config._SWITCHES[name])
        if name in Config._VALUES:
            return functools.partial(self._switch, name, Config._VALUES[name], None)
        queries = {query for query, _ in Config._SWITCHES.values()} | {
            *Config._VALUES.values(),
            *Config._DEFAULTS,
        }
        if name in queries:
            standard = cpu_count() if name == "cpu_math_library_num_threads" else False
            return lambda: self._values.get(name, standard)
        if name in Config._OFF:
            return lambda *args, **kwargs: False
        if name in Config._NO_EFFECT:

            def ignored(*args: object, **kwargs: object) -> None:
                log.info("Config.%s has no effect: XLA compiles the program", name)

            return ignored
        if name in Config._NO_DEVICE:

            def refuse(*args: object, **kwargs: object) -> None:
                raise InputError(
                    "XLA drives no such device or engine",
                    where=f"Config.{name}",
                    received=name,
                    allowed="enable_use_gpu, disable_gpu, enable_custom_device('tpu')",
                )

            return refuse
        close = nearest(name, (*Config._SWITCHES, *Config._VALUES, *Config._NO_EFFECT, *vars(Config)))
        hint = f"; did you mean {close!r}?" if close else ""
        raise AttributeError(f"Config has no attribute {name!r}{hint}", name=name, obj=self)

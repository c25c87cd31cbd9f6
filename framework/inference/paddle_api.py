"""The surface of paddle.inference over an artifact: Config, create_predictor, handles, clone.

    config = Config("inference_model/resnet50")
    predictor = create_predictor(config)
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.copy_from_cpu(batch)
    predictor.run()
    result = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()

`clone()` shares program and weights and has handles of its own: one clone per thread, as in Paddle. `run([arrays])`
touches no handle and may be called from any thread.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from framework.core.compilation import enable_compilation_cache, jax_version
from framework.core.dtypes import narrow
from framework.core.errors import InputError, ShapeError, nearest
from framework.core.lazy import LazyModule
from framework.core.process import cpu_count
from framework.export.artifact import CONFIG, WEIGHTS, Artifact, load_artifact, program_file
from framework.inference.engine import Engine, TensorShape
from framework.inference.runtime import Runtime

if TYPE_CHECKING:
    import jax.numpy as jnp

    from framework.inference.graph_engine import GraphEngine
else:
    jnp = LazyModule("jax.numpy")

log = logging.getLogger("oar")
# What Paddle's export commands call the program in a folder.
_PROGRAMS = ("inference.pdmodel", "model.pdmodel", "__model__", "inference.json", "model.json")


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


class DataType(enum.Enum):
    """Types of inputs and outputs, by numpy's names."""

    FLOAT64, FLOAT32, FLOAT16, BFLOAT16 = "float64", "float32", "float16", "bfloat16"
    INT64, INT32, INT8, UINT8, BOOL = "int64", "int32", "int8", "uint8", "bool"


class Config:
    """What to run and where: an artifact folder, Paddle's program with its parameters, the folder of an upstream
    export, or an ONNX file. Paddle's switches for other engines are accepted and logged."""

    # Switches of Paddle's other engines, and of passes over its programs.
    _NO_EFFECT = frozenset(
        """
        collect_shape_range_info delete_pass disable_glog_info disable_mkldnn disable_mkldnn_fc_passes
        disable_onnxruntime enable_cinn enable_dlnne enable_lite_engine enable_low_precision_io
        enable_memory_optim enable_mkldnn enable_mkldnn_bfloat16 enable_mkldnn_int8 enable_new_executor
        enable_new_ir enable_onnxruntime enable_ort_optimization enable_profile enable_quantizer
        enable_save_optim_model enable_tensorrt_dla enable_tensorrt_engine enable_tensorrt_explicit_quantization
        enable_tensorrt_inspector enable_tensorrt_memory_optim enable_tensorrt_varseqlen
        enable_tuned_tensorrt_dynamic_shape exp_disable_mixed_precision_ops exp_disable_tensorrt_ops
        exp_enable_mixed_precision_ops exp_enable_use_cutlass mark_trt_engine_outputs set_bfloat16_op
        set_cpu_math_library_num_threads set_mkldnn_cache_capacity set_mkldnn_op set_optimization_level
        set_tensorrt_optimization_level set_trt_dynamic_shape_info switch_ir_debug switch_ir_optim
        switch_specify_input_names switch_use_feed_fetch_ops
        """.split()  # noqa: SIM905
    )
    # Whether an engine of Paddle's is on, or what it is told: none of them is there.
    _OFF = frozenset(
        """
        glog_info_disabled lite_engine_enabled mkldnn_enabled mkldnn_int8_enabled model_from_memory
        onnxruntime_enabled shape_range_info_collected tensorrt_dla_enabled tensorrt_dynamic_shape_enabled
        tensorrt_engine_enabled tensorrt_explicit_quantization_enabled tensorrt_inspector_enabled
        tensorrt_varseqlen_enabled trt_allow_build_at_runtime tuned_tensorrt_dynamic_shape use_feed_fetch_ops_enabled
        use_opencl use_xpu
        """.split()  # noqa: SIM905
    )
    _NO_DEVICE = frozenset(
        {"enable_ipu", "enable_opencl", "enable_xpu", "set_xpu_device_id", "set_xpu_config"}
    )

    def __init__(self, model_dir: str | Path, params: str | Path | None = None) -> None:
        self._device, self._precision, self._buckets = "cpu", "float32", ()
        self.set_model(model_dir, params)

    def set_model(self, model_dir: str | Path, params: str | Path | None = None) -> None:
        """An artifact's folder, or two files of one, as Paddle's programs name them; Paddle's own program and its
        parameters, or the folder with both; an ONNX file.

        Raises:
            InputError: the two are no files of one artifact, and no program with its parameters.
        """
        folder = Path(model_dir)
        self._program: tuple[Path, Path | None] | None = None
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
        elif not any(folder.glob("*.jaxexp")) and (program := _find_program(folder)) is not None:
            self._program = program, None
        self._folder = folder

    def model_dir(self) -> str:
        return str(self._folder)

    def prog_file(self) -> str:
        return str(self._program[0] if self._program else self._folder / program_file("float32"))

    def params_file(self) -> str:
        if self._program is None:
            return str(self._folder / WEIGHTS)
        program, params = self._program
        return str(params or program.with_suffix(".pdiparams"))

    def enable_use_gpu(
        self, memory_pool_init_size_mb: int = 100, device_id: int = 0, precision: PrecisionType | None = None
    ) -> None:
        """Run on GPU `device_id`. The memory pool is jax's (XLA_PYTHON_CLIENT_MEM_FRACTION)."""
        self._device = f"gpu:{device_id}"
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

    def cpu_math_library_num_threads(self) -> int:
        """The CPUs of this process: XLA uses all of them."""
        return cpu_count()

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

    def summary(self) -> str:
        return (
            f"{self._folder} on {self._device} in {self._precision}, batch buckets {self._buckets or 'off'}"
        )

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name in Config._OFF:
            return lambda *args, **kwargs: False
        if name in Config._NO_EFFECT:

            def ignored(*args: object, **kwargs: object) -> None:
                log.info("Config.%s has no effect: XLA compiles the program", name)

            return ignored
        if name in Config._NO_DEVICE:

            def refuse(*args: object, **kwargs: object) -> None:
                raise InputError(
                    "XLA drives no such device",
                    where=f"Config.{name}",
                    received=name,
                    allowed="enable_use_gpu, disable_gpu, enable_custom_device('tpu')",
                )

            return refuse
        close = nearest(name, (*Config._NO_EFFECT, *vars(Config)))
        hint = f"; did you mean {close!r}?" if close else ""
        raise AttributeError(f"Config has no attribute {name!r}{hint}", name=name, obj=self)


class Handle:
    """One input or output of a predictor."""

    def __init__(self, name: str, aval: TensorShape) -> None:
        self.name, self._aval = name, aval
        self.value: np.ndarray | None = None

    def copy_from_cpu(self, array: np.ndarray) -> None:
        self.value = narrow(np.array(array), self.name)

    def share_external_data(self, array: np.ndarray) -> None:
        """As copy_from_cpu without the copy: the array must stay as it is until `run` is done."""
        self.value = narrow(np.asarray(array), self.name)

    def reshape(self, shape: Sequence[int]) -> None:
        """Accepted for Paddle's calling sequence: the shape comes with the array."""

    def copy_to_cpu(self) -> np.ndarray:
        """A copy, which may be written to. Raises: ShapeError before the first run."""
        if self.value is None:
            raise ShapeError("nothing to read yet", where=self.name, fix="call predictor.run() first")
        return np.array(self.value)

    def shape(self) -> list[int]:
        if self.value is not None:
            return list(self.value.shape)
        return [n if isinstance(n, int) else -1 for n in self._aval.shape]

    def type(self) -> str:
        return str(self._aval.dtype)

    def lod(self) -> list[list[int]]:
        """No levels: arrays are padded here, and what is padding is another array."""
        return []

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Raises: ShapeError, where there are levels."""
        if lod:
            raise ShapeError(
                "inputs have no levels (LoD)", where=self.name, received=lod, fix="pad them to one length"
            )


class Predictor:
    """Runs an artifact, or a graph of another framework. Made by `create_predictor`."""

    def __init__(
        self, config: Config, engine: Engine | None = None, artifact: Artifact | None = None
    ) -> None:
        self._config = config
        graph = engine if config._program is not None else None
        if config._program is not None and graph is None:
            graph = engine = _open_graph(config, *config._program)
        self._artifact = Artifact({}) if graph else artifact or load_artifact(config.model_dir())
        if engine is None:
            programs = self._artifact.programs
            if not programs:
                raise InputError(
                    "this artifact is a pipeline of several programs",
                    where=config.model_dir(),
                    received=", ".join(self._artifact.stages),
                    allowed="the folder of one stage",
                    fix="use the domain's predictor, framework.workflow.predictor(folder), or Config(folder/stage)",
                )
            engine = Runtime(config._device, config._precision).open(self._artifact)
        self._engine = engine
        names = list(engine.inputs) if graph else self._artifact.input_names(engine.inputs)
        self._inputs = {name: Handle(name, engine.inputs[name]) for name in names}
        self._outputs = {name: Handle(name, aval) for name, aval in engine.outputs.items()}

    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """As `run([arrays])` returns them: sorted, or in the order of another framework's graph."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Handle:
        return _handle(self._inputs, name, "input")

    def get_output_handle(self, name: str) -> Handle:
        return _handle(self._outputs, name, "output")

    def clone(self) -> Predictor:
        """A predictor with handles of its own over the same program, weights and compiled shapes."""
        return Predictor(self._config, self._engine, self._artifact)

    def run(self, inputs: Sequence[np.ndarray] | None = None) -> list[np.ndarray] | bool:
        """Without arguments from the input to the output handles (returns True); with arrays it returns arrays."""
        if inputs is not None:
            if len(inputs) != len(self._inputs):
                raise ShapeError(
                    "wrong number of inputs", received=len(inputs), allowed=", ".join(self._inputs)
                )
            arrays = {name: narrow(np.asarray(array), name) for name, array in zip(self._inputs, inputs)}
            return list(self._run(arrays).values())
        values = {name: handle.value for name, handle in self._inputs.items() if handle.value is not None}
        missing = [name for name in self._inputs if name not in values]
        if missing:
            raise ShapeError(
                "an input was not set",
                received=f"nothing for {', '.join(missing)}",
                allowed=", ".join(self._inputs),
                fix="call get_input_handle(name).copy_from_cpu(array) for each, then run()",
            )
        for name, value in self._run(values).items():
            self._outputs[name].value = value
        return True

    def clear_intermediate_tensor(self) -> None:
        """Nothing to clear: a program's intermediate arrays live while it runs."""

    def try_shrink_memory(self) -> int:
        """0: there are no bytes to give back."""
        return 0

    def _run(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        declared = self._engine.inputs
        symbols = (a.shape[0] for a in declared.values() if a.shape and not isinstance(a.shape[0], int))
        batch = str(next(symbols, None))
        count = next((len(a) for n, a in arrays.items() if a.ndim and _has(declared[n], batch)), 0)
        bucket = next((size for size in self._config._buckets if size >= count), count)
        if count == 0 or bucket == count:
            return self._engine(arrays)
        padded = {
            n: np.concatenate([a, np.repeat(a[-1:], bucket - count, 0)]) if _has(declared[n], batch) else a
            for n, a in arrays.items()
        }
        out = self._engine(padded)
        return {n: a[:count] if _has(self._engine.outputs[n], batch) else a for n, a in out.items()}


def _find_program(folder: Path) -> Path | None:
    """Paddle's program in an upstream export folder, or None."""
    return next((folder / name for name in _PROGRAMS if (folder / name).is_file()), None)


def _open_graph(config: Config, program: Path, params: Path | None) -> GraphEngine:
    if config._precision != "float32":
        raise InputError(
            "a graph of another framework runs in its own precision",
            where=str(program),
            received=config._precision,
            allowed="float32",
            fix="convert it into an artifact first: oar convert",
        )
    from framework.inference.graph_engine import GraphEngine, load_graph  # here: it imports all layers

    return GraphEngine(load_graph(program, params), Runtime(config._device).find_device())


def _has(aval: TensorShape, batch: str) -> bool:
    """Whether the first size of an input or output is the batch."""
    return bool(aval.shape) and str(aval.shape[0]) == batch


def _handle(handles: dict[str, Handle], name: str, kind: str) -> Handle:
    if name not in handles:
        raise InputError(f"the program has no such {kind}", received=repr(name), allowed=", ".join(handles))
    return handles[name]


def create_predictor(config: Config) -> Predictor:
    """A predictor for the model of `config`, on its device and in its precision.

    Raises:
        FormatError: the folder is no artifact, or one that this jax cannot read.
        InputError: the artifact is a pipeline of several programs, or has no program of the precision.
        DeviceError: there is no such device, or the program was not lowered for it.
    """
    return Predictor(config)


class PredictorPool:
    """So many predictors over one program and one copy of the weights: one for each thread.

    Raises:
        InputError: less than one predictor is asked for, or another one than there are.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        if size < 1:
            raise InputError(
                "a pool holds predictors", where="PredictorPool", received=size, allowed="1 or more"
            )
        first = create_predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, index: int) -> Predictor:
        """The predictor of this number. Paddle spells it so."""
        return self.retrieve(index)

    def retrieve(self, index: int) -> Predictor:
        """The predictor of this number, from 0."""
        if not 0 <= index < len(self._predictors):
            raise InputError(
                "the index of the predictor is out of range",
                received=index,
                allowed=f"0 to {len(self._predictors) - 1}",
            )
        return self._predictors[index]


Tensor = Handle  # Paddle's name of it


def get_version() -> str:
    """The versions of Oar and jax, a line each."""
    return f"version: {metadata.version('oar-toolkit')}\njax: {jax_version()}\n"


def get_trt_compile_version() -> tuple[int, int, int]:
    """(0, 0, 0), which says that there is no TensorRT."""
    return (0, 0, 0)


get_trt_runtime_version = get_trt_compile_version


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """Bytes of one number of this type."""
    return jnp.dtype(dtype.value).itemsize

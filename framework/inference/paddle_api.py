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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.dtypes import narrow
from framework.core.errors import InputError, ShapeError, nearest
from framework.export.artifact import Artifact, load_artifact
from framework.inference.engine import Engine
from framework.inference.runtime import Runtime
from framework.nn.compilation import enable_compilation_cache

log = logging.getLogger("oar")


class PrecisionType(enum.Enum):
    """The precisions that a `Config` takes; the values are those of `framework.inference.choose_precision`."""

    Float32 = "float32"
    Bfloat16 = "bfloat16"


class Config:
    """What to run and where. Takes an artifact folder; Paddle's switches for other engines are accepted and logged."""

    _NO_EFFECT = frozenset(
        """
        collect_shape_range_info delete_pass disable_glog_info disable_mkldnn enable_memory_optim enable_mkldnn
        enable_mkldnn_bfloat16 enable_tensorrt_engine enable_tuned_tensorrt_dynamic_shape
        set_cpu_math_library_num_threads set_mkldnn_cache_capacity set_trt_dynamic_shape_info switch_ir_debug
        switch_ir_optim switch_use_feed_fetch_ops
        """.split()  # noqa: SIM905
    )

    def __init__(self, model_dir: str | Path, params: str | Path | None = None) -> None:
        if params is not None:
            raise InputError(
                "Config takes one artifact folder, not a program and a parameter file",
                received=f"{model_dir}, {params}",
                allowed="Config('inference_model/<name>')",
                fix="convert Paddle's inference model with tools/export_model.py",
            )
        self.model_dir = Path(model_dir)
        self._device, self._precision, self._buckets = "cpu", "float32", ()

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

    def set_precision(self, precision: PrecisionType | str) -> None:
        self._precision = precision.value if isinstance(precision, PrecisionType) else precision

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
            f"{self.model_dir} on {self._device} in {self._precision}, batch buckets {self._buckets or 'off'}"
        )

    def __getattr__(self, name: str) -> Any:
        if name not in Config._NO_EFFECT:
            close = nearest(name, (*Config._NO_EFFECT, *vars(Config)))
            hint = f"; did you mean {close!r}?" if close else ""
            raise AttributeError(f"Config has no attribute {name!r}{hint}", name=name, obj=self)

        def ignored(*args: Any, **kwargs: Any) -> None:
            log.info("Config.%s has no effect: XLA compiles the program", name)

        return ignored


class Handle:
    """One input or output of a predictor."""

    def __init__(self, name: str, aval: Any) -> None:
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


class Predictor:
    """Runs an artifact. Made by `create_predictor`."""

    def __init__(
        self, config: Config, engine: Engine | None = None, artifact: Artifact | None = None
    ) -> None:
        self._config = config
        self._artifact = artifact or load_artifact(config.model_dir)
        if engine is None:
            programs = self._artifact.programs
            if not programs:
                raise InputError(
                    "this artifact is a pipeline of several programs",
                    where=config.model_dir,
                    received=", ".join(self._artifact.stages),
                    allowed="the folder of one stage",
                    fix="use the domain's predictor, e.g. ocr.predictor(folder), or Config(folder/stage)",
                )
            engine = Runtime(config._device, config._precision).open(self._artifact)
        self._engine = engine
        names = self._artifact.input_names(engine.inputs)
        self._inputs = {name: Handle(name, engine.inputs[name]) for name in names}
        self._outputs = {name: Handle(name, aval) for name, aval in engine.outputs.items()}

    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """Sorted, as `run([arrays])` returns them."""
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
        missing = [name for name, handle in self._inputs.items() if handle.value is None]
        if missing:
            raise ShapeError(
                "an input was not set",
                received=f"nothing for {', '.join(missing)}",
                allowed=", ".join(self._inputs),
                fix="call get_input_handle(name).copy_from_cpu(array) for each, then run()",
            )
        for name, value in self._run({n: h.value for n, h in self._inputs.items()}).items():
            self._outputs[name].value = value
        return True

    def _run(self, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
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


def _has(aval: Any, batch: str) -> bool:
    """Whether the first size of an input or output is the batch."""
    return bool(aval.shape) and str(aval.shape[0]) == batch


def _handle(handles: dict[str, Handle], name: str, kind: str) -> Handle:
    if name not in handles:
        raise InputError(f"the program has no such {kind}", received=repr(name), allowed=", ".join(handles))
    return handles[name]


def create_predictor(config: Config) -> Predictor:
    """A predictor for the artifact folder of `config`, on its device and in its precision.

    Raises:
        FormatError: the folder is no artifact, or one that this jax cannot read.
        InputError: the artifact is a pipeline of several programs, or has no program of the precision.
        DeviceError: there is no such device, or the program was not lowered for it.
    """
    return Predictor(config)

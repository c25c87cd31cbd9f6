"""What the tasks of decoders share: how they start from weights, and what they say of themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from framework.config import build
from framework.core.errors import ConfigError
from framework.core.transform import SampleT
from framework.engine.task import Task
from framework.interop.weights.model_folder import CONFIG, is_paddles
from framework.nn.adapters import ADAPTER_LEAVES
from framework.nn.quantized import quantize_linears
from framework.workflow.domain.weights import checkpoint_weights, load_state_into, load_weights_into
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_weights import open_weights, read_into


class DecoderTask(Task[SampleT, Decoder]):
    """Base of the tasks that train a decoder."""

    label_arrays: ClassVar[tuple[str, ...]] = ()

    def check(self, model: Decoder, labels: tuple[str, ...]) -> None:
        """Raises: ConfigError, where the model is no decoder."""
        if not isinstance(model, Decoder):
            raise ConfigError(
                "this task trains a decoder",
                where="model.type",
                received=type(model).__name__,
                allowed="such as Llama, Qwen2 or Qwen3",
            )

    def load_pretrained(self, model: Decoder, path: Path) -> bool:
        """Start from a file of Hugging Face or PaddleNLP, or from a checkpoint. Of a model with adapters that is what
        lies below them, and the adapters where the checkpoint has some."""
        load_decoder_weights(model, path)
        return True


def load_decoder_weights(model: Decoder, path: Path) -> None:
    """Weights from a model's folder (the path of its weights or of their index), or from a checkpoint, in float32.

    Raises:
        FormatError, WeightError: the weights cannot be read, or do not fit.
    """
    if path.is_file() and (path.parent / CONFIG).is_file():
        base = _without_adapter(model)
        read_into(base, open_weights(path), path, "float32", is_paddles(path))
    elif path.is_dir():
        state = checkpoint_weights(path)
        base = model if _has_adapters(state) else _without_adapter(model)
        load_state_into(base, state)
    else:
        base = _without_adapter(model)
        load_weights_into(base, path)
    if base is not model:
        assert model.config.adapter is not None
        if model.config.adapter.weights is not None:
            quantize_linears(base, model.config.adapter.weights)
        ours = dict(model.named_parameters())
        for name, parameter in base.named_parameters():
            ours[name].set_value(parameter.value)


def _without_adapter(model: Decoder) -> Decoder:
    """The model, or one of the same config without adapters."""
    if model.config.adapter is None:
        return model
    return build(dataclasses.replace(model.config, adapter=None))


def _has_adapters(names: Iterable[str]) -> bool:
    """Whether names of arrays are those of adapters."""
    return any(name.rpartition(".")[2] in ADAPTER_LEAVES for name in names)

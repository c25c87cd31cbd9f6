"""Official weights into the models of this package, whatever form either has."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TypeVar

import numpy as np

from framework.io.interop import load_program, load_weights, weighted_ops
from framework.io.interop.detect import detect
from framework.io.interop.match import match_weights
from framework.io.interop.source import read_source
from ocr.models.crnn import CRNN
from ocr.models.dbnet import DBNet
from ocr.models.text_classifier import TextClassifier
from ocr.models.text_recognizer import TextRecognizer
from zoo.layers.reparam import deploy_state

_PROGRAMS = ("onnx", "pdmodel", "pir")
_Model = TypeVar("_Model", DBNet, TextRecognizer, CRNN, TextClassifier)


def load_weights_into(model: _Model, path: str | Path, params: str | Path | None = None) -> _Model:
    """Load a file of weights into `model`, which is returned.

    An exported program (ONNX, .pdmodel, PIR .json) is matched by the order of its operations; it fits the deploy form.
    A state dict (.pdparams, .safetensors) goes by name; a training checkpoint is re-parameterised on its way into a
    deploy form. Entries that begin with one of `model.training_only` may be left over, and no others.

    Args:
        params: The parameter file of a Paddle program; by default the one beside it.

    Raises:
        FormatError: the file cannot be read.
        WeightError: the weights do not fit the model.
    """
    if detect(read_source(path)) in _PROGRAMS:
        ops = weighted_ops(load_program(path, params))
        model.set_state_dict(match_weights(model, ops, model.example_shape))
        return model
    return load_state_into(model, load_weights(path))


def load_state_into(model: _Model, state: dict[str, np.ndarray]) -> _Model:
    """As `load_weights_into`, from named arrays in the training form or in the form of the model."""
    ours = model.state_shapes()
    if model.config.deploy:
        trainable = type(model)(dataclasses.replace(model.config, deploy=False))  # type: ignore[arg-type]
        if len(state.keys() & trainable.state_shapes().keys()) > len(state.keys() & ours.keys()):
            state = deploy_state(load_state_into(trainable, state))
    kept = {k: v for k, v in state.items() if k in ours or not k.startswith(model.training_only)}
    model.set_state_dict(kept)
    return model

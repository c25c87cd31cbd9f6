"""Inputs of a program from the data of its configuration: what ranges are calibrated and ONNX files compared with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from framework.core.errors import InputError
from framework.engine.experiment import Experiment
from framework.export.formats.onnx.check import NamedArrays
from framework.io.dataset import Subset
from framework.workflow.train.loaders import make_loader


def example_inputs(experiment: Experiment, names: Iterable[str], count: int) -> Iterator[NamedArrays]:
    """Inputs of the program from the training data, prepared as images and texts are that the model will see; from
    the evaluation's where there are none to train on."""
    config = experiment.data.train or experiment.data.eval
    if config is None or experiment.task is None:
        raise InputError(
            "there is nothing to calibrate with",
            where="data",
            received="a configuration without data",
            fix="--data FOLDER, with images as those that the model will read",
        )
    total = len(config.dataset)
    spread = np.linspace(0, total - 1, min(count, total)).round().astype(int)
    config = dataclasses.replace(
        config,
        dataset=Subset(config.dataset, spread.tolist()),
        transforms=experiment.predict.transforms or (),
        batch_size=min(8, len(spread)),
        buckets=experiment.predict.buckets,
        sampler=None,
        num_workers=0,
    )
    names = list(names)
    for batch in make_loader(config, experiment.task, 0, train=False).batches(epoch=0):
        keep = batch.data["valid"]
        yield {name: batch.data[name][keep] for name in names}

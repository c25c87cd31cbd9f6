"""A model of a few bytes: its scores say the mean of the image, so that a result of another client is seen."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from PIL import Image

from framework.export import Artifact, TensorSpec, lower_program

SIZE = 8


def make_artifact(folder: Path, labels: tuple[str, str] = ("bright", "dark"), batch_size: int = 4) -> Path:
    """A classifier of images of any size: the score of the first label is mean / 255, that of the second the rest."""

    def fn(weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
        mean = inputs["image"].astype("float32").mean(axis=(1, 2, 3)) / 255 + weights["zero"]
        return {"scores": jnp.stack([mean, 1 - mean], axis=1)}

    weights = {"zero": np.zeros((), np.float32)}
    spec = {"image": TensorSpec(("n", SIZE, SIZE, 3), "uint8")}
    program = lower_program(fn, weights, spec, platforms=("cpu",))
    config = {
        "domain": "classification",
        "name": "tiny",
        "inputs": {"image": [["n", SIZE, SIZE, 3], "uint8"]},
        "labels": list(labels),
        "batch_size": batch_size,
        "transforms": [{"type": "Resize", "size_hw": [SIZE, SIZE]}],
    }
    return Artifact(config, {"float32": program}, weights).save(folder)


def png(value: int, width: int = 16, height: int = 12) -> bytes:
    """A grey image as a PNG."""
    out = io.BytesIO()
    Image.fromarray(np.full((height, width, 3), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


def score_of(answer: bytes | str | Mapping[str, Any], label: str = "bright") -> float:
    """The score of a label in an answer."""
    facts = json.loads(answer) if isinstance(answer, bytes | str) else answer
    return next(one["score"] for one in facts["classes"] if one["label"] == label)

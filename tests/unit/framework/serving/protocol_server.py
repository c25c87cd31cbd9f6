"""A server in this process for tests of its protocols, with a model whose scores say the mean of the image."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from PIL import Image
from starlette.testclient import TestClient

from framework.export import Artifact, TensorSpec, lower_program
from framework.serving.app import create_app
from framework.serving.settings import BatchSettings, ModelSettings, ServerSettings


def mean_program(weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The mean of each image as the score of the first class, and what is left to 1 as that of the second."""
    mean = inputs["image"].astype("float32").mean(axis=(1, 2, 3)) / 255 + weights["zero"]
    return {"scores": jnp.stack([mean, 1 - mean], axis=1)}


def classifier(name: str) -> Artifact:
    """Of two classes, light and dark."""
    weights = {"zero": np.zeros((), np.float32)}
    program = lower_program(mean_program, weights, {"image": TensorSpec(("n", 8, 8, 3), "uint8")}, ("cpu",))
    config = {
        "domain": "classification",
        "name": name,
        "labels": ["light", "dark"],
        "batch_size": 4,
        "transforms": [{"type": "Resize", "size_hw": [8, 8]}],
    }
    return Artifact(config, {"float32": program}, weights)


@contextlib.contextmanager
def serve(folder: Path, **settings: Any) -> Iterator[TestClient]:
    """A server that is ready, with the model of a folder as "mean"."""
    model = ModelSettings(str(folder), "mean", batch=BatchSettings(wait_ms=2))
    server = ServerSettings((model,), reload_seconds=0.0, **settings)
    with TestClient(create_app(server), raise_server_exceptions=False) as client:
        ends = time.monotonic() + 120
        while client.get("/readyz").status_code != 200:
            assert time.monotonic() < ends, client.get("/readyz").text
            time.sleep(0.02)
        yield client


def grey(value: int) -> np.ndarray:
    """An image [12, 16, 3]."""
    return np.full((12, 16, 3), value, np.uint8)


def file_of(*values: int, format: str = "PNG") -> bytes:
    """The file of a grey image, or of several pages of one."""
    first, *others = (Image.fromarray(grey(value)) for value in values)
    out = io.BytesIO()
    more = {"save_all": True, "append_images": others} if others or format == "PDF" else {}
    first.save(out, format, **more)
    return out.getvalue()

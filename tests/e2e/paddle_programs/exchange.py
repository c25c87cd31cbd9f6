"""What the programs beside this file take from outside and leave behind: data, weights to start from, numbers.

OAR_SHARED        the folder with data/<set>; without it the programs make data of their own
PROGRAM_STEPS     training steps, 20
PROGRAM_NOISE     change of the weights from numpy, relative: shows how chaotic a program is
PROGRAM_WEIGHTS   a folder: <program>.<name>.pdparams is loaded from there, or written there first. Without it weights
                  come from numpy, the same in every run.
"""

import os
import sys
from pathlib import Path

import numpy as np
import paddle

STEPS = int(os.environ.get("PROGRAM_STEPS", "20"))
results = {}


def data(name):
    """The folder of a data set, or None."""
    folder = Path(os.environ.get("OAR_SHARED", "")) / "data" / name
    return folder if os.environ.get("OAR_SHARED") and folder.is_dir() else None


def report(name, value):
    """Note a number, or all of a Tensor, for the comparison of runs."""
    values = value.numpy() if isinstance(value, paddle.Tensor) else value
    results.setdefault(name, []).extend(float(x) for x in np.asarray(values, np.float64).reshape(-1))


def start(layer, name="model"):
    """Give a layer the weights that every run starts from."""
    if os.environ.get("PROGRAM_WEIGHTS"):
        file = Path(os.environ["PROGRAM_WEIGHTS"]) / f"{Path(sys.argv[0]).stem}.{name}.pdparams"
        if not file.exists():
            paddle.save(layer.state_dict(), str(file))
        layer.set_state_dict(paddle.load(str(file)))
        return layer
    rng, noise = np.random.RandomState(0), float(os.environ.get("PROGRAM_NOISE", "0"))
    for name, parameter in layer.named_parameters():
        shape = parameter.shape
        values = rng.standard_normal(shape)
        if len(shape) > 1:  # [in, out] of Linear and Embedding, [out, in, ...] of convolutions
            values /= np.sqrt(shape[0] if len(shape) == 2 else np.prod(shape[1:]))
        else:
            values = 0.02 * values + (0.0 if "bias" in name else 1.0)
        values *= 1 + noise * np.cos(np.arange(values.size)).reshape(shape)
        parameter.set_value(values.astype("float32"))
    return layer

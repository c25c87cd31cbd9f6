"""A file that ends too early, wherever it ends, is a FormatError and nothing else; damaged bytes too."""

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from framework.core.errors import FormatError
from framework.interop import load_program, load_weights, weighted_ops, write_safetensors

WEIGHTS = [
    "state_p2.pdparams",
    "state_p4.pdparams",
    "state_numpy2.pdparams",
    "nested.pdparams",
    "static.pdparams",
]
WEIGHTS += ["bfloat16.pdparams", "adam.pdopt", "legacy.pth", "state.pt", "network.pdiparams", "safetensors"]
PROGRAMS = ["network.onnx", "network.pdmodel", "network_pir.json"]


def opener(data: Path, folder: Path, name: str) -> tuple[bytes, Callable[[bytes], object]]:
    """The bytes of a whole file, and a function that reads other bytes in its place."""
    path = folder / name
    if name == "safetensors":
        write_safetensors(path, load_weights(data / "state_p2.pdparams"), {"by": "oar"})
        content = path.read_bytes()
    else:
        content = (data / name).read_bytes()
    if name == "network.pdiparams":
        (folder / "network.pdmodel").write_bytes((data / "network.pdmodel").read_bytes())
    parameters = data / name.replace(".pdmodel", ".pdiparams").replace(".json", ".pdiparams")

    def read(changed: bytes) -> object:
        path.write_bytes(changed)
        if name not in PROGRAMS:
            return load_weights(path)
        return weighted_ops(load_program(path, None if name == "network.onnx" else parameters))

    return content, read


@pytest.mark.parametrize("name", WEIGHTS + PROGRAMS)
def test_truncated_files(data, tmp_path, name):
    content, read = opener(data, tmp_path, name)
    assert read(content)
    step = 7 if len(content) < 5000 else 7 * 13
    for size in [0, 1, 2, 3, *range(7, len(content), step), len(content) - 1]:
        with pytest.raises(FormatError):
            read(content[:size])


@pytest.mark.parametrize("name", WEIGHTS + PROGRAMS)
def test_damaged_bytes(data, tmp_path, name):
    """Some changes are harmless (a digit of a weight); none may raise anything else or take memory for nothing."""
    content, read = opener(data, tmp_path, name)
    rng = random.Random(name)
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(200):
            changed = bytearray(content)
            for _ in range(rng.choice((1, 1, 3))):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            try:
                read(bytes(changed))
            except FormatError as error:
                assert str(error)
                refused += 1
    assert refused

"""Weights of a folder by the variant in their names, as transformers' save_pretrained(variant=...) writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import load_weights, write_safetensors
from framework.interop.weights.mapped import MappedWeights
from framework.interop.weights.model_folder import find_weights, is_paddles

_ARRAY = np.arange(6, dtype=np.float16).reshape(2, 3)


@pytest.mark.parametrize(
    "index", [None, "model.safetensors.index.fp16.json", "model.safetensors.fp16.index.json"]
)
def test_one_variant_is_read(index: str | None, tmp_path: Path) -> None:
    shard = "model.fp16.safetensors" if index is None else "model.fp16-00001-of-00001.safetensors"
    write_safetensors(tmp_path / shard, {"a": _ARRAY}, {"format": "pt"})
    if index is not None:
        (tmp_path / index).write_text(json.dumps({"weight_map": {"a": shard}}), encoding="utf-8")
    path = find_weights(tmp_path)
    assert path.name == (index or shard) and not is_paddles(path)
    assert np.array_equal(load_weights(path)["a"], _ARRAY)
    assert np.array_equal(MappedWeights(path)["a"], _ARRAY)


def test_files_without_variant_come_first_and_several_variants_are_told(tmp_path: Path) -> None:
    for variant in ("bf16", "fp16"):
        (tmp_path / f"pytorch_model.{variant}.bin").touch()
    with pytest.raises(FormatError, match=r"several variants(.|\n)*the files of one of bf16, fp16 alone"):
        find_weights(tmp_path)
    (tmp_path / "pytorch_model.bin").touch()
    assert find_weights(tmp_path).name == "pytorch_model.bin"


def test_slices_of_tensor_parallel_runs_are_no_variant(tmp_path: Path) -> None:
    (tmp_path / "model_state.tp00.pdparams").touch()
    with pytest.raises(FormatError, match="there are no weights in the folder"):
        find_weights(tmp_path)

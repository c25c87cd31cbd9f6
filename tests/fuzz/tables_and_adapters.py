"""Rows of recommendation, adapters of decoders and sharded checkpoints: how a valid file is made, and what reads it."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

_LINES = {
    "csv": ("rows.csv", 'user,item,label,age\n1,"a ""b""\nc",1,30\n2,c,0,\n' * 2),
    "csv of two signs": ("ratings.dat", "1::2::5::97\n1::3::4::98\n"),
    "criteo": ("day.txt", "\t".join(["1", *map(str, range(13)), *"abcdefghijklmnopqrstuvwxyz"]) + "\n"),
    "slot": ("part.txt", "click:1 6048:12 6048:13 dense:0.5\nclick:0 6048:7\n"),
    "multislot": ("part.txt", "1 1 2 12 13 3 0.1 0.2 0.3\n1 0 1 7 1 0.5\n"),
    "inter": ("ml.inter", "user_id:token\titem_id:token\trating:float\tgenre:token_seq\n1\t2\t4.5\ta b\n"),
    "jsonl": (
        "rows.jsonl",
        '{"user": 1, "items": [1, 2], "name": "a"}\n{"user": 2, "items": [], "name": null}\n',
    ),
}
_LAYER = "model.layers.0.self_attn.q_proj"
_A, _B = np.ones((2, 8), np.float32), np.ones((8, 2), np.float32)


def _written(name: str, text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_text(text, encoding="utf-8", newline="")
        return folder / name

    return make


def _read_rows(format: str, columns: tuple[str, ...] | None = None) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        from zoo.recommendation.data.rows import Rows, RowStream

        rows = Rows((str(path),), format, columns)  # type: ignore[arg-type]
        stream = RowStream((str(path),), format, columns, shuffle=False)  # type: ignore[arg-type]
        return [rows[index] for index in range(len(rows))], list(stream) if format != "csv" else None

    return read


def _parquet(folder: Path) -> Path:
    pyarrow, parquet = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    table = pyarrow.table({"user": [1, 2, 3], "name": ["a", None, "c"], "items": [[1], [], [2, 3]]})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=2)
    return folder / "rows.parquet"


def _adapter(name: str) -> Callable[[Path], Path]:
    """A folder of peft's, or of PaddleNLP's where the file is one of its."""

    def make(folder: Path) -> Path:
        from framework.interop import write_safetensors

        folder = folder / "adapter"
        folder.mkdir()
        settings = {"r": 2, "lora_alpha": 6, "lora_dropout": 0.0, "target_modules": ["q_proj"]}
        if name == "lora_config.json":
            (folder / name).write_text(
                json.dumps({**settings, "target_modules": [".*q_proj.*"]}), encoding="utf-8"
            )
            arrays = {f"{_LAYER}.lora_A": _A.T, f"{_LAYER}.lora_B": _B.T}
            write_safetensors(folder / "peft_model.safetensors", arrays)
            return folder / name
        more = {
            "peft_type": "LORA",
            "bias": "none",
            "rank_pattern": {"q_proj": 2},
            "alpha_pattern": {"q_proj": 6},
        }
        (folder / "adapter_config.json").write_text(json.dumps({**settings, **more}), encoding="utf-8")
        prefix = f"base_model.model.{_LAYER}"
        arrays = {f"{prefix}.lora_A.weight": _A, f"{prefix}.lora_B.weight": _B}
        write_safetensors(folder / "adapter_model.safetensors", arrays)
        return folder / name

    return make


@functools.cache
def _decoder() -> object:
    from framework.config import build
    from zoo.decoder.llama import LlamaConfig

    config = LlamaConfig(
        vocab_size=11, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=12, max_positions=16
    )
    return build(config).eval()


def _read_adapter(path: Path) -> object:
    from framework.core.errors import ConfigError, WeightError
    from nlp.adapter_files import read_adapter

    try:
        return read_adapter(_decoder(), path.parent)  # type: ignore[arg-type]
    except (WeightError, ConfigError):  # of an adapter of another model, or of other settings
        return None


def _sharded(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        import jax.numpy as jnp

        from framework.io.sharded import save_sharded

        saved = save_sharded(folder / "sharded", {"params": {"w": jnp.ones((3, 4)), "b": jnp.zeros(3)}})
        return saved / name

    return make


def _read_sharded(path: Path) -> object:
    from framework.io.sharded import load_arrays, stored_shapes

    return stored_shapes(path.parent), load_arrays(path.parent)


_COLUMNS = {
    "csv of two signs": ("user", "item", "rating", "time"),
    "slot": None,
    "multislot": ("click", "6048", "dense"),
}
FILES: Mapping[str, tuple[Callable[[Path], Path], Callable[[Path], object], bool]] = {
    **{
        f"rows of {kind}": (
            _written(*file),
            _read_rows(kind.split()[0], _COLUMNS.get(kind)),
            kind == "jsonl",
        )
        for kind, file in _LINES.items()
    },
    **(
        {"rows of parquet": (_parquet, _read_rows("parquet"), False)}
        if importlib.util.find_spec("pyarrow")
        else {}
    ),
    "settings of peft": (_adapter("adapter_config.json"), _read_adapter, True),
    "settings of a paddle adapter": (_adapter("lora_config.json"), _read_adapter, True),
    "weights of peft": (_adapter("adapter_model.safetensors"), _read_adapter, False),
    "metadata of shards": (_sharded("_METADATA"), _read_sharded, True),
    "checkpoint of shards": (_sharded("_CHECKPOINT_METADATA"), _read_sharded, True),
    "manifest of shards": (_sharded("manifest.ocdbt"), _read_sharded, False),
}
"""What makes a file, what reads it, and whether its values are changed too."""

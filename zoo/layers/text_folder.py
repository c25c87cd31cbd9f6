"""Folders as `save_pretrained` of transformers and PaddleNLP writes them: config.json, and the file of weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from framework.core.errors import FormatError
from framework.export.artifact import CONFIG as ARTIFACT
from framework.io.checkpoint import STATE
from framework.io.interop import read_safetensors_metadata
from framework.io.interop.shards import INDEX

CONFIG = "config.json"
_PADDLE = "model_state.pdparams"
_SINGLE = ("model.safetensors", "pytorch_model.bin", _PADDLE)
WEIGHTS = tuple(name + ending for name in _SINGLE for ending in ("", INDEX))


def is_model_folder(path: Path) -> bool:
    """Whether this is a folder of another toolkit's model, and no checkpoint or artifact of this one."""
    return (path / CONFIG).is_file() and not any((path / name).is_file() for name in (STATE, ARTIFACT))


def read_settings(folder: Path) -> dict[str, Any]:
    """What config.json says. Raises: FormatError, where it is missing or is no JSON object."""
    path = folder / CONFIG
    if not path.is_file():
        names = sorted(item.name for item in folder.iterdir())[:10] if folder.is_dir() else []
        raise FormatError(
            f"the folder has no {CONFIG}",
            where=str(folder),
            received=", ".join(names) or ("an empty folder" if folder.is_dir() else "no such folder"),
            allowed="a folder as save_pretrained of transformers or PaddleNLP writes it",
            fix="copy config.json from where the weights came from; a model_config.json of PaddleNLP before 2.5 "
            "becomes one when a newer PaddleNLP loads and saves the model",
        )
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise FormatError("this is no JSON", where=str(path), received=str(error)) from None
    if not isinstance(settings, dict):
        raise FormatError("this is no config", where=str(path), received=type(settings).__name__)
    return settings


def find_weights(folder: Path) -> Path:
    """The file of weights, or the index of several. Raises: FormatError, where there is none."""
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise FormatError(
            "there are no weights in the folder",
            where=str(folder),
            received=", ".join(sorted(item.name for item in folder.iterdir())[:10]),
            allowed="one of " + ", ".join(WEIGHTS),
        )
    return path


def is_paddles(weights: Path) -> bool:
    """Whether PaddleNLP wrote the weights, as far as their file says."""
    if weights.name.startswith(_PADDLE):
        return True
    if weights.name != _SINGLE[0]:
        return False
    return read_safetensors_metadata(weights).get("format") in ("np", "pd")

"""Language models by the names of the hub: their files as one folder of Hugging Face."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from framework import hub
from framework.core.errors import InputError, did_you_mean
from framework.core.home import home
from framework.interop.source import Source
from framework.interop.weights.model_folder import CONFIG, INDEX, read_weight_map


def model_names() -> tuple[str, ...]:
    """Entries of the hub that are language models, as `llm.load` takes them."""
    return tuple(name for name, item in hub.entries("nlp").items() if "config" in item.files)


def entry_name(name: str) -> str | None:
    """The hub's entry of a name such as "qwen3-0.6b" or "Qwen3_0.6B"; None: there is none."""
    key = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return key if key in model_names() else None


def fetch_model(name: str, offline: bool | None = None) -> Path:
    """The folder of a language model of the hub, with all its files; those that are not here are downloaded.

    Args:
        offline: As of `hub.fetch`.

    Raises:
        InputError: there is no such model. HubError: a file cannot be had, and what to do.
    """
    key = entry_name(name)
    if key is None:
        raise InputError(
            "there is no language model of this name",
            where="llm.load",
            received=repr(name),
            allowed="a folder with config.json and weights, or a name that `oar models list` shows",
            fix=did_you_mean(name, model_names()),
        )
    item, folder = hub.entry(key), home() / "models" / key
    folder.mkdir(parents=True, exist_ok=True)
    for file in item.files.values():
        if file.name != "config":  # last: a folder with it is complete
            _bring(hub.fetch(key, file.name, offline), folder / file.sources[0].filename)
    source = item.files["weights"].sources[0]
    if source.filename.endswith(INDEX):
        index = folder / source.filename
        shards = read_weight_map(Source(str(index), memoryview(index.read_bytes())))
        base = source.where.rpartition("/")[0]
        for shard in sorted(set(shards.values())):
            _bring(hub.resolve(f"{base}/{shard}", offline=offline), folder / shard)
    _bring(hub.fetch(key, "config", offline), folder / CONFIG)
    return folder


def _bring(path: Path, target: Path) -> None:
    """The verified file under its own name: by a second link, or a copy where the file system has none."""
    if target.exists():
        if os.path.samefile(path, target):
            return
        target.unlink()
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)

"""Language models by name: the rows of the hub, and folders made of them."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework import hub
from framework.config import build
from framework.core.errors import HubError, InputError
from framework.core.home import home
from nlp import llm
from nlp.model_folders import entry_name, fetch_model, model_names
from zoo.decoder.qwen import Qwen3Config
from zoo.layers.decoder_config import decoder_families
from zoo.layers.decoder_weights import save_decoder


def test_rows_name_variants_that_there_are() -> None:
    assert len(model_names()) >= 40
    families = {family.decoder.__name__: family.config for family in decoder_families().values()}
    for name in model_names():
        item = hub.entry(name)
        assert item.model["variant"] in families[item.model["type"]].variants, name
        assert {"weights", "config", "tokenizer"} <= item.files.keys() and item.licence, name


@pytest.mark.parametrize("name", ["qwen3-0.6b", "Qwen3-0.6B", "qwen3_0_6b"])
def test_names_as_people_write_them(name: str) -> None:
    assert entry_name(name) == "qwen3_0_6b"


def test_a_name_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no language model of this name(.|\n)*did you mean 'qwen3_0_6b'"):
        llm.load("qwen3-0.6c")
    with pytest.raises(InputError, match="no language model here"):
        llm.load(tmp_path)


def test_offline_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OAR_OFFLINE", "1")
    with pytest.raises(
        HubError, match=r"OAR_OFFLINE is set(.|\n)*oar models pull qwen3_0_6b(.|\n)*put the file at"
    ):
        llm.load("qwen3-0.6b")


@pytest.mark.parametrize("shard_bytes", [10**9, 20_000])
def test_files_of_a_name_become_a_folder(
    shard_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every file in the cache nothing is sent; weights of several files come by their index."""
    config = Qwen3Config(
        vocab_size=97,
        hidden_size=32,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=8,
        intermediate_size=48,
    )
    model = build(config).eval()
    save_decoder(model, tmp_path, shard_bytes)
    name = "qwen3_0_6b" if shard_bytes > 10**6 else "qwen3_1_7b"
    cache = home() / "weights" / name
    cache.mkdir(parents=True)
    (cache / "config.json").write_bytes((tmp_path / "config.json").read_bytes())
    for file in ("tokenizer", "tokenizer_config", "generation_config"):
        (cache / f"{file}.json").write_text(json.dumps({}), encoding="utf-8")
    weights = next(tmp_path.glob("model.safetensors*"))
    (cache / f"weights{weights.suffix}").write_bytes(weights.read_bytes())
    sent: list[str] = []

    def resolve(address: str, domain: str | None = None, offline: bool | None = None) -> Path:
        sent.append(address)
        return tmp_path / address.rpartition("/")[2]

    monkeypatch.setattr(hub, "resolve", resolve)
    folder = fetch_model(name)
    assert (folder / "config.json").is_file() and (folder / weights.name).is_file()
    assert [
        address.startswith("https://huggingface.co/Qwen/Qwen3-1.7B/resolve/main/model-0") for address in sent
    ] == [True] * len([file for file in tmp_path.glob("model-*")])
    assert fetch_model(name) == folder  # again: what is there stays
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / file).unlink()
    ids = jnp.arange(6)[None]
    np.testing.assert_array_equal(llm.load(folder).model(ids), model(ids))

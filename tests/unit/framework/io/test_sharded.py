"""Sharded checkpoints: written by two devices, read by one and by two."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from framework.core.errors import FormatError, InputError
from framework.io.sharded import load_arrays, load_sharded, save_sharded, stored_shapes


def placed(spec: PartitionSpec, count: int = 2) -> NamedSharding:
    return NamedSharding(Mesh(np.array(jax.devices()[:count]), ("data",)), spec)


def tree(sharding: NamedSharding) -> dict:
    arrays = {"w": jnp.arange(8.0).reshape(4, 2), "opt": {"m": jnp.ones(4)}}
    return jax.device_put(arrays, sharding)


def test_what_two_devices_wrote_is_read_by_one_and_divided_otherwise(tmp_path: Path) -> None:
    written = tree(placed(PartitionSpec("data")))
    folder = save_sharded(tmp_path / "a", written)
    for sharding in (placed(PartitionSpec("data")), placed(PartitionSpec()), placed(PartitionSpec(), 1)):
        like = jax.device_put(jax.tree.map(jnp.zeros_like, written), sharding)
        found = load_sharded(folder, like)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(written)):
            assert np.array_equal(a, b) and a.sharding == sharding


def test_errors(tmp_path: Path) -> None:
    written = tree(placed(PartitionSpec()))
    folder = save_sharded(tmp_path / "a", written)
    with pytest.raises(InputError, match="is there already"):
        save_sharded(folder, written)
    with pytest.raises(FormatError, match="cannot be read"):
        load_sharded(tmp_path / "b", written)
    with pytest.raises(FormatError, match=r"\['other'\]: nothing, wanted \(4, 2\)"):
        load_sharded(folder, {"other": written["w"]})
    with pytest.raises(FormatError, match=r"\['w'\]: \(4, 2\), wanted \(2, 2\)"):
        load_sharded(folder, {**written, "w": jnp.zeros((2, 2))})


def test_what_orbax_cannot_write_is_refused_before_a_folder_is_begun(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no elements\n.*\['w'\]\['b'\]: \(0, 4\)\n"):
        save_sharded(tmp_path / "a", {"w": {"a": jnp.ones(3), "b": jnp.zeros((0, 4))}})
    with pytest.raises(InputError, match="no array to write"):
        save_sharded(tmp_path / "a", {"w": {}})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text", ["{}", "[]", "7", '{"tree_metadata": 7}', '{"tree_metadata": {"a": {}}}', "{"]
)
def test_damaged_metadata(tmp_path: Path, text: str) -> None:
    folder = save_sharded(tmp_path / "a", {"params": {"w": jnp.ones(3)}})
    (folder / "_METADATA").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="cannot be read"):
        load_arrays(folder)
    with pytest.raises(FormatError, match="cannot be read"):
        load_sharded(folder, {"params": {"w": jnp.ones(3)}})


def test_what_is_described_as_another_thing_than_an_array(tmp_path: Path) -> None:
    folder = save_sharded(tmp_path / "a", {"params": {"w": jnp.ones(3)}})
    description = (folder / "_METADATA").read_text(encoding="utf-8")
    assert '"skip_deserialize": false' in description
    damaged = description.replace('"skip_deserialize": false', '"skip_deserialize": true')
    (folder / "_METADATA").write_text(damaged, encoding="utf-8")
    with pytest.raises(FormatError, match="described as an array"):
        stored_shapes(folder)

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import jax
import numpy as np
import pytest
import yaml

from framework import nn
from framework.core import whole_folder
from framework.core.disk import DiskError
from framework.core.errors import ConfigError, FormatError
from framework.core.transform import Transform
from framework.export import CONFIG, Artifact, TensorSpec, artifact, load_artifact, lower_layer


@pytest.fixture(scope="module")
def small() -> Artifact:
    layer = nn.Sequential(nn.Conv2D(3, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU())
    programs, weights = {}, {}
    for precision in ("float32", "bfloat16"):
        programs[precision], weights = lower_layer(
            layer, {"x": TensorSpec(("n", "8*h", "8*w", 3))}, platforms=("cpu",), precision=precision
        )
    return Artifact({"domain": "test", "labels": ["ä", "猫", "no", "1"]}, programs, weights)


X = np.random.default_rng(0).standard_normal((1, 8, 8, 3)).astype(np.float32)


def output(of: Artifact, precision: str = "float32") -> np.ndarray:
    return np.asarray(of.programs[precision].call(of.weights, {"x": X})["output"])


def edit(folder: Path, **changes: object) -> None:
    config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    (folder / CONFIG).write_text(yaml.safe_dump({**config, **changes}), encoding="utf-8")


def test_round_trip(small: Artifact, tmp_path: Path):
    folder = small.save(tmp_path / "deep" / "net")
    assert sorted(p.name for p in folder.iterdir()) == [
        CONFIG,
        "model.bfloat16.jaxexp",
        "model.jaxexp",
        "program_weights.safetensors",
    ]
    assert [p.name for p in folder.parent.iterdir()] == ["net"]  # nothing temporary is left
    loaded = load_artifact(folder)
    assert loaded.config["labels"] == ["ä", "猫", "no", "1"] and loaded.config["platforms"] == ["cpu"]
    assert loaded.config["format"] == 2 and loaded.config["versions"] == {"jax": jax.__version__}
    assert loaded.weights.keys() == small.weights.keys()
    for precision in ("float32", "bfloat16"):
        np.testing.assert_array_equal(output(loaded, precision), output(small, precision))


def test_a_loaded_artifact_can_be_changed_and_saved_again(small: Artifact, tmp_path: Path):
    loaded = load_artifact(small.save(tmp_path / "a"))
    loaded.config["made_on"] = "2020-02-02"
    loaded.weights = {name: value + 1 for name, value in loaded.weights.items()}
    del loaded.programs["bfloat16"]
    again = load_artifact(loaded.save(tmp_path / "b"))  # the sums are those of the new files
    assert set(again.programs) == {"float32"} and again.config["made_on"] == "2020-02-02"
    np.testing.assert_array_equal(again.weights["0.bias"], small.weights["0.bias"] + 1)


def test_stages(small: Artifact, tmp_path: Path):
    pipeline = Artifact({"domain": "test"}, stages={"one": small, "two": small})
    folder = pipeline.save(tmp_path / "pipeline")
    loaded = load_artifact(folder)
    assert list(loaded.stages) == ["one", "two"] and not loaded.programs and not loaded.weights
    np.testing.assert_array_equal(output(loaded.stages["two"]), output(small))
    assert load_artifact(folder, stages=False).stages == {}
    flip(folder / "two" / "program_weights.safetensors")
    with pytest.raises(FormatError, match="two"):
        load_artifact(folder)


def test_an_older_artifact_is_replaced_whole(small: Artifact, tmp_path: Path):
    folder = small.save(tmp_path / "net")
    only = Artifact({"domain": "new"}, {"float32": small.programs["float32"]}, small.weights)
    only.save(folder)
    assert load_artifact(folder).config["domain"] == "new"
    assert not (folder / "model.bfloat16.jaxexp").exists()
    (tmp_path / "empty").mkdir()
    assert load_artifact(only.save(tmp_path / "empty")).config["domain"] == "new"


def test_the_old_one_stays_when_the_new_one_cannot_be_written(
    small: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = small.save(tmp_path / "net")
    with pytest.raises(yaml.YAMLError):
        Artifact({"domain": object()}, small.programs, small.weights).save(folder)
    assert load_artifact(folder).config["domain"] == "test"

    replace, calls = os.replace, []

    def second_fails(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise PermissionError("in use")
        replace(source, target)

    monkeypatch.setattr(whole_folder, "_exchange", lambda one, other: False)  # as on Windows
    monkeypatch.setattr(whole_folder.os, "replace", second_fails)
    with pytest.raises(DiskError, match="in use"):
        Artifact({"domain": "new"}, small.programs, small.weights).save(folder)
    assert load_artifact(folder).config["domain"] == "test"
    assert [p.name for p in tmp_path.iterdir()] == ["net"]


@pytest.mark.parametrize("name", ["notes.txt", CONFIG])
def test_a_foreign_folder_is_left_alone(small: Artifact, tmp_path: Path, name: str):
    (tmp_path / name).write_text("mode: paddle\n", encoding="utf-8")  # Paddle has an infer_cfg.yml too
    (tmp_path / "model.pdiparams").write_bytes(b"mine")
    with pytest.raises(
        FormatError, match=r"not part of an artifact\n  received: .*model\.pdiparams.*\n  allowed"
    ):
        small.save(tmp_path)
    assert (tmp_path / "model.pdiparams").read_bytes() == b"mine"


def test_a_users_file_in_an_artifact_and_a_file_in_its_place(small: Artifact, tmp_path: Path):
    folder = small.save(tmp_path / "net")
    (folder / "README").write_text("mine", encoding="utf-8")
    with pytest.raises(FormatError, match="received: README"):
        small.save(folder)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(FormatError, match="received: file"):
        small.save(tmp_path / "file")


def flip(path: Path, at: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_verify_finds_a_flipped_byte(small: Artifact, tmp_path: Path):
    folder = small.save(tmp_path / "net")
    flip(folder / "program_weights.safetensors")
    load_artifact(folder, verify=False)
    with pytest.raises(
        FormatError, match=r"program_weights\.safetensors: a file of the artifact is damaged\n.*sha256"
    ):
        load_artifact(folder)


@pytest.mark.parametrize("name", ["model.jaxexp", "program_weights.safetensors"])
def test_a_file_is_missing(small: Artifact, tmp_path: Path, name: str):
    folder = small.save(tmp_path / "net")
    (folder / name).unlink()
    with pytest.raises(FormatError, match=rf"{name}: a file of the artifact is missing\n.*no such file"):
        load_artifact(folder)


@pytest.mark.parametrize("name", ["model.jaxexp", "program_weights.safetensors"])
def test_a_file_is_cut_off(small: Artifact, tmp_path: Path, name: str):
    folder = small.save(tmp_path / "net")
    (folder / name).write_bytes((folder / name).read_bytes()[:100])
    with pytest.raises(FormatError, match=name):
        load_artifact(folder)


def test_a_config_that_is_no_yaml(small: Artifact, tmp_path: Path):
    folder = small.save(tmp_path / "net")
    for damage in (b"format: [1\n", b"\xff\xfe\x00", b"[" * 100_000):
        (folder / CONFIG).write_bytes(damage)
        with pytest.raises(FormatError, match=rf"{CONFIG}.*: the (artifact's config is damaged|.*not UTF-8)"):
            load_artifact(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"stages": 3},
        {"sha256": None},
        {"versions": "0.1"},
        {"stages": ["../x"]},
        {"stages": [""]},
        {"stages": [".."]},
        {"sha256": {"a/b": ""}},
    ],
)
def test_a_config_whose_head_is_damaged(small: Artifact, tmp_path: Path, changes: dict):
    folder = small.save(tmp_path / "net")
    edit(folder, **changes)
    with pytest.raises(FormatError, match=rf"{CONFIG}:[0-9]+:1: the artifact's config is damaged"):
        load_artifact(folder)


def test_another_format_number(small: Artifact, tmp_path: Path):
    folder = small.save(tmp_path / "net")
    edit(folder, format=1)
    with pytest.raises(FormatError, match=r"another format\n  received: format 1\n  allowed: format 2\n"):
        load_artifact(folder)
    (folder / CONFIG).write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(FormatError, match="received: format None"):
        load_artifact(folder)


def test_no_artifact(tmp_path: Path):
    with pytest.raises(FormatError, match=f"received: no {CONFIG} in it"):
        load_artifact(tmp_path)
    with pytest.raises(FormatError, match=r"received: no such folder\n  allowed: .*oar export"):
        load_artifact(tmp_path / "nowhere")


def test_an_expired_program_says_who_made_it(
    small: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = small.save(tmp_path / "net")
    edit(folder, made_on="2024-01-02", versions={"jax": "0.4.1"})

    def expired(data: bytearray):
        raise ValueError("calling convention version 3 is too old")

    monkeypatch.setattr(artifact.export, "deserialize", expired)
    with pytest.raises(
        FormatError,
        match=r"jaxexp: this jax cannot read the program\n  received: made by jax 0\.4\.1 on 2024-01-02; this is jax"
        r".*version 3 is too old\n  allowed: .*six months.*\n  what to do: export it again",
    ):
        load_artifact(folder)


class _Plain(Transform):
    """A transform that reads none."""

    def __call__(self, sample, rng):
        return sample


class _Reads(_Plain):
    """A transform that reads a file."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data

    def pack_assets(self) -> tuple[_Reads, dict[str, bytes]]:
        return _Reads("words.txt", b""), {"words.txt": self.data}

    def load_assets(self, files: Mapping[str, bytes]) -> _Reads:
        return _Reads(self.path, files[self.path])


def test_files_of_transforms_travel(tmp_path: Path):
    plain = _Plain()
    transforms, files = artifact.pack_assets(
        [_Reads("/here/a.txt", b"one"), plain, _Reads("/here/a.txt", b"one")]
    )
    assert transforms[0].path == "words.txt" and transforms[1] is plain
    folder = Artifact({"domain": "test"}, files=files).save(tmp_path / "net")
    assert (folder / "words.txt").read_bytes() == b"one"
    loaded = load_artifact(folder)
    assert loaded.files == {"words.txt": b"one"}
    assert artifact.load_assets(transforms, loaded.files)[0].data == b"one"
    assert load_artifact(loaded.save(folder)).files == loaded.files
    (folder / "words.txt").write_bytes(b"two")
    with pytest.raises(FormatError, match="a file of the artifact is damaged"):
        load_artifact(folder)
    (folder / "words.txt").unlink()
    with pytest.raises(FormatError, match="a file of the artifact is missing"):
        load_artifact(folder)


def test_two_files_of_one_name():
    with pytest.raises(ConfigError, match=r"different files of one name[\s\S]*words.txt"):
        artifact.pack_assets([_Reads("a", b"one"), _Reads("b", b"two")])


def test_a_long_list_has_a_file_of_its_own(small: Artifact, tmp_path: Path):
    symbols = [chr(0x4E00 + number) for number in range(600)] + ["", " ", "\u3000", "no", "0", "\r", "\u2028"]
    made = Artifact({**small.config, "characters": symbols}, small.programs, small.weights)
    folder = made.save(tmp_path / "reader")
    assert symbols[0] not in (folder / CONFIG).read_text(encoding="utf-8")
    loaded = load_artifact(folder)
    assert loaded.config["characters"] == symbols and "lists" not in loaded.config
    assert loaded.setting("characters", tuple[str, ...]) == tuple(symbols)
    assert not loaded.files  # the list is part of the config, no asset
    again = load_artifact(loaded.save(tmp_path / "copy"))
    assert again.config["characters"] == symbols
    loaded.config["characters"] = symbols[:3]  # a short list stands in the config again
    assert load_artifact(loaded.save(tmp_path / "short")).config["characters"] == symbols[:3]
    assert not (tmp_path / "short" / "characters.txt").exists()


@pytest.mark.parametrize("item", ["two\nlines", 7])
def test_a_list_that_is_no_lines_of_text_stays_in_the_config(small: Artifact, tmp_path: Path, item: object):
    values = [item, *map(str, range(600))]
    folder = Artifact({**small.config, "values": values}).save(tmp_path / "net")
    assert not (folder / "values.txt").exists()
    assert load_artifact(folder).config["values"] == values


def test_damaged_lists_are_found(small: Artifact, tmp_path: Path):
    made = Artifact({**small.config, "characters": list(map(str, range(600)))})
    folder = made.save(tmp_path / "net")
    (folder / "characters.txt").write_bytes(b"\xff\n1")
    with pytest.raises(FormatError, match="a file of the artifact is damaged"):
        load_artifact(folder)
    with pytest.raises(FormatError, match="list of the artifact's config is not UTF-8"):
        load_artifact(folder, verify=False)
    edit(folder, lists=["characters", "../../secret"])
    with pytest.raises(FormatError, match="a list of the config has no file"):
        load_artifact(folder)

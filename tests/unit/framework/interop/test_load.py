"""load_weights and load_program: the entry points of the package."""

import pickle
import shutil

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.interop import (
    TensorSpec,
    load_program,
    load_weights,
    read_pdiparams,
    read_pdmodel,
    weighted_ops,
    write_safetensors,
)

PAIRS = [("network.pdmodel", "network.pdiparams"), ("network_pir.json", "network_pir.pdiparams")]


@pytest.mark.parametrize(("program", "parameters"), PAIRS)
def test_a_paddle_pair_loads_from_either_file(data, program, parameters):
    whole, part = load_weights(data / program), load_weights(data / parameters)
    assert len(whole) == 33 and whole.keys() == part.keys()
    assert all(np.array_equal(whole[name], part[name]) for name in whole)


def test_the_same_weights_in_every_format(data, values):
    paddle, pir = load_weights(data / "network.pdmodel"), load_weights(data / "network_pir.json")
    onnx = load_weights(data / "network.onnx")
    for arrays in (paddle, pir, onnx):
        np.testing.assert_array_equal(arrays["linear_1.w_0"], values("fc.weight", (6, 5)), strict=True)


def test_safetensors(tmp_path):
    write_safetensors(tmp_path / "x", {"w": np.float32([1])})
    assert load_weights(tmp_path / "x")["w"].tolist() == [1]


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "params", "net"])
def test_wrapped_state_dicts_are_unwrapped(tmp_path, key):
    path = tmp_path / "x.pdparams"
    path.write_bytes(
        pickle.dumps({"epoch": 3, "score": np.float32([0.5]), key: {"w": np.float32([1, 2]), "n": 3}}, 4)
    )
    assert {name: array.tolist() for name, array in load_weights(path).items()} == {"w": [1, 2]}


def test_other_entries_at_the_top_are_left_out(data):
    assert "LR_Scheduler" not in load_weights(data / "adam.pdopt")


@pytest.mark.parametrize("value", [{"epoch": 3, "weights_of_mine": {"w": np.zeros(1)}}, {}])
def test_no_state_dict(tmp_path, value):
    path = tmp_path / "x.pdparams"
    path.write_bytes(pickle.dumps(value, 4))
    with pytest.raises(
        FormatError, match=r"no state dict was found(.|\n)*under one of state_dict, model_state"
    ):
        load_weights(path)


def test_a_program_without_its_parameters(data, tmp_path):
    path = tmp_path / "network.pdmodel"
    shutil.copy(data / "network.pdmodel", path)
    program = load_program(path)
    assert all(isinstance(spec, TensorSpec) for spec in program.parameters.values())
    with pytest.raises(FormatError, match=r"a program without its parameters(.|\n)*called network.pdiparams"):
        load_weights(path)
    with pytest.raises(FormatError, match=r"read without its parameters(.|\n)*load_program\(path, params\)"):
        weighted_ops(program)
    full = load_program(path, data / "network.pdiparams")
    assert len(weighted_ops(full)) == 9


def test_parameters_without_their_program(data, tmp_path):
    path = tmp_path / "network.pdiparams"
    shutil.copy(data / "network.pdiparams", path)
    with pytest.raises(FormatError, match=r"holds no names(.|\n)*network.pdmodel or network.json beside it"):
        load_weights(path)


def test_the_names_of_the_oldest_exports(data, tmp_path):
    shutil.copy(data / "network.pdmodel", tmp_path / "__model__")
    shutil.copy(data / "network.pdiparams", tmp_path / "__params__")
    assert len(load_weights(tmp_path / "__model__")) == len(load_weights(tmp_path / "__params__")) == 33


def test_a_pair_that_does_not_belong_together(data, tmp_path):
    specs = read_pdmodel(data / "network.pdmodel").parameters
    other = {name: spec for name, spec in specs.items() if name != "conv2d_1.w_0"}
    with pytest.raises(FormatError, match="take the program and the parameters from the same export"):
        read_pdiparams(data / "network.pdiparams", other)


def test_files_that_are_no_program(data):
    with pytest.raises(FormatError, match=r"holds weights but no program(.|\n)*received: torch"):
        load_program(data / "state.pt")
    with pytest.raises(FormatError, match=r"an ONNX model holds its own parameters(.|\n)*leave params out"):
        load_program(data / "network.onnx", data / "network.pdiparams")

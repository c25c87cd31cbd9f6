"""Requests and answers of the Open Inference Protocol as arrays: numbers in JSON, bytes behind it, every error."""

from __future__ import annotations

import json
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import InputError, ShapeError
from framework.inference.engine import TensorShape
from framework.serving.tensors import (
    DATATYPES,
    InferRequest,
    OutputRequest,
    datatype_of,
    describe_tensors,
    dtype_of,
    read_request,
    write_response,
)

FLOATS = {"x": TensorShape(("b", 3), np.dtype("float32"))}


def tensor(datatype: str = "FP32", shape: Any = (1, 3), **more: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": datatype, "shape": list(shape), **more}


def read(
    header: object,
    blob: bytes | None = None,
    declared: dict[str, TensorShape] = FLOATS,
) -> InferRequest:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = None if blob is None else len(text)
    return read_request(text + (blob or b""), length, declared, ("y", "z"))


def of(dtype: Any) -> dict[str, TensorShape]:
    return {"x": TensorShape(("b",), np.dtype(dtype))}


@pytest.mark.parametrize("data", [[1, 2.5, 3], [[1, 2.5, 3]]])
def test_numbers_are_read_flat_and_nested(data: list) -> None:
    request = read({"id": "7", "inputs": [tensor(data=data)]})
    np.testing.assert_array_equal(request.inputs["x"], np.array([[1, 2.5, 3]], np.float32))
    assert request.inputs["x"].dtype == np.float32
    assert request.id == "7" and request.outputs is None and not request.binary


@pytest.mark.parametrize("nested", [(2, 3, 4), (1, 2, 3, 4), (2, 12), (6, 4), (24,), (1, 24)])
def test_lists_may_leave_out_levels_of_the_shape(nested: tuple[int, ...]) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    request = read({"inputs": [tensor(shape=[2, 3, 4], data=values.reshape(nested).tolist())]})
    np.testing.assert_array_equal(request.inputs["x"], values)


@pytest.mark.parametrize("nested", [(2, 4, 3), (3, 2, 4), (4, 3, 2), (3, 8), (8, 3)])
def test_lists_with_axes_in_another_order_are_refused(nested: tuple[int, ...]) -> None:
    """They were read as if they were flat, so that the model ran on an image that nobody sent."""
    values = np.zeros(nested).tolist()
    with pytest.raises(InputError, match="lists of " + " x ".join(map(str, nested))):
        read({"inputs": [tensor(shape=[2, 3, 4], data=values)]})


def test_a_body_may_be_the_bytes_of_the_only_input() -> None:
    """Triton's raw binary request, of its extension of binary tensors: triton#4404, #7741."""
    values = np.arange(6, dtype="<f4").reshape(2, 3)
    request = read_request(values.tobytes(), 0, FLOATS, ("y",))
    np.testing.assert_array_equal(request.inputs["x"], values)
    assert request.binary and request.outputs is None
    fixed = {"x": TensorShape((2, 3), np.dtype("float32"))}
    np.testing.assert_array_equal(read_request(values.tobytes(), 0, fixed, ("y",)).inputs["x"], values)
    flags = read_request(b"\0\2", 0, of("bool"), ("y",)).inputs["x"]
    assert flags.tolist() == [False, True] and flags.dtype == bool
    for body in (b"", values.tobytes()[:-1], values.tobytes()[:-4]):
        with pytest.raises(InputError, match="a multiple of 12"):
            read_request(body, 0, FLOATS, ("y",))
    for shapes in ({**FLOATS, **{"w": FLOATS["x"]}}, {"x": TensorShape(("b", "h"), np.dtype("float32"))}):
        with pytest.raises(InputError, match="do not say the shapes"):
            read_request(values.tobytes(), 0, shapes, ("y",))


def test_bytes_behind_json_without_its_length_are_said() -> None:
    header = json.dumps({"inputs": [tensor(parameters={"binary_data_size": 12})]}).encode()
    for blob in (bytes(12), b"\xff" * 12):
        with pytest.raises(InputError, match=r"Header-Content-Length: .* nothing says where it ends"):
            read(header + blob)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_every_datatype_goes_in_and_out_as_bytes_and_as_numbers(datatype: str) -> None:
    dtype = dtype_of(datatype, "x")
    values = np.array([0, 1, 1]).astype(dtype)
    binary = tensor(datatype, [3], parameters={"binary_data_size": values.nbytes})
    plain = tensor(datatype, [3], data=[False, True, True] if datatype == "BOOL" else [0, 1, 1])
    for request in (
        read({"inputs": [binary]}, values.tobytes(), of(dtype)),
        read({"inputs": [plain]}, declared=of(dtype)),
    ):
        assert request.inputs["x"].dtype == dtype
        np.testing.assert_array_equal(request.inputs["x"], values)
    asked = InferRequest({}, (OutputRequest("y", True), OutputRequest("z", False)))
    response = write_response("m", "1", asked, {"y": values, "z": values})
    assert response.header_length is not None
    header = json.loads(response.body[: response.header_length])
    assert header["outputs"][0]["parameters"] == {"binary_data_size": values.nbytes}
    assert response.body[response.header_length :] == values.tobytes()
    assert header["outputs"][1]["data"] == [0, 1, 1] and header["outputs"][1]["datatype"] == datatype


def test_null_stands_for_what_is_not_given() -> None:
    request = {
        "id": None,
        "parameters": None,
        "outputs": None,
        "inputs": [tensor(data=[1, 2, 3], parameters=None)],
    }
    made = read(request)
    assert made.id == "" and made.outputs is None and made.inputs["x"].tolist() == [[1, 2, 3]]


def test_whole_numbers_may_have_a_point() -> None:
    read_in = read({"inputs": [tensor("UINT8", [2], data=[0.0, 255.0])]}, declared=of("uint8"))
    assert read_in.inputs["x"].tolist() == [0, 255] and read_in.inputs["x"].dtype == np.uint8
    truths = read({"inputs": [tensor("BOOL", [4], data=[1.0, 0, True, False])]}, declared=of("bool"))
    assert truths.inputs["x"].tolist() == [True, False, True, False]
    for value in (2, 0.5, "true"):
        with pytest.raises(InputError, match="value 0: a value is no BOOL"):
            read({"inputs": [tensor("BOOL", [1], data=[value])]}, declared=of("bool"))


def test_a_timeout_is_in_microseconds_and_sequences_are_refused() -> None:
    request = {"inputs": [tensor(data=[1, 2, 3])]}
    assert read({**request, "parameters": {"timeout": 1500}}).timeout == 0.0015
    assert read({**request, "parameters": {"timeout": 0, "sequence_id": 0}}).timeout is None
    for parameters, message in (({"timeout": -1}, "no time"), ({"sequence_id": 3}, "no state")):
        with pytest.raises(InputError, match=message):
            read({**request, "parameters": parameters})


def test_largest_numbers_are_exact() -> None:
    for name in ("int64", "uint64"):
        top = int(np.iinfo(name).max)
        request = read({"inputs": [tensor(name.upper(), [1], data=[top])]}, declared=of(name))
        assert request.inputs["x"].tolist() == [top]


def test_several_tensors_share_the_bytes_in_their_order() -> None:
    declared = {"a": TensorShape((2,), np.dtype("int16")), "b": TensorShape((1,), np.dtype("float64"))}
    header = {
        "inputs": [
            {"name": "b", "datatype": "FP64", "shape": [1], "parameters": {"binary_data_size": 8}},
            {"name": "a", "datatype": "INT16", "shape": [2], "data": [4, 5]},
        ]
    }
    request = read(header, np.array([0.5]).tobytes(), declared)
    assert request.inputs["a"].tolist() == [4, 5] and request.inputs["b"].tolist() == [0.5]


def test_outputs_are_chosen_and_say_whether_they_are_bytes() -> None:
    header = {
        "inputs": [tensor(data=[1, 2, 3])],
        "parameters": {"binary_data_output": True},
        "outputs": [{"name": "z"}, {"name": "y", "parameters": {"binary_data": False}}],
    }
    assert read(header).outputs == (OutputRequest("z", True), OutputRequest("y", False))
    assert read({**header, "outputs": []}).outputs is None and read({**header, "outputs": []}).binary


def test_a_scalar_output_keeps_its_shape() -> None:
    answer = json.loads(write_response("m", "1", InferRequest({}), {"y": np.float32(2)[()]}).body)
    assert answer["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [], "data": [2.0]}]
    assert "id" not in answer


def test_metadata_say_minus_one_for_a_size_that_varies() -> None:
    tensors = {"image": TensorShape(("b", "32*h", 64, 3), np.dtype("uint8"))}
    assert describe_tensors(tensors) == [{"name": "image", "datatype": "UINT8", "shape": [-1, -1, 64, 3]}]


def test_bfloat16_has_a_name_and_complex_numbers_have_none() -> None:
    assert datatype_of(np.dtype(jnp.bfloat16)) == "BF16"
    with pytest.raises(ShapeError, match="no name for this dtype"):
        datatype_of(np.dtype("complex64"))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
        ([], "no JSON object"),
        ({}, "no inputs"),
        ({"inputs": []}, "no inputs"),
        ({"inputs": [3]}, "no JSON object"),
        ({"inputs": [{"name": 3}]}, "no text"),
        ({"inputs": [{"name": "other"}]}, "no such input"),
        ({"inputs": [tensor("BYTES", data=["a"])]}, "numbers, not BYTES"),
        ({"inputs": [tensor("FP8")]}, "unknown datatype"),
        ({"inputs": [tensor("UINT8", data=[1, 2, 3])]}, "another datatype"),
        ({"inputs": [tensor(shape=[-1, 3], data=[])]}, "no list of sizes"),
        ({"inputs": [tensor(shape=[True, 3], data=[1, 2, 3])]}, "no list of sizes"),
        ({"inputs": [tensor(shape=[1.0, 3], data=[1, 2, 3])]}, "no list of sizes"),
        ({"inputs": [{"name": "x", "datatype": "FP32", "shape": 3}]}, "no list of sizes"),
        ({"inputs": [tensor(shape=[1] * 70, data=[1])]}, "too many axes"),
        ({"inputs": [tensor()]}, "no data"),
        ({"inputs": [tensor(data="abc")]}, "no data"),
        ({"inputs": [tensor(data=[1, 2])]}, "do not fill the shape"),
        ({"inputs": [tensor(shape=[10**30, 3], data=[1, 2])]}, "do not fill the shape"),
        ({"inputs": [tensor(data=[[1, 2], [3]])]}, "differ in length"),
        ({"inputs": [tensor(data=[1, [2, 3]])]}, "differ in length"),
        ({"inputs": [tensor(data=[1, None, 3])]}, "value 1: a value is no FP32"),
        ({"inputs": [tensor(data=[1, 2, "3"])]}, "value 2: a value is no FP32"),
        ({"inputs": [tensor(data=[True, 2, 3])]}, "value 0: a value is no FP32"),
        ({"inputs": [tensor(data=[1, 1e300, 3])]}, "value 1: a value is no FP32"),
        ({"inputs": [tensor(data=[1, 2, 10**400])]}, "value 2: a value is no FP32"),
        ({"inputs": [tensor(data=[1, 2, 3]), tensor(data=[1, 2, 3])]}, "twice"),
        ({"inputs": [tensor(data=[1, 2, 3])], "outputs": [{"name": "w"}]}, "no such output"),
        ({"inputs": [tensor(data=[1, 2, 3])], "outputs": {"name": "y"}}, "no list"),
        ({"inputs": [tensor(data=[1, 2, 3])], "outputs": [{"name": "y"}, {"name": "y"}]}, "twice"),
        (
            {
                "inputs": [tensor(data=[1, 2, 3])],
                "outputs": [{"name": "y", "parameters": {"classification": 3}}],
            },
            "no such extension",
        ),
        ({"inputs": [tensor(data=[1, 2, 3])], "parameters": {"binary_data_output": "yes"}}, "no truth value"),
        ({"inputs": [tensor(data=[1, 2, 3])], "id": 3}, "no text"),
        ({"inputs": [tensor(parameters={"binary_data_size": 12})]}, "ends within a tensor"),
    ],
)
def test_what_is_no_request_is_said(header: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(header)


@pytest.mark.parametrize(
    ("size", "blob", "message"),
    [
        (12, bytes(11), "ends within a tensor"),
        (12, bytes(13), "behind the last tensor"),
        (8, bytes(8), "do not fill the shape"),
        (12.0, bytes(12), "do not fill the shape"),
        (-12, bytes(12), "do not fill the shape"),
    ],
)
def test_bytes_that_do_not_fit_are_said(size: object, blob: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({"inputs": [tensor(parameters={"binary_data_size": size})]}, blob)


def test_numbers_outside_of_an_integer_type_are_said() -> None:
    for value in (256, -1, 1.5, True):
        with pytest.raises(InputError, match="value 1: a value is no UINT8"):
            read({"inputs": [tensor("UINT8", [2], data=[0, value])]}, declared=of("uint8"))


def test_an_input_that_is_left_out_or_twice_in_itself_is_said() -> None:
    declared = {**FLOATS, "w": TensorShape((1,), np.dtype("float32"))}
    with pytest.raises(InputError, match="add w"):
        read({"inputs": [tensor(data=[1, 2, 3])]}, declared=declared)
    with pytest.raises(InputError, match="its values twice"):
        read({"inputs": [tensor(data=[1, 2, 3], parameters={"binary_data_size": 12})]}, bytes(12))


@pytest.mark.parametrize("length", [-1, 999])
def test_a_header_longer_than_the_body_is_said(length: int) -> None:
    with pytest.raises(InputError, match="longer than the body"):
        read_request(b"{}", length, FLOATS, ("y",))


def test_values_that_json_cannot_write_go_as_bytes_only() -> None:
    values = np.array([1, np.nan, np.inf], np.float32)
    with pytest.raises(InputError, match=r"2 of 3 values"):
        write_response("m", "1", InferRequest({}), {"y": values})
    response = write_response("m", "1", InferRequest({}, binary=True), {"y": values})
    assert response.header_length is not None
    np.testing.assert_array_equal(np.frombuffer(response.body[response.header_length :], np.float32), values)

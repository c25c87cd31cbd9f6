"""Rows and columns of TensorFlow Serving's API: files, texts, and tensors of a program."""

from __future__ import annotations

import base64
import functools
from typing import Any

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.inference.engine import TensorShape
from framework.serving.errors import BadRequestError
from framework.serving.request_tables import (
    TensorTable,
    holds_numbers,
    read_tensors,
    to_rows,
    wrap_entries,
    write_tensors,
)
from framework.serving.routes import find_target
from tests.unit.framework.serving.conftest import Start
from tests.unit.framework.serving.tiny import SIZE, png, score_of

URL = "/v1/models/tiny:predict"
ENCODED = [base64.b64encode(png(value)).decode() for value in (10, 240)]


@pytest.mark.parametrize(
    "columns",
    [
        ENCODED[0],
        {"b64": ENCODED[0]},
        {"input_tensor": {"b64": ENCODED[0]}},  # CRNN_Tensorflow#275
        {"image": ENCODED[0], "name": "a.png"},
    ],
)
def test_a_sample_in_columns(start: Start, columns: object) -> None:
    answer = start().post(URL, json={"signature_name": "outputs", "inputs": columns})
    assert list(answer.json()) == ["outputs"]
    assert score_of(answer.json()["outputs"]) == pytest.approx(10 / 255, abs=1e-5)


def test_samples_in_columns(start: Start) -> None:
    client = start()
    wrapped = [{"b64": text} for text in ENCODED]
    for columns in ({"image": ENCODED}, {"image_bytes": wrapped}, {"image": wrapped, "name": ["a", "b"]}):
        outputs = client.post(URL, json={"inputs": columns}).json()["outputs"]
        scores = [score_of({"classes": classes}) for classes in outputs["classes"]]
        assert scores == pytest.approx([10 / 255, 240 / 255], abs=1e-5)
        assert outputs["width"] == [16, 16]
    bad = client.post(URL, json={"inputs": {"image": ENCODED, "name": ["a"]}})
    assert bad.status_code == 400 and "image: 2, name: 1" in bad.text
    lines = client.post(URL, json={"inputs": [{"image": text} for text in ENCODED]}).text.splitlines()
    assert len(lines) == 2  # a list of inputs is ours, and has a line each


def test_numbers_are_tensors_of_the_program(start: Start) -> None:
    client = start()
    images = np.stack([np.full((SIZE, SIZE, 3), value, np.uint8) for value in (51, 204)])
    expected = [[0.2, 0.8], [0.8, 0.2]]
    for name, values in {
        "instances": images.tolist(),
        "inputs": images.tolist(),
    }.items():
        (scores,) = client.post(URL, json={name: values}).json().values()
        np.testing.assert_allclose(scores, expected, atol=1e-6)
    rows = client.post(URL, json={"instances": [{"image": one} for one in images.tolist()]}).json()
    np.testing.assert_allclose(rows["predictions"], expected, atol=1e-6)
    columns = client.post(URL, json={"inputs": {"image": images.tolist()}}).json()
    np.testing.assert_allclose(columns["outputs"], expected, atol=1e-6)
    for body, status, text in (
        ({"instances": images[:, 1:].tolist()}, 400, "(2, 7, 8, 3)"),
        ({"instances": [[1.5]]}, 422, "1.5"),
        ({"instances": [[1], [1, 2]]}, 422, "differ in length"),
        ({"instances": functools.reduce(lambda value, _: [value], range(90), 1)}, 422, "too many axes"),
        ({"inputs": {"pixels": images.tolist()}}, 422, "pixels"),
        ({"instances": images.tolist(), "options": {"top": 1}}, 400, "options are of files"),
    ):
        answer = client.post(URL, json=body)
        assert answer.status_code == status and text in answer.text, answer.text


DECLARED = {name: TensorShape(("n", 2), np.dtype("float32")) for name in ("a", "b")}


@pytest.mark.parametrize("envelope", ["predictions", "outputs"])
def test_rows_and_columns_of_many_inputs(envelope: Any) -> None:
    rows = [{"a": [1, 2], "b": [3, 4.5]}, {"b": [0, 1], "a": [5, 6]}]
    columns = {"a": [[1, 2], [5, 6]], "b": [[3, 4.5], [0, 1]]}
    table = TensorTable(envelope, rows if envelope == "predictions" else columns)  # type: ignore[arg-type]
    arrays = read_tensors(table, DECLARED)
    assert arrays["a"].tolist() == columns["a"] and arrays["b"].tolist() == columns["b"]
    assert arrays["a"].dtype == np.float32
    outputs = {"sum": arrays["a"] + arrays["b"], "first": arrays["a"][:, 0]}
    written = {"sum": [[4, 6.5], [5, 7]], "first": [1, 5]}
    if envelope == "predictions":
        assert write_tensors(table, outputs)["predictions"] == [
            {"sum": [4, 6.5], "first": 1},
            {"sum": [5, 7], "first": 5},
        ]
        with pytest.raises(InputError, match="no row for each sample"):
            write_tensors(table, {"total": np.float32(3) + np.zeros(3, np.float32)})
    else:
        assert write_tensors(table, outputs)["outputs"] == written
    with pytest.raises(InputError, match="NaN"):
        write_tensors(table, {"sum": np.full((2, 2), np.nan, np.float32)})


@pytest.mark.parametrize(
    ("envelope", "values", "text"),
    [
        ("predictions", [{"a": [1, 2], "b": [1, 2]}, {"a": [1, 2]}], r"instances\[1\]"),
        ("predictions", [{"a": [1, 2]}], "other inputs"),
        ("predictions", [[1, 2]], "need their names"),
        ("outputs", [[1, 2]], "need their names"),
        ("outputs", {"a": 1, "b": [[1, 2]]}, "no list"),
    ],
)
def test_tensors_that_do_not_fit(envelope: Any, values: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        read_tensors(TensorTable(envelope, values), DECLARED)


def test_tables() -> None:
    assert holds_numbers([[{"a": [3]}]]) and holds_numbers([True]) and not holds_numbers([{"a": "3"}, 3])
    assert not holds_numbers([]) and not holds_numbers(None)
    assert to_rows(["a", "b"]) == (["a", "b"], True) and to_rows({"text": "a"}) == ([{"text": "a"}], False)
    assert to_rows({"text": ["a", "b"], "pair": ["c", "d"]})[0][1] == {"text": "b", "pair": "d"}
    assert to_rows({"text": []}) == ([], True)
    with pytest.raises(BadRequestError, match="differ in length"):
        to_rows({"text": ["a"], "pair": ["c", "d"]})
    assert wrap_entries("outputs", [{"a": 1}, {"b": 2}], True) == {
        "outputs": {"a": [1, None], "b": [None, 2]}
    }
    assert wrap_entries("outputs", [{"a": 1}], False) == {"outputs": {"a": 1}}
    assert wrap_entries("predictions", [{"a": 1}], True) == {"predictions": [{"a": 1}]}


def test_the_only_version_in_an_address(start: Start) -> None:
    client = start()
    assert score_of(
        client.post("/v1/models/tiny/versions/1:predict", content=png(51)).json()
    ) == pytest.approx(0.2)
    answer = client.post("/v1/models/tiny/versions/2:predict", content=png(51))
    assert answer.status_code == 404 and "no such version" in answer.text
    store = client.app.state.store  # type: ignore[attr-defined]
    assert find_target(store, "/v1/models/tiny/versions/1:predict") is store.get("tiny")

"""The Open Inference Protocol of a server: tensors in and out, what it says of models, errors, shared batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from starlette.testclient import TestClient

from framework.inference.engine import TensorShape
from framework.serving.tensor_models import TensorModel, run_batch
from framework.serving.tensors import HEADER_LENGTH, describe_configured
from tests.unit.framework.serving.protocol_server import classifier, serve

INFER = "/v2/models/mean/infer"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with serve(classifier("mean").save(tmp_path_factory.mktemp("open") / "mean")) as opened:
        yield opened


def tensor(values: np.ndarray, **more: Any) -> dict[str, Any]:
    return {"name": "image", "datatype": "UINT8", "shape": list(values.shape), **more}


def images(*values: int) -> np.ndarray:
    return np.stack([np.full((8, 8, 3), value, np.uint8) for value in values])


def test_what_the_server_and_a_model_are(client: TestClient) -> None:
    extensions = ["binary_tensor_data", "model_configuration", "model_repository"]
    assert client.get("/v2").json()["extensions"] == extensions
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    for path in ("/v2/models/mean", "/v2/models/mean/versions/1"):
        assert client.get(f"{path}/ready").json() == {"name": "mean", "ready": True}
        facts = client.get(path).json()
        assert facts["inputs"] == [{"name": "image", "datatype": "UINT8", "shape": [-1, 8, 8, 3]}]
        assert facts["outputs"] == [{"name": "scores", "datatype": "FP32", "shape": [-1, 2]}]
        assert facts["versions"] == ["1"] and facts["platform"] == "jax_stablehlo"


def test_what_clients_of_triton_read_before_they_send(client: TestClient) -> None:
    """triton-inference-server/server#5074"""
    for path in ("/v2/models/mean/config", "/v2/models/mean/versions/1/config"):
        facts = client.get(path).json()
        assert facts["name"] == "mean" and facts["max_batch_size"] >= 1
        assert facts["input"] == [{"name": "image", "data_type": "TYPE_UINT8", "dims": [8, 8, 3]}]
        assert facts["output"] == [{"name": "scores", "data_type": "TYPE_FP32", "dims": [2]}]
    tensors = {"table": TensorShape((4, "n"), np.dtype(np.int32))}
    whole = [{"name": "table", "data_type": "TYPE_INT32", "dims": [4, -1]}]
    assert describe_configured(tensors, has_rows=False) == whole
    assert client.get("/v2/models/none/config").status_code == 404


def test_the_names_of_programs_are_listed(client: TestClient) -> None:
    entry = {"name": "mean", "version": "1", "state": "READY", "reason": ""}
    for body in (b"", b"{}", b'{"ready": true}'):
        assert client.post("/v2/repository/index", content=body).json() == [entry]
    assert client.post("/v2/repository/index", content=b"[").json()["error"]
    store = client.app.state.store  # type: ignore[attr-defined]
    store.models["later"] = SimpleNamespace(name="later", ready=False)
    try:
        later = client.post("/v2/repository/index").json()[1]
        assert later["name"] == "later" and later["state"] == "UNAVAILABLE"
        assert client.post("/v2/repository/index", json={"ready": True}).json() == [entry]
    finally:
        del store.models["later"]


def test_numbers_in_and_out(client: TestClient) -> None:
    values = images(51, 204)
    answer = client.post(INFER, json={"id": "a", "inputs": [tensor(values, data=values.tolist())]})
    assert answer.status_code == 200, answer.text
    content = answer.json()
    assert (content["id"], content["model_name"], content["model_version"]) == ("a", "mean", "1")
    (scores,) = content["outputs"]
    assert scores["shape"] == [2, 2] and scores["datatype"] == "FP32"
    np.testing.assert_allclose(scores["data"], [0.2, 0.8, 0.8, 0.2], atol=1e-6)


def test_bytes_in_and_out(client: TestClient) -> None:
    values = images(51)
    request = {
        "inputs": [tensor(values, parameters={"binary_data_size": values.nbytes})],
        "outputs": [{"name": "scores", "parameters": {"binary_data": True}}],
    }
    header = json.dumps(request).encode()
    answer = client.post(INFER, content=header + values.tobytes(), headers={HEADER_LENGTH: str(len(header))})
    assert answer.status_code == 200, answer.text
    length = int(answer.headers[HEADER_LENGTH])
    assert json.loads(answer.content[:length])["outputs"][0]["parameters"] == {"binary_data_size": 8}
    np.testing.assert_allclose(np.frombuffer(answer.content[length:], np.float32), [0.2, 0.8], atol=1e-6)


def test_every_client_gets_the_rows_of_its_own_request(client: TestClient) -> None:
    def ask(value: int) -> list[float]:
        rows = images(*[value] * (1 + value % 3))
        answer = client.post(INFER, json={"inputs": [tensor(rows, data=rows.ravel().tolist())]})
        (scores,) = answer.json()["outputs"]
        assert scores["shape"] == [len(rows), 2]
        return scores["data"][::2]

    with ThreadPoolExecutor(16) as threads:
        for value, means in enumerate(threads.map(ask, range(64))):
            np.testing.assert_allclose(means, value / 255, atol=1e-6)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/v2/models/other", 404, "no model of this name"),
        ("/v2/models/mean.detector", 404, "no stage of this name"),
        ("/v2/models/mean/versions/2", 404, "no such version"),
        ("/v2/models/mean/versions/2/ready", 404, "no such version"),
        ("/v2/nothing", 404, "not found"),
    ],
)
def test_errors_have_the_form_of_the_protocol(
    client: TestClient, path: str, status: int, message: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == status and message in answer.json()["error"]


def test_requests_that_do_not_fit_are_answered_with_what_does(client: TestClient) -> None:
    wide = np.zeros((1, 8, 9, 3), np.uint8)
    answer = client.post(INFER, json={"inputs": [tensor(wide, data=wide.ravel().tolist())]})
    assert answer.status_code == 400 and "[n, 8, 8, 3] uint8" in answer.json()["error"]
    answer = client.post(INFER, content=b"{}", headers={HEADER_LENGTH: "two"})
    assert answer.status_code == 400 and "no number of bytes" in answer.json()["error"]
    none = np.zeros((0, 8, 8, 3), np.uint8)
    answer = client.post(INFER, json={"inputs": [tensor(none, data=[])]})
    assert answer.status_code == 400


class _Rows:
    """An engine that counts its calls and doubles its input."""

    takes_any_shape = False

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.sizes.append(len(inputs["x"]))
        return {"y": inputs["x"] * 2}


@pytest.mark.parametrize(
    ("count", "any_shape", "run"), [(1, False, 1), (3, False, 4), (5, False, 8), (3, True, 3)]
)
def test_requests_run_together_in_few_sizes(count: int, any_shape: bool, run: int) -> None:
    engine = _Rows()
    engine.takes_any_shape = any_shape
    requests = [{"x": np.array([[n, n]])} for n in range(count)]
    outputs = list(run_batch(cast(Any, engine), requests))
    assert engine.sizes == [run]
    assert [output["y"].tolist() for output in outputs] == [[[2 * n, 2 * n]] for n in range(count)]


@pytest.mark.parametrize(
    ("inputs", "outputs", "shares"),
    [
        ([("n", 3)], [("n", 2)], True),
        ([("n", 3), ("n",)], [("n", 2)], True),
        ([("n", 3)], [(1, 2)], False),  # one output for all rows
        ([("n", 3), ("m", 3)], [("n", 2)], False),
        ([("n", "n")], [("n", 2)], False),  # rows against rows
        ([("n", "2*n")], [("n", 2)], False),
        ([("2*n", 3)], [("2*n", 2)], False),
        ([(1, 3)], [(1, 2)], False),
        ([("n", 3), ()], [("n", 2)], False),
    ],
)
def test_only_rows_that_are_samples_run_with_those_of_others(inputs: Any, outputs: Any, shares: bool) -> None:
    def specs(shapes: Any) -> dict[str, TensorShape]:
        return {str(k): TensorShape(shape, np.dtype("float32")) for k, shape in enumerate(shapes)}

    engine = SimpleNamespace(inputs=specs(inputs), outputs=specs(outputs))
    assert TensorModel("m", cast(Any, None), cast(Any, engine)).shares_batches is shares


def test_clients_of_triton_work(tmp_path: Path) -> None:
    triton = pytest.importorskip("tritonclient.http")
    from tests.unit.framework.serving.live_server import live

    with live(classifier("mean").save(tmp_path / "mean")) as address:
        asked = triton.InferenceServerClient(address.removeprefix("http://"))
        assert asked.is_server_live() and asked.is_model_ready("mean")
        for binary in (True, False):
            given = triton.InferInput("image", [2, 8, 8, 3], "UINT8")
            given.set_data_from_numpy(images(51, 204), binary_data=binary)
            output = triton.InferRequestedOutput("scores", binary_data=binary)
            scores = asked.infer("mean", [given], outputs=[output]).as_numpy("scores")
            np.testing.assert_allclose(scores, [[0.2, 0.8], [0.8, 0.2]], atol=1e-6)

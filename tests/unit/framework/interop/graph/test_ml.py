"""Operators of ai.onnx.ml, as skl2onnx writes them, against ONNX Runtime; and arrays of text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from framework.core.errors import InputError
from framework.inference.graph_engine import GraphEngine
from framework.interop.programs.onnx import load
from framework.interop.source import Source
from framework.workflow.convert.graph import compare_with_graph, convert_graph
from tests.unit.framework.interop.graph.conftest import model, value

ort = pytest.importorskip("onnxruntime", reason="the reference")
ML = "ai.onnx.ml"
RNG = np.random.default_rng(5)
X = RNG.normal(size=(9, 4)).astype(np.float32)
WEIGHTS = RNG.normal(size=12).tolist()
TREE = {
    "nodes_treeids": [0] * 5 + [1] * 3,
    "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
    "nodes_featureids": [0, 0, 2, 0, 0, 3, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_values": [0.1, 0.0, -0.2, 0.0, 0.0, 0.3, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 3, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 0, 4, 0, 0, 2, 0, 0],
}
LEAVES: dict[str, Any] = {"treeids": [0, 0, 0, 1, 1], "nodeids": [1, 3, 4, 1, 2]}
SHARES = [0.2, 0.7, 0.1, 0.3, 0.6]


def leaves(side: str, ids: list[int], weights: list[float]) -> dict[str, Any]:
    return TREE | {
        f"{side}_{name}": numbers for name, numbers in (LEAVES | {"ids": ids, "weights": weights}).items()
    }


SVM = {
    "kernel_type": "RBF", "kernel_params": [0.4, 0.0, 3.0], "support_vectors": RNG.normal(size=24).tolist(),
    "coefficients": WEIGHTS, "rho": [0.1, -0.2, 0.3], "vectors_per_class": [2, 2, 2], "classlabels_ints": [0, 1, 2],
}  # fmt: skip
LINEAR = {"coefficients": WEIGHTS, "intercepts": [0.1, -0.1, 0.2]}
CASES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("Scaler", {"offset": [0.1, 0.2, 0.3, 0.4], "scale": [1.0, 2.0, 3.0, 4.0]}, ("f",)),
    *(("Normalizer", {"norm": norm}, ("f",)) for norm in ("MAX", "L1", "L2")),
    (
        "Imputer",
        {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float(X[2, 1])},
        ("f",),
    ),
    ("Binarizer", {"threshold": 0.2}, ("f",)),
    ("LinearRegressor", LINEAR | {"targets": 3}, ("f",)),
    ("LinearClassifier", LINEAR | {"classlabels_ints": [4, 5, 6], "post_transform": "SOFTMAX"}, ("i", "f")),
    (
        "LinearClassifier",
        LINEAR | {"classlabels_strings": ["a", "b", "c"], "post_transform": "LOGISTIC"},
        ("s", "f"),
    ),
    (
        "TreeEnsembleRegressor",
        leaves("target", [0] * 5, SHARES) | {"n_targets": 1, "base_values": [0.5]},
        ("f",),
    ),
    (
        "TreeEnsembleRegressor",
        leaves("target", [0] * 5, SHARES) | {"n_targets": 1, "aggregate_function": "AVERAGE"},
        ("f",),
    ),
    (
        "TreeEnsembleRegressor",
        leaves("target", [0] * 5, SHARES) | {"n_targets": 1, "aggregate_function": "MAX"},
        ("f",),
    ),
    (
        "TreeEnsembleClassifier",
        leaves("class", [0, 1, 2, 0, 1], SHARES) | {"classlabels_int64s": [0, 1, 2]},
        ("i", "f"),
    ),
    (
        "TreeEnsembleClassifier",
        leaves("class", [0] * 5, SHARES) | {"classlabels_strings": ["n", "y"]},
        ("s", "f"),
    ),
    (
        "TreeEnsembleClassifier",
        leaves("class", [0] * 5, [0.4, -0.7, 0.1, -0.3, 0.6])
        | {"classlabels_int64s": [0, 1], "post_transform": "LOGISTIC", "base_values": [0.05]},
        ("i", "f"),
    ),
    ("SVMClassifier", SVM, ("i", "f")),
    ("SVMClassifier", SVM | {"prob_a": [-1.0, -2.0, -1.5], "prob_b": [0.1, 0.0, -0.1]}, ("i", "f")),
    *(
        (name, attributes | {"classlabels_ints": [5, 2**40, -(2**35)]}, ("i", "f"))
        for name, attributes in (
            ("LinearClassifier", LINEAR | {"post_transform": "SOFTMAX"}),
            ("SVMClassifier", SVM),
            ("TreeEnsembleClassifier", leaves("class", [0, 1, 2, 1, 0], SHARES)),
        )
    ),
    (
        "SVMRegressor",
        {"kernel_type": "POLY", "kernel_params": [0.4, 1.0, 2.0], "n_supports": 3, "rho": [0.2]}
        | {"support_vectors": WEIGHTS, "coefficients": [0.5, -1.0, 2.0]},
        ("f",),
    ),
]
KINDS = {"f": TensorProto.FLOAT, "i": TensorProto.INT64, "s": TensorProto.STRING, "O": TensorProto.STRING}


def graph(
    name: str, attributes: dict[str, Any], kinds: tuple[str, ...], x: np.ndarray = X, version: int = 3
) -> bytes:
    attributes = {
        "classlabels_int64s" if k == "classlabels_ints" and name.startswith("Tree") else k: v
        for k, v in attributes.items()
    }
    names = [f"y{i}" for i in range(len(kinds))]
    node = helper.make_node(name, ["x"], names, domain=ML, **attributes)
    proto = model(
        [node], [value("x", ["n", *x.shape[1:]], KINDS[x.dtype.kind])], names, domains={ML: version}
    )
    for output, kind in zip(proto.graph.output, kinds, strict=True):
        output.type.tensor_type.elem_type = KINDS[kind]
    proto.ir_version = 9
    return proto.SerializeToString()


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{name}-{i}" for i, (name, *_) in enumerate(CASES)]
)
def test_against_onnx_runtime(number: int) -> None:
    content = graph(*CASES[number])
    want = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"x": X})
    engine = GraphEngine(load(Source("m.onnx", memoryview(content))))
    for expected, got in zip(want, engine({"x": X}).values(), strict=True):
        if expected.dtype == object:
            assert got.tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=1e-4, atol=1e-5)


def test_dictionaries_of_scores_and_programs_without_them(tmp_path) -> None:
    classifier = helper.make_node(
        "LinearClassifier",
        ["x"],
        ["label", "p"],
        domain=ML,
        classlabels_ints=[4, 5, 6],
        post_transform="SOFTMAX",
        **LINEAR,
    )
    zipped = helper.make_node("ZipMap", ["p"], ["named"], domain=ML, classlabels_int64s=[4, 5, 6])
    (tmp_path / "m.onnx").write_bytes(
        model(
            [classifier, zipped], [value("x", ["n", 4])], ["label", "named"], domains={ML: 3}
        ).SerializeToString()
    )
    made = convert_graph(tmp_path / "m.onnx")
    assert compare_with_graph(made) < 1e-6
    scores = made.engine({"x": X})["named"]
    named = GraphEngine(made.graph)({"x": X})["named"]
    assert [*named[3]] == [4, 5, 6] and named[3][5] == pytest.approx(float(scores[3, 1]))


def test_text_goes_through_tables_and_not_into_a_program(tmp_path) -> None:
    nodes = [
        helper.make_node(
            "LabelEncoder", ["t"], ["code"], domain=ML, keys_strings=["b", "a"], values_int64s=[7, 3]
        ),
        helper.make_node("OneHotEncoder", ["t"], ["hot"], domain=ML, cats_strings=["a", "b", "c"]),
        helper.make_node("StringConcat", ["t", "t"], ["twice"]),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    inputs = [value("t", [3], TensorProto.STRING), value("x", ["n", 4])]
    proto = model(nodes, inputs, ["code", "hot", "twice", "y"], opset=20, domains={ML: 3})
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    engine = GraphEngine(load(tmp_path / "m.onnx"))
    got = engine({"t": np.array(["a", "b", "x"], object), "x": X})
    assert got["code"].tolist() == [3, 7, -1] and got["twice"].tolist() == ["aa", "bb", "xx"]
    assert got["hot"].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(got["y"], np.maximum(X, 0))
    with pytest.raises(InputError, match=r"an input of the graph is text(.|\n)*Config"):
        convert_graph(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("op", "x", "kind", "attributes"),
    [  # sklearn-onnx#1047, onnx#5320: NaN is a key
        ("LabelEncoder", "f", "s", {"keys_floats": [np.nan, 1.0], "values_strings": ["none", "one"]}),
        ("LabelEncoder", "f", "i", {"keys_floats": [np.nan, 1.0], "values_int64s": [4, 5]}),
        # the first of equal keys counts
        ("LabelEncoder", "i", "s", {"keys_int64s": [1, 7, 1], "values_strings": ["a", "b", "c"]}),
        ("LabelEncoder", "s", "i", {"keys_strings": ["b", "a", "b"], "values_int64s": [1, 2, 3]}),
        # NaN is no category
        ("OneHotEncoder", "f", "f", {"cats_int64s": [0, 9]}),
        # attributes keep 64 bits
        ("LabelEncoder", "i", "i", {"keys_int64s": [2**32 + 5, 1], "values_int64s": [2, 2**40]}),
        ("LabelEncoder", "i", "i", {"keys_int64s": [1], "values_int64s": [1], "default_int64": -(2**35)}),
        ("OneHotEncoder", "i", "f", {"cats_int64s": [2**32 + 5, 7]}),
        ("Imputer", "i", "i", {"imputed_value_int64s": [2**40], "replaced_value_int64": 7}),
    ],
)
def test_keys_and_categories(op: str, x: str, kind: str, attributes: dict[str, Any]) -> None:
    arrays: dict[str, np.ndarray] = {
        "f": np.array([1, np.nan, 9], np.float32), "i": np.array([1, 5, 7]), "s": np.array(["a", "b", "c"], object),
    }  # fmt: skip
    inputs = {"x": arrays[x]}
    content = graph(op, attributes, (kind,), inputs["x"], version=4 if op == "LabelEncoder" else 3)
    (got,) = GraphEngine(load(Source("m.onnx", memoryview(content))))(inputs).values()
    (want,) = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, inputs)
    assert got.tolist() == want.tolist()


def test_features_of_a_table_of_long_labels() -> None:
    """What skl2onnx writes for nearest neighbours whose classes are beyond 32 bits."""
    table = np.array([[2**40, 7, -(2**35)]])
    node = helper.make_node("ArrayFeatureExtractor", ["table", "x"], ["y0"], domain=ML)
    proto = model([node], [value("x", ["n"], TensorProto.INT64)], ["y0"], {"table": table}, domains={ML: 3})
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    engine = GraphEngine(load(Source("m.onnx", memoryview(proto.SerializeToString()))))
    assert engine({"x": np.array([2, 0])})["y0"].tolist() == [[-(2**35), 2**40]]

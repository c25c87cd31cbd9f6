from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from framework.core.errors import FormatError
from framework.interop import TensorSpec, load_weights, read_onnx
from framework.interop.programs.onnx import DTYPES

FLOAT = TensorProto.FLOAT
PACKED = (21, 22, 23, 25, 26)  # of 4 and 2 bits


def model(nodes=(), initializers=(), inputs=("x",), outputs=("y",), **options):
    def value(name):
        return helper.make_tensor_value_info(name, FLOAT, ["n", 3, None])

    nodes = nodes or [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(
        nodes, "g", [value(n) for n in inputs], [value(n) for n in outputs], initializers
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], **options)


@pytest.fixture
def read(tmp_path):
    def read(proto):
        path = tmp_path / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        return read_onnx(path)

    return read


def test_a_model(read):
    proto = model()
    helper.set_model_props(proto, {"character": "一\n乙"})
    program = read(proto)
    assert (program.format, program.version) == ("onnx", "opset 17")
    assert program.inputs == (TensorSpec("x", ("n", 3, None), "float32"),)
    assert program.outputs == (TensorSpec("y", ("n", 3, None), "float32"),)
    assert program.metadata == {"character": "一\n乙"}
    assert [(node.op, node.name, node.inputs, node.outputs) for node in program.nodes] == [
        ("Identity", "Identity#0", ("x",), ("y",))
    ]


def test_every_kind_of_attribute(read):
    tensor = numpy_helper.from_array(np.float32([[1, 2]]), "t")
    attrs = {
        "f": 0.5,
        "i": -3,
        "s": "é",
        "t": tensor,
        "fs": [0.5, 1.5],
        "is": [1, -2],
        "ss": ["a", "b"],
        "ts": [tensor],
    }
    node = helper.make_node("Mine", ["x"], ["y"], name="n", domain="com.example", **attrs)
    node.attribute.append(helper.make_attribute("raw", b"\xff\xfe"))
    read_node = read(model([node])).nodes[0]
    got = dict(read_node.attrs)
    assert got.pop("t").tolist() == [[1, 2]] and got.pop("ts")[0].tolist() == [[1, 2]]
    assert got == {
        "f": 0.5,
        "i": -3,
        "s": "é",
        "fs": (0.5, 1.5),
        "is": (1, -2),
        "ss": ("a", "b"),
        "raw": b"\xff\xfe",
    }
    assert read_node.op == "com.example.Mine"


@pytest.mark.parametrize("code", [c for c in DTYPES if c not in (14, 15, *PACKED, TensorProto.FLOAT8E8M0)])
@pytest.mark.parametrize("raw", [True, False])
def test_tensors_against_the_onnx_package(read, code, raw):
    numbers = np.array([[0, 1, 2], [3, 0, 1]]).astype(DTYPES[code])
    content = numbers.tobytes() if raw else numbers.astype(np.float64).ravel().tolist()
    tensor = helper.make_tensor("w", code, (2, 3), content, raw=raw)
    got = read(model(initializers=[tensor])).parameters["w"]
    np.testing.assert_array_equal(got, numbers, strict=True)
    assert not got.flags.writeable


@pytest.mark.parametrize("code", PACKED)
@pytest.mark.parametrize("raw", [True, False])
def test_packed_tensors_against_the_onnx_package(read, code, raw):
    low, high = {21: (0, 15), 22: (-8, 7), 23: (-2, 6), 25: (0, 3), 26: (-2, 1)}[code]
    numbers = np.array([low, high, 0, 1, high, low, 1], np.float32).astype(DTYPES[code])
    tensor = numpy_helper.from_array(numbers, "w")
    assert tensor.data_type == code
    if not raw:
        tensor.int32_data.extend(tensor.raw_data)
        tensor.ClearField("raw_data")
    got = read(model(initializers=[tensor])).parameters["w"]
    np.testing.assert_array_equal(got.astype(np.float32), numbers.astype(np.float32))
    assert got.dtype == DTYPES[code] and not got.flags.writeable


def test_bodies_side_by_side_may_name_their_constants_alike(read):
    def branch(number):
        constant = helper.make_tensor("c", FLOAT, (1,), [number])
        return helper.make_graph(
            [helper.make_node("Add", ["x", "c"], ["out"])],
            "b",
            [],
            [helper.make_tensor_value_info("out", FLOAT, None)],
            [constant],
        )

    program = read(
        model([helper.make_node("If", ["x"], ["y"], then_branch=branch(1.0), else_branch=branch(2.0))])
    )
    (node,) = program.nodes
    assert [signature.outputs for signature in node.signatures] == [("out",), ("out",)]
    names = {s.attribute: block[0].inputs[1] for s, block in zip(node.signatures, node.blocks)}
    constants = {attribute: program.parameters[name].tolist() for attribute, name in names.items()}
    assert constants == {"then_branch": [1], "else_branch": [2]}
    assert program.domains == {"": 17}


def test_complex_negative_and_empty_tensors(read):
    tensors = [
        helper.make_tensor("c", TensorProto.COMPLEX64, (2,), [1 + 2j, -1j]),
        helper.make_tensor("d", TensorProto.COMPLEX128, (1,), [1 + 2j]),
        helper.make_tensor("i", TensorProto.INT64, (2,), [-1, 2**62]),
        helper.make_tensor("u", TensorProto.UINT64, (1,), [2**64 - 1]),
        helper.make_tensor("j", TensorProto.INT8, (2,), [-128, 127]),
        helper.make_tensor("e", FLOAT, (0, 3), []),
        helper.make_tensor("s", FLOAT, (), [2.0]),
    ]
    got = read(model(initializers=tensors)).parameters
    assert got["c"].tolist() == [1 + 2j, -1j] and got["d"].tolist() == [1 + 2j]
    assert got["i"].tolist() == [-1, 2**62] and got["u"].tolist() == [2**64 - 1]
    assert got["j"].tolist() == [-128, 127]
    assert got["e"].shape == (0, 3) and got["s"].shape == () and got["s"] == 2


def test_constant_nodes_are_parameters(read):
    tensor = numpy_helper.from_array(np.float32([1, 2]), "ignored")
    nodes = [
        helper.make_node("Constant", [], ["a"], value=tensor),
        helper.make_node("Constant", [], ["b"], value_float=0.5),
        helper.make_node("Constant", [], ["c"], value_ints=[1, 2]),
        helper.make_node("Constant", [], ["d"], value_int=7),
        helper.make_node("Constant", [], ["e"], value_floats=[0.5]),
        helper.make_node("Constant", [], ["f"], value_string="text"),
        helper.make_node("Identity", ["x"], ["y"]),
    ]
    program = read(model(nodes))
    assert {name: array.tolist() for name, array in program.parameters.items()} == {
        **{"a": [1, 2], "b": 0.5, "c": [1, 2], "d": 7, "e": [0.5], "f": "text"}
    }
    assert program.parameters["c"].dtype == np.int64 and program.parameters["b"].dtype == np.float32
    assert [node.op for node in program.nodes] == ["Identity"]


def test_bodies_of_control_flow(read):
    body = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["z"])],
        "then",
        [],
        [helper.make_tensor_value_info("z", FLOAT, None)],
        [numpy_helper.from_array(np.float32([1]), "w")],
    )
    program = read(model([helper.make_node("If", ["x"], ["y"], then_branch=body)]))
    assert [node.op for node in program.walk()] == ["If", "Add"]
    assert program.parameters["w"].tolist() == [1]


def test_nodes_in_any_order(read):
    """As onnxruntime takes them: converters to float16 append the casts of the inputs."""
    body = helper.make_graph(
        [helper.make_node("Neg", ["cast"], ["z"])],
        "then",
        [],
        [helper.make_tensor_value_info("z", FLOAT, None)],
    )
    nodes = [
        helper.make_node("If", ["x"], ["y"], then_branch=body),
        helper.make_node("Relu", ["wide"], ["cast"]),
        helper.make_node("Cast", ["x"], ["wide"], to=FLOAT),
    ]
    assert [node.op for node in read(model(nodes)).nodes] == ["Cast", "Relu", "If"]
    circle = [helper.make_node("Relu", ["b"], ["y"]), helper.make_node("Relu", ["y"], ["b"], name="second")]
    with pytest.raises(FormatError, match="uses a value before anything makes it"):
        read(model(circle))


def test_initializers_that_are_also_inputs_are_no_inputs(read):
    tensor = numpy_helper.from_array(np.float32([1]), "w")
    assert [spec.name for spec in read(model(initializers=[tensor], inputs=("x", "w"))).inputs] == ["x"]


def nested(depth):
    graph = helper.make_graph([], "leaf", [], [])
    for _ in range(depth):
        graph = helper.make_graph([helper.make_node("If", [], [], then_branch=graph)], "g", [], [])
    return [helper.make_node("If", ["x"], ["y"], then_branch=graph)]


def broken(change):
    proto = model(initializers=[helper.make_tensor("w", FLOAT, (2,), b"\0" * 8, raw=True)])
    change(proto.graph, proto.graph.initializer[0])
    return proto


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        (onnx.ModelProto(ir_version=8), "not a complete ONNX model(.|\n)*no graph, 0 opsets"),
        (
            onnx.ModelProto(ir_version=8, graph=model().graph),
            "not a complete ONNX model(.|\n)*a graph, 0 opsets",
        ),
        (
            broken(lambda g, t: t.dims.append(3)),
            r"the tensor 'w': the shape \[2, 3\] of float32 takes 24 bytes, 8 are",
        ),
        (broken(lambda g, t: t.dims.__setitem__(0, 2**60)), "the tensor 'w': the shape is impossible"),
        (broken(lambda g, t: t.dims.__setitem__(0, -2)), "the tensor 'w': the shape is impossible"),
        (
            broken(lambda g, t: setattr(t, "data_type", 8)),
            "the tensor 'w' is cut short",
        ),
        (
            broken(lambda g, t: setattr(t, "data_type", 99)),
            "is of a kind that is not read(.|\n)*data type 99",
        ),
        (
            broken(lambda g, t: (setattr(t, "data_type", 22), t.dims.__setitem__(0, 17))),
            "the tensor 'w' is cut short(.|\n)*8 bytes(.|\n)*17 values of 4 bits",
        ),
        (broken(lambda g, t: t.segment.__setattr__("end", 1)), "received: a segment of a tensor"),
        (broken(lambda g, t: g.initializer.append(t)), "two tensors are called 'w'"),
        (broken(lambda g, t: g.sparse_initializer.add()), "sparse initializers are not read"),
        (
            model([helper.make_node("Add", ["x", "late"], ["y"], name="a")]),
            "node 'a' uses a value before(.|\n)*late",
        ),
        (model(nested(20)), "graphs are nested too deeply(.|\n)*at most 16 levels"),
    ],
)
def test_damaged_models(read, proto, message):
    with pytest.raises(FormatError, match=message):
        read(proto)


# External data -------------------------------------------------------------------------------------------------------


def external(location, offset="4", length="8"):
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, "offset": offset, "length": length}.items():
        if value is not None:
            tensor.external_data.add(key=key, value=value)
    return model(initializers=[tensor])


def test_external_data_beside_the_model(read, tmp_path):
    (tmp_path / "sub").mkdir()
    content = np.float32([9, 1, 2]).tobytes()
    for location in ("model.data", "sub/model.data"):
        (tmp_path / location).write_bytes(content)
        assert read(external(location)).parameters["w"].tolist() == [1, 2]
    assert read(external("model.data", length=None)).parameters["w"].tolist() == [1, 2]


def test_the_onnx_package_writes_external_data_that_is_read(tmp_path):
    array = np.arange(2000, dtype="f4")
    proto = model(initializers=[numpy_helper.from_array(array, "w")])
    onnx.save_model(
        proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0
    )
    np.testing.assert_array_equal(load_weights(tmp_path / "m.onnx")["w"], array, strict=True)


def test_links_of_hugging_faces_cache_to_model_and_data(tmp_path):
    """Both lead to files side by side; a file next to no model stays out of reach."""
    proto = external("m.onnx_data")
    files = {
        "blobs/a": proto.SerializeToString(),
        "blobs/b": np.float32([0, 1, 2]).tobytes(),
        "secret": b"x" * 12,
    }
    links = {"main/m.onnx": "../blobs/a", "main/m.onnx_data": "../blobs/b", "other/m.onnx": "../blobs/a"}
    links["other/m.onnx_data"] = "../secret"
    for folder in ("blobs", "main", "other"):
        (tmp_path / folder).mkdir()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    assert read_onnx(tmp_path / "main/m.onnx").parameters["w"].tolist() == [1, 2]
    with pytest.raises(FormatError, match="outside of the model's folder"):
        read_onnx(tmp_path / "other/m.onnx")


def test_external_data_of_four_bits(read, tmp_path):
    (tmp_path / "data").write_bytes(b"\x21\xf3")
    proto = external("data", "0", "2")
    tensor = proto.graph.initializer[0]
    tensor.data_type, tensor.dims[:] = TensorProto.INT4, [3]
    assert read(proto).parameters["w"].astype(int).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "location",
    [
        "../secret",
        "sub/../../secret",
        "/etc/passwd",
        "C:\\secret",
        "..\\secret",
        "",
        ".",
        "a\0b",
        "x" * 300,
        "sub/..",
    ],
)
def test_external_data_elsewhere_is_refused(read, tmp_path, location):
    (tmp_path.parent / "secret").write_bytes(bytes(16))
    with pytest.raises(
        FormatError, match=r"the tensor 'w' points outside of the model's folder(.|\n)*a file below"
    ):
        read(external(location))


def test_a_link_out_of_the_folder_is_refused(read, tmp_path):
    secret = tmp_path.parent / f"{tmp_path.name}.secret"
    secret.write_bytes(bytes(16))
    try:
        (tmp_path / "link").symlink_to(secret)
    except OSError:
        pytest.skip("links cannot be made here")
    with pytest.raises(FormatError, match="points outside of the model's folder"):
        read(external("link"))


@pytest.mark.parametrize(
    ("offset", "length", "message"),
    [
        ("8", "8", "the file ends inside the tensor 'w'"),
        ("0", "4", "takes 8 bytes, 4 are there"),
        ("-4", "8", "the file ends inside the tensor 'w'"),
        ("0", "9" * 30, "the file ends inside the tensor 'w'"),
        ("0", "²", "the file ends inside the tensor 'w'"),
        ("99", None, "the file ends inside the tensor 'w'"),
    ],
)
def test_external_ranges(read, tmp_path, offset, length, message):
    (tmp_path / "data").write_bytes(bytes(12))
    with pytest.raises(FormatError, match=message):
        read(external("data", offset, length))


def test_external_data_that_is_missing(read):
    with pytest.raises(FormatError, match=r"the tensor 'w' is in a file that is not there(.|\n)*no.data"):
        read(external("no.data"))


# Real files ----------------------------------------------------------------------------------------------------------


def real_models(weights: Path) -> list[Path]:
    return sorted(weights.glob("*/*.onnx"))


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the branches of its Ifs."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from all_nodes(attribute.g)


def test_real_models_against_the_onnx_package(weights):
    paths = real_models(weights)
    assert len(paths) >= 6
    for path in paths:
        program, theirs = read_onnx(path), onnx.load(path).graph
        tensors = {t.name: t for t in theirs.initializer}
        tensors |= {n.output[0]: n.attribute[0].t for n in all_nodes(theirs) if n.op_type == "Constant"}
        assert set(program.parameters) == set(tensors)
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(
                program.parameters[name], numpy_helper.to_array(tensor), strict=True
            )
        nodes = [node for node in theirs.node if node.op_type != "Constant"]
        assert len(nodes) == len(program.nodes)
        for ours, node in zip(program.nodes, nodes):
            assert (ours.op, ours.inputs, ours.outputs) == (
                node.op_type,
                tuple(node.input),
                tuple(node.output),
            )
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    continue
                value = helper.get_attribute_value(attribute)
                value = value.decode("utf-8") if isinstance(value, bytes) else value
                if attribute.type == onnx.AttributeProto.TENSOR:
                    np.testing.assert_array_equal(ours.attrs[attribute.name], numpy_helper.to_array(value))
                    continue
                assert ours.attrs[attribute.name] == (tuple(value) if isinstance(value, list) else value)


def test_the_dictionary_in_a_recognition_model():
    rapidocr = pytest.importorskip(
        "rapidocr", reason="the wheel that carries the PP-OCRv6 models is not installed"
    )
    path = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_rec_small.onnx"
    if not path.is_file():
        pytest.skip("this rapidocr wheel carries no PP-OCRv6 recogniser")
    assert (
        len(read_onnx(path).metadata["character"].split("\n")) == 18_708
    )  # 18,710 classes with blank and space

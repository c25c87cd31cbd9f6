import json

import pytest

from framework.core.errors import FormatError
from framework.interop import TensorSpec, read_pir
from framework.interop.programs.program import Signature


def test_a_program_of_paddle_3(data):
    program = read_pir(data / "network_pir.json")
    assert (program.format, program.version) == ("pir", "schema 3")
    assert program.inputs == (TensorSpec("x", (None, 3, 8, 8), "float32"),)
    assert [(spec.shape, spec.dtype) for spec in program.outputs] == [((None, 8, 5), "float32")]
    assert program.parameters["conv2d_1.w_0"] == TensorSpec("conv2d_1.w_0", (4, 3, 3, 3), "float32")
    assert len(program.parameters) == 33  # the dropout state of the LSTM is a parameter without value
    conv = program.nodes[0]
    assert (conv.op, conv.name, conv.inputs) == ("pd_op.conv2d", "/Conv2D/", ("x", "conv2d_1.w_0"))
    assert conv.attrs["strides"] == (2, 2) and conv.attrs["data_format"] == "NCHW"
    rnn = next(node for node in program.nodes if node.op == "pd_op.rnn")
    assert rnn.inputs[3] == "" and rnn.attrs["num_layers"] == 2
    combine = next(node for node in program.nodes if rnn.inputs[2] in node.outputs)
    assert combine.op == "builtin.combine" and combine.inputs[:2] == ("lstm_cell_0.w_0", "lstm_cell_0.w_1")


def program(ops, version=4, magic="pir"):
    block = {"#": "block_0", "args": [], "ops": ops}
    return {
        "base_code": {"magic": magic, "trainable": True, "version": version},
        "program": {"regions": [{"#": "region_0", "blocks": [block]}]},
    }


def encode(value):
    return json.dumps(value).encode("utf-8")


def parameter(name, number, persistable=1):
    kind = {"#": "0.t_dtensor", "D": [{"#": "0.t_bf16"}, [2], "NCHW", [], 0]}
    return {"#": "p", "A": [0, 1, 1, name], "O": {"%": number, "TT": kind}, "OA": [persistable, 0, 1]}


def operation(name, inputs=(), outputs=(), **more):
    return {"#": name, "A": [], "I": [{"%": i} for i in inputs], "O": [{"%": i} for i in outputs], **more}


def test_attributes_of_every_kind(source):
    scalar = {"N": "value", "AT": {"#": "1.a_scalar", "D": 1.5}}
    nested = {
        "#": "0.a_array",
        "D": [{"#": "0.a_f64", "D": 0.5}, {"#": "0.a_array", "D": [{"#": "0.a_i64", "D": 2}]}],
    }
    ints = {"N": "shape", "AT": {"#": "1.a_intarray", "D": [1, -1]}}
    empty = {"N": "none", "AT": {"#": "0.a_pointer"}}
    op = operation("3.mine", A=[scalar, {"N": "many", "AT": nested}, ints, empty])
    node = read_pir(source(encode(program([op])))).nodes[0]
    assert node.op == "custom_op.mine" and node.name == "mine#1"
    assert node.attrs == {"value": 1.5, "many": (0.5, (2,)), "shape": (1, -1), "none": None}


def test_regions(source):
    body = {
        "blocks": [{"args": [{"%": -1}], "ops": [operation("1.relu", [-1], [3]), operation("2.yield", [3])]}]
    }
    loop = operation("1.while", [1], [2], regions=[body])
    read = read_pir(source(encode(program([parameter("w", 1), loop]))))
    assert [node.op for node in read.walk()] == ["pd_op.while", "pd_op.relu"]
    assert read.nodes[0].inputs == ("w",) and read.nodes[0].blocks[0][0].inputs == ("%2.1",)
    assert read.nodes[0].signatures == (Signature("region_0", ("%2.1",), ("%3",)),)
    assert read.parameters == {"w": TensorSpec("w", (2,), "bfloat16")}


def test_blocks_have_arguments_of_the_same_numbers(source):
    """Blocks beside and inside one another may number their arguments alike; Paddle 3 writes the number as "#"."""
    inner = {
        "blocks": [{"args": [{"#": -1}], "ops": [operation("1.exp", [-1], [6]), operation("2.yield", [6])]}]
    }
    body = [operation("1.while", [-1], [5], regions=[inner]), operation("1.relu", [-1], [7])]
    loop = operation("1.while", [1], [2], regions=[{"blocks": [{"args": [{"#": -1}], "ops": body}]}])
    outer = read_pir(source(encode(program([parameter("w", 1), loop])))).nodes[0]
    again, relu = outer.blocks[0]
    assert outer.signatures[0].inputs == again.inputs == relu.inputs == ("%2.1",)
    assert again.signatures[0].inputs == again.blocks[0][0].inputs == ("%3.1",)


def deep(depth, wrap, core):
    for _ in range(depth):
        core = wrap(core)
    return core


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "byte 1: not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b'{"base_code": 3}', "this JSON file is not a PIR program"),
        (b"[]", "not a PIR program"),
        (encode({"model_type": "pp_ocrv5"}), "not a PIR program(.|\n)*inference.json that Paddle 3 exports"),
        (encode(program([], magic="onnx")), "received: magic 'onnx'"),
        (encode(program([], version="4")), "not a PIR program"),
        (
            encode(program([], version=9)),
            "of a newer schema than this reader knows(.|\n)*received: 9(.|\n)*0 to 4",
        ),
        (encode({"base_code": {"magic": "pir", "version": 1}}), "operation 0 of the PIR program is damaged"),
        (encode(program([{"#": "1.relu"}])), "operation 1 of the PIR program is damaged(.|\n)*KeyError"),
        (encode(program([parameter("w", 1), parameter("w", 2)])), "operation 2 (.|\n)*'w' is declared twice"),
        (encode(program([parameter(7, 1)])), "a parameter without name or number"),
        (encode(program([operation("1.x", outputs=["y"])])), "operation 1 of the PIR program is damaged"),
        (encode(program([operation("1.x", outputs=[[]])])), "operation 1 of the PIR program is damaged"),
        (encode(program(7)), "is damaged"),
        (
            encode(
                program(deep(20, lambda ops: [operation("1.if", regions=[{"blocks": [{"ops": ops}]}])], []))
            ),
            "regions are nested more than 16 deep",
        ),
        (
            encode(
                program(
                    [
                        operation(
                            "1.x",
                            A=[
                                {
                                    "N": "a",
                                    "AT": deep(20, lambda v: {"#": "0.a_array", "D": [v]}, {"#": "0.a_i32"}),
                                }
                            ],
                        )
                    ]
                )
            ),
            "attributes are nested too deeply",
        ),
    ],
)
def test_damaged_files(source, content, message):
    with pytest.raises(FormatError, match=message):
        read_pir(source(content))

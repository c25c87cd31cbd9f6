"""Paddle's newer program format: PIR as JSON (`inference.json`).

Source: paddle/fluid/pir/serialize_deserialize, and files written by Paddle 3.2.2
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from framework.core.errors import FormatError
from framework.interop.programs.program import Node, Program, Signature, TensorSpec
from framework.interop.source import Source, read_source

_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "dist"}
_DTYPES = {
    "t_bool": "bool",
    "t_ui8": "uint8",
    "t_bf16": "bfloat16",
    **{f"t_i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"t_f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"t_c{bits}": f"complex{bits}" for bits in (64, 128)},
    "t_f8e4m3fn": "float8_e4m3fn",
    "t_f8e5m2": "float8_e5m2",
}
_MAX_SCHEMA = 4
_MAX_DEPTH = 16


def read_pir(path: str | Path | Source) -> Program:
    """Read a PIR program. Its parameters are TensorSpecs: the values lie in the parameter file.

    Values are called `%7`; the result of a parameter operation has the parameter's name. A parameter that is not
    persistent (the dropout state of an RNN) has no value in the parameter file and is left out.
    Raises FormatError when the file is damaged or no PIR program.
    """
    source = read_source(path)
    try:
        root = json.loads(bytes(source.data))
    except (ValueError, RecursionError) as error:
        raise source.error(f"not valid JSON: {error}", getattr(error, "pos", None)) from None
    try:
        base = root["base_code"]
        magic, version = base["magic"], base["version"]
    except (TypeError, LookupError):
        magic, version = None, None
    if magic != "pir" or not isinstance(version, int):
        raise source.error(
            "this JSON file is not a PIR program",
            received=f"magic {str(magic)[:40]!r}",
            allowed='{"base_code": {"magic": "pir", "version": ...}, "program": ...}',
            fix="give the inference.json that Paddle 3 exports beside inference.pdiparams",
        )
    if version > _MAX_SCHEMA:
        raise source.error(
            "the PIR program is of a newer schema than this reader knows",
            received=version,
            allowed=f"0 to {_MAX_SCHEMA}",
            fix="export the model with Paddle 3.0 to 3.3, or as ONNX",
        )
    reader = _Reader()
    try:
        nodes = reader.block(root["program"]["regions"][0]["blocks"][0], 0)
    except FormatError:
        raise
    except (TypeError, LookupError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise source.error(
            f"operation {reader.count} of the PIR program is damaged",
            received=f"{type(error).__name__}: {str(error)[:200]}",
        ) from None
    return Program(
        format="pir",
        version=f"schema {version}",
        nodes=nodes,
        parameters=dict(reader.parameters),
        inputs=tuple(reader.inputs),
        outputs=tuple(spec for _, spec in sorted(reader.outputs, key=lambda pair: pair[0])),
        name=source.name,
    )


class _Reader:
    def __init__(self) -> None:
        self.count = 0
        self.parameters: dict[str, TensorSpec] = {}
        self.inputs: list[TensorSpec] = []
        self.outputs: list[tuple[int, TensorSpec]] = []
        self._names: dict[int, str] = {0: ""}
        self._types: dict[int, object] = {}

    def block(self, block: dict[str, Any], depth: int) -> tuple[Node, ...]:
        if depth > _MAX_DEPTH:
            raise ValueError(f"regions are nested more than {_MAX_DEPTH} deep")
        nodes = []
        for entry in block["ops"]:
            self.count += 1
            op = entry["#"]
            if op == "p":
                self._parameter(entry)
            elif (node := self._node(op, entry, depth)) is not None:
                nodes.append(node)
        return tuple(nodes)

    def _parameter(self, entry: dict[str, Any]) -> None:
        name, identity = entry["A"][3], entry["O"]["%"]
        if type(name) is not str or type(identity) is not int:
            raise ValueError("a parameter without name or number")
        self._names[identity] = name
        if entry["OA"][0]:
            if name in self.parameters:
                raise ValueError(f"the parameter {name!r} is declared twice")
            self.parameters[name] = self._spec(name, entry["O"]["TT"])

    def _node(self, op: str, entry: dict[str, Any], depth: int) -> Node | None:
        dialect, _, word = op.partition(".")
        attrs = {attr["N"]: _attribute(attr["AT"], 0) for attr in entry["A"]}
        operands = [operand["%"] for operand in entry["I"]]
        results = entry["O"]
        for result in results:
            self._names[result["%"]] = f"%{int(result['%'])}"
            self._types[result["%"]] = result.get("TT")
        if op == "1.fetch":
            spec = self._spec(self._names[operands[0]], self._types.get(operands[0]))
            self.outputs.append((int(attrs.get("col", len(self.outputs))), spec))
            return None
        if op == "1.data":
            self._names[results[0]["%"]] = name = str(attrs["name"])
            spec = self._spec(name, results[0].get("TT"))
            if spec.dtype and spec.dtype not in _DTYPES.values():
                raise ValueError(f"the data type {spec.dtype[:40]!r} of the input {name[:40]!r} is not known")
            self.inputs.append(spec)
            return None
        blocks, signatures = [], []
        for number, region in enumerate(entry.get("regions", ())):
            for body in region["blocks"]:
                nodes, signature = self._body(body, f"region_{number}", depth)
                blocks.append(nodes)
                signatures.append(signature)
        return Node(
            op=f"{_DIALECTS.get(dialect, dialect)}.{word}",
            name=str(attrs.get("struct_name") or f"{word}#{self.count}"),
            inputs=tuple(self._names.get(operand, f"%{int(operand)}") for operand in operands),
            outputs=tuple(self._names[result["%"]] for result in results),
            attrs=attrs,
            blocks=tuple(blocks),
            signatures=tuple(signatures),
        )

    def _body(self, body: dict[str, Any], attribute: str, depth: int) -> tuple[tuple[Node, ...], Signature]:
        """A block without the operation that ends it, and what it takes and gives. Arguments have numbers below 0,
        which other blocks have too."""
        numbers = [argument.get("#", argument.get("%")) for argument in body.get("args", ())]
        if any(type(number) is not int for number in numbers):
            raise ValueError("an argument of a block without number")
        outer = {number: self._names[number] for number in numbers if number in self._names}
        names = tuple(f"%{self.count}.{-number}" for number in numbers)
        self._names |= dict(zip(numbers, names))
        nodes = self.block(body, depth + 1)
        self._names |= outer
        outputs: tuple[str, ...] = ()
        if nodes and nodes[-1].op == "cf.yield":
            nodes, outputs = nodes[:-1], nodes[-1].inputs
        return nodes, Signature(attribute, names, outputs)

    def _spec(self, name: str, kind: object) -> TensorSpec:
        """`kind` is {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [dims], layout, lod, offset]}."""
        if not isinstance(kind, dict) or not str(kind.get("#")).endswith("t_dtensor"):
            return TensorSpec(name, (), "")
        dtype, dims = str(kind["D"][0]["#"]).partition(".")[2], kind["D"][1]
        shape = tuple(size if size >= 0 else None for size in dims)
        return TensorSpec(name, shape, _DTYPES.get(dtype, dtype))


def _attribute(value: Any, depth: int) -> Any:
    """The value of {"#": "0.a_f32", "D": 1.5}; arrays become tuples. Schema 4 turned many a_f32 into a_f64."""
    kind, data = value["#"], value.get("D")
    if depth > _MAX_DEPTH:
        raise ValueError("attributes are nested too deeply")
    if kind.endswith(".a_array"):
        return tuple(_attribute(item, depth + 1) for item in data)
    return tuple(data) if isinstance(data, list) else data

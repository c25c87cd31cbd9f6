"""One form for a program read from ONNX, from a ProgramDesc (`.pdmodel`) or from PIR (`.json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TEXT_NAME = "str"
"""The dtype of a TensorSpec of text."""


@dataclass(frozen=True)
class TensorSpec:
    """What a program declares about a tensor. A dimension is a number, a name, or None when it is open."""

    name: str
    shape: tuple[int | str | None, ...]
    dtype: str


@dataclass(frozen=True)
class Signature:
    """How the body of a control-flow node is called: the attribute that holds it (`then_branch`) and its values."""

    attribute: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """One operation. `op` is the format's own word: `Conv`, `conv2d`, `pd_op.conv2d`.

    `inputs` and `outputs` name values in the order of the file; "" is an optional one that is absent. ProgramDesc
    names the slots of an operation: `input_slots` and `output_slots` run parallel to them there and are empty for the
    formats that go by position. `blocks` are the bodies of control flow; `signatures` run parallel to them in ONNX.
    """

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    input_slots: tuple[str, ...] = ()
    output_slots: tuple[str, ...] = ()
    blocks: tuple[tuple[Node, ...], ...] = ()
    signatures: tuple[Signature, ...] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """A program: `format` is "onnx", "pdmodel" or "pir"; `version` is the opset, Paddle's version or the schema.

    `nodes` are in execution order. `parameters` are read-only arrays (in ONNX the tensors of Constant nodes too), or
    TensorSpecs where the file that holds the values was not read. `metadata` is ONNX's metadata_props, `domains` the
    version of each of its operator sets, the default one under "".
    """

    format: str
    version: str
    nodes: tuple[Node, ...]
    parameters: dict[str, np.ndarray | TensorSpec]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    metadata: dict[str, str] = field(default_factory=dict)
    name: str = ""
    domains: dict[str, int] = field(default_factory=dict)

    def walk(self) -> Iterator[Node]:
        """Every node, the bodies of control flow behind the node that owns them."""
        stack = [iter(self.nodes)]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            yield node
            stack.extend(iter(block) for block in reversed(node.blocks))

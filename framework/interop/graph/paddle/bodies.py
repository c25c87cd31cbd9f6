"""Control flow of Paddle's programs in one form, whose bodies take and give values by name.

In a ProgramDesc the blocks of `while` and `conditional_block` write into variables of the blocks around them, and
arrays of tensors exist without an operation that makes them. In PIR results have names of their own, but arrays are
changed in place. Here what a block writes outside of itself becomes outputs of its node, of these operators:

* `while`: inputs the condition and the state, outputs the state after it, one body, that gives the next condition and
  the next state;
* `conditional_block`: inputs the condition and what its outputs are without it, one body without arguments;
* `if`: input the condition, bodies `then_branch` and `else_branch` without arguments;
* `write_to_array`: gives another array instead of changing its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from framework.core.errors import FormatError
from framework.interop.programs.program import Node, Program, Signature

_ARRAY_READERS = ("read_from_array", "lod_array_length", "tensor_array_to_tensor")
_BODIES = {"while": 1, "conditional_block": 1, "if": 2}


def convert_bodies(program: Program) -> Program:
    """The program with its control flow in the form that runs here.

    Raises:
        FormatError: a block is missing, or does not give what its operation hands on.
    """
    defined = {spec.name for spec in program.inputs} | set(program.parameters)
    return replace(program, nodes=_convert(program.nodes, defined, program.name))


def _convert(nodes: Sequence[Node], outside: Iterable[str], file: str) -> tuple[Node, ...]:
    defined = set(outside)
    converted: list[Node] = []
    for node in nodes:
        for name in _arrays(node):
            if name not in defined:
                defined.add(name)
                converted.append(
                    Node("create_array", f"create_array {name}", (), (name,), output_slots=("Out",))
                )
        if node.op in _BODIES:
            node = _convert_control(node, defined, file)
        elif node.op == "write_to_array":
            node = _functional_write(node, file)
        converted.append(node)
        defined.update(node.outputs)
    return tuple(converted)


def _arrays(node: Node) -> Iterator[str]:
    """The arrays of tensors that the node, or a block of it, reads or writes."""
    for each in Program("", "", (node,), {}, (), ()).walk():
        if each.op in _ARRAY_READERS:
            yield from (name for slot, name in zip(each.input_slots, each.inputs) if slot == "X" and name)
        elif each.op == "write_to_array" and "Array" not in each.input_slots:
            yield from each.outputs[:1]


def _functional_write(node: Node, file: str) -> Node:
    """Array, X and I in, the longer array out, under the array's name."""
    slots = dict(zip(node.input_slots, node.inputs))
    array = slots.get("Array", node.outputs[0] if node.outputs else "")
    if not array or "X" not in slots or "I" not in slots:
        raise FormatError(
            "an operation writes into an array without saying which, what or where",
            where=f"{file}, node {node.name!r}",
            received=sorted(slots),
            allowed="inputs X and I, and the array as output Out",
        )
    return replace(
        node,
        inputs=(array, slots["X"], slots["I"]),
        input_slots=("Array", "X", "I"),
        outputs=(array,),
        output_slots=("Out",),
    )


def _convert_control(node: Node, defined: set[str], file: str) -> Node:
    if len(node.blocks) != _BODIES[node.op] or not node.inputs:
        raise FormatError(
            "an operation of control flow has another number of blocks, or no condition",
            where=f"{file}, node {node.name!r} ({node.op})",
            received=f"{len(node.blocks)} blocks, {len(node.inputs)} inputs",
            allowed=f"{_BODIES[node.op]}",
        )
    arguments = [name for signature in node.signatures for name in signature.inputs]
    blocks = tuple(_convert(block, defined | set(arguments), file) for block in node.blocks)
    if node.signatures:
        return _with_results(replace(node, blocks=blocks), defined, file)
    return _with_writes(replace(node, blocks=blocks), defined)


def _with_writes(node: Node, defined: set[str]) -> Node:
    """Of a ProgramDesc: what a block writes and something outside knows by the same name."""
    slot = "Condition" if node.op == "while" else "Cond"
    condition = next((name for s, name in zip(node.input_slots, node.inputs) if s == slot), node.inputs[0])
    declared = {name for s, name in zip(node.output_slots, node.outputs) if s == "Out"}
    state = [name for name in _writes(node.blocks) if name in defined | declared and name != condition]
    before = tuple(name if name in defined else "" for name in state)
    if node.op == "while":
        signature = Signature("body", tuple(state), (condition, *state))
    else:
        signature = Signature("body", (), tuple(state))
    return _control(node, (condition, *before), tuple(state), (signature,))


def _with_results(node: Node, defined: set[str], file: str) -> Node:
    """Of PIR: results have names; arrays that a block changes are results besides."""
    arrays = [name for name in _writes(node.blocks) if name in defined]
    extra, count = tuple(arrays), len(node.inputs) - 1
    if node.op == "while":
        signature = node.signatures[0]
        if not len(signature.inputs) == len(signature.outputs) - 1 == count == len(node.outputs):
            raise FormatError(
                "a loop takes, changes and gives different numbers of values",
                where=f"{file}, node {node.name!r}",
                received=f"{count}, {len(signature.inputs)}, {len(signature.outputs) - 1}, {len(node.outputs)}",
                allowed="the same number of each",
            )
        signatures = (Signature("body", signature.inputs + extra, signature.outputs + extra),)
        return _control(node, node.inputs + extra, node.outputs + extra, signatures)
    if any(len(signature.outputs) != len(node.outputs) for signature in node.signatures):
        raise FormatError(
            "a branch gives another number of values than its condition",
            where=f"{file}, node {node.name!r}",
            received=[len(signature.outputs) for signature in node.signatures],
            allowed=len(node.outputs),
        )
    names = ("then_branch", "else_branch")
    signatures = tuple(Signature(name, (), s.outputs + extra) for name, s in zip(names, node.signatures))
    return _control(node, node.inputs, node.outputs + extra, signatures)


def _writes(blocks: Sequence[Sequence[Node]]) -> list[str]:
    """The outputs of the nodes of blocks, each once; those of bodies inside are outputs of their nodes."""
    return list(dict.fromkeys(name for block in blocks for node in block for name in node.outputs if name))


def _control(
    node: Node, inputs: tuple[str, ...], outputs: tuple[str, ...], signatures: tuple[Signature, ...]
) -> Node:
    return replace(
        node,
        inputs=inputs,
        input_slots=("Condition", *("X",) * (len(inputs) - 1)),
        outputs=outputs,
        output_slots=("Out",) * len(outputs),
        signatures=signatures,
    )

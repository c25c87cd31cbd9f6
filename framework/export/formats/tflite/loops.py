"""Bodies of loops as functions of their own, as a `.tflite` has them: litert-converter leaves them in place, and its
writer then fails without saying why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from framework.export.formats.tflite.packages import Converter
from framework.export.formats.tflite.types import Block, Module, Operation, Type, Value

_LOOP = "tfl.while"
_CONSTANTS = ("arith.constant", "tfl.pseudo_const")


def outline_loops(converter: Converter, module: Module) -> None:
    """Move the condition and the body of every loop of a module into functions, inner loops first.

    What a loop reads from around it becomes a value that it carries; constants are copied into each function.
    """
    loops = [operation for operation in walk_operations(module.operation) if operation.name == _LOOP]
    for number, loop in enumerate(loops):
        _outline(converter.ir, module, loop, f"loop_{number}")


def walk_operations(operation: Operation) -> Iterator[Operation]:
    """The operations inside of one, those of inner regions before their owner."""
    for region in operation.regions:
        for block in region.blocks:
            for view in list(block.operations):
                yield from walk_operations(view.operation)
                yield view.operation


def _read_from_around(loop: Operation) -> list[Value]:
    """The values that a loop's regions use and do not define."""
    inner = list(walk_operations(loop))
    blocks = [
        block for operation in (loop, *inner) for region in operation.regions for block in region.blocks
    ]
    defined = {value for operation in inner for value in operation.results}
    defined |= {value for block in blocks for value in block.arguments}
    used = (value for operation in inner for value in operation.operands)
    return list(dict.fromkeys(value for value in used if value not in defined))


def _defining(value: Value) -> Operation | None:
    """The operation that a value is a result of; None of a block's argument."""
    return getattr(value.owner, "operation", None)


def _is_constant(value: Value) -> bool:
    operation = _defining(value)
    return operation is not None and operation.name in _CONSTANTS


def _outline(mlir: ModuleType, module: Module, loop: Operation, name: str) -> None:
    outer = _read_from_around(loop)
    constants = [value for value in outer if _is_constant(value)]
    loop_values = [value for value in outer if not _is_constant(value)]
    types = [value.type for value in (*loop.operands, *loop_values)]
    attributes = {key: loop.attributes[key] for key in _attribute_names(loop)}
    replacement = mlir.Operation.create(
        _LOOP,
        results=types,
        operands=[*loop.operands, *loop_values],
        attributes=attributes,
        regions=len(loop.regions),
        ip=mlir.InsertionPoint(loop),
    )
    for region, inner, is_body in zip(loop.regions, replacement.regions, (False, True)):
        function = f"{name}_{'body' if is_body else 'condition'}"
        results = _move(mlir, module, region.blocks[0], types, loop_values, constants, function, is_body)
        block = inner.blocks.append(*types)
        call = mlir.Operation.create(
            "func.call",
            results=results,
            operands=list(block.arguments),
            attributes={"callee": mlir.FlatSymbolRefAttr.get(function)},
            ip=mlir.InsertionPoint(block),
        )
        mlir.Operation.create("tfl.yield", operands=list(call.results), ip=mlir.InsertionPoint(block))
    for before, after in zip(loop.results, replacement.results):
        before.replace_all_uses_with(after)
    loop.erase()


def _move(
    mlir: ModuleType,
    module: Module,
    block: Block,
    types: Sequence[Type],
    loop_values: Sequence[Value],
    constants: Sequence[Value],
    name: str,
    is_body: bool,
) -> list[Type]:
    """Move the operations of a block into a function of the module that is called `name`; the types of its results."""
    operations = [view.operation for view in block.operations]
    results = list(types) if is_body else [value.type for value in operations[-1].operands]
    function = mlir.Operation.create(
        "func.func",
        attributes={
            "sym_name": mlir.StringAttr.get(name),
            "function_type": mlir.TypeAttr.get(mlir.FunctionType.get(list(types), results)),
            "sym_visibility": mlir.StringAttr.get("private"),
        },
        regions=1,
        ip=mlir.InsertionPoint.at_block_begin(module.body),
    )
    target = function.regions[0].blocks.append(*types)
    first = len(types) - len(loop_values)
    replacements = dict(zip(block.arguments, list(target.arguments)[:first]))
    replacements |= dict(zip(loop_values, list(target.arguments)[first:]))
    for value in constants:
        operation = _defining(value)
        assert operation is not None  # constants are operations
        copied = operation.clone(ip=mlir.InsertionPoint(target))
        replacements[value] = copied.results[list(operation.results).index(value)]
    members = [inner for operation in operations for inner in (*walk_operations(operation), operation)]
    for operation in operations[:-1]:
        target.append(operation)
    for operation in members:
        for index, value in enumerate(operation.operands):
            if value in replacements:
                operation.operands[index] = replacements[value]
    returned = list(operations[-1].operands) + (list(target.arguments)[first:] if is_body else [])
    mlir.Operation.create("func.return", operands=returned, ip=mlir.InsertionPoint(target))
    return results


def _attribute_names(operation: Operation) -> list[str]:
    """The bindings give names or named attributes, by their version."""
    return [str(getattr(entry, "name", entry)) for entry in operation.attributes]

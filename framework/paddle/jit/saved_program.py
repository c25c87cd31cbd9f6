"""What a config says of a saved program, read and checked against the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # the names in JSON are looked up here
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
from jax import export

from framework.config.bind import bind
from framework.config.tree import Tree
from framework.core.errors import ConfigError, FormatError, OarError
from framework.core.types import JSON
from framework.export import Artifact
from framework.export.artifact import damaged_config
from framework.paddle._kernel import dtypes as types

_MAX_DEPTH = 64  # of the lists and dicts that a function returns


@dataclass(frozen=True)
class SavedProgram:
    """The key `paddle` of an artifact's config: (name, dtype, shape) of inputs, and the names of what can be trained.

    `outputs` is what the function returns, see `_described`.
    """

    inputs: tuple[tuple[str, str, tuple[int | None, ...]], ...]
    parameters: tuple[str, ...]
    outputs: JSON = None

    def __post_init__(self) -> None:
        for name, dtype, _ in self.inputs:
            try:
                types.to_numpy(dtype)
            except OarError:
                raise ConfigError(f"the input {name!r} has an unknown dtype", received=dtype) from None


def read_description(artifact: Artifact, path: Path) -> SavedProgram:
    """Raises: FormatError, with file and line."""
    assert artifact.tree is not None
    tree = artifact.tree.value["paddle"]
    try:
        if not isinstance(tree.value, dict) or "outputs" not in tree.value:
            raise ConfigError(
                "what the program returns is missing", where=tree.where, allowed="paddle: {outputs: …}"
            )
        outputs = tree.value["outputs"]
        rest = {key: child for key, child in tree.value.items() if key != "outputs"}
        description = bind(Tree(rest, tree.where), SavedProgram, key="paddle")
        unknown = [name for name in description.parameters if name not in artifact.weights]
        if unknown:
            raise ConfigError(
                "a parameter has no weight", where=tree.value["parameters"].where, received=unknown[0]
            )
        _check_structure(outputs, 0)
    except ConfigError as error:
        raise damaged_config(path, error) from None
    return replace(description, outputs=outputs.plain())


def _check_structure(node: Tree, depth: int) -> None:
    """Raises: ConfigError, unless it is what `_described` makes."""
    value = node.value
    if value == "tensor":
        return
    kind = value[0].value if isinstance(value, list) and value else None
    items: Sequence[Tree] = value[1:] if isinstance(value, list) else []
    pairs = kind == "dict" and all(
        isinstance(item.value, list) and len(item.value) == 2 and isinstance(item.value[0].value, str)
        for item in items
    )
    plain = kind == "value" and len(items) == 1 and not isinstance(items[0].value, list | dict)
    if depth > _MAX_DEPTH or not (pairs or plain or kind in ("list", "tuple")):
        raise ConfigError(
            "this is not what a program returns",
            where=node.where,
            received=repr(node.plain())[:100],
            allowed="tensor, or [list | tuple | dict | value, …]",
        )
    for item in () if plain else items:
        _check_structure(item.value[1] if pairs else item, depth + 1)


def _tensors(structure: JSON) -> int:
    """How many Tensors a result has."""
    if not isinstance(structure, list):
        return 1
    if structure[0] == "value":
        return 0
    items = structure[1:]
    if structure[0] == "dict":
        items = [pair[1] for pair in items if isinstance(pair, list)]
    return sum(map(_tensors, items))


def check_program(
    program: export.Exported, description: SavedProgram, weights: Mapping[str, np.ndarray], file: Path
) -> None:
    """Raises: FormatError, where the program takes or gives something else than the config says."""
    names = [name for name, _, _ in description.inputs]
    takes = jax.tree_util.tree_structure(((dict.fromkeys(weights, 0), dict.fromkeys(names, 0)), {}))
    gives = jax.tree_util.tree_structure({f"output{n}": 0 for n in range(_tensors(description.outputs))})
    shapes = [weights[name].shape for name in sorted(weights)]
    if (
        len(set(names)) < len(names)
        or program.in_tree != takes
        or program.out_tree != gives
        or [aval.shape for aval in program.in_avals[: len(shapes)]] != shapes
    ):
        raise FormatError(
            "the program is another one than the config describes",
            where=file,
            received=f"inputs {str(program.in_tree)[:200]}, outputs {str(program.out_tree)[:100]}",
            allowed=f"the inputs {', '.join(names)}, {len(weights)} weights and "
            f"{_tensors(description.outputs)} outputs",
            fix="copy the artifact again or save it anew",
        )

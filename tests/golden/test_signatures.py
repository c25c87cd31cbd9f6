"""What has a name of Paddle 2.6.2 takes Paddle's arguments, in Paddle's order and with its defaults."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import pytest

from framework.core.foreign_names import LAYER_KEYWORDS, OPTIMIZER_KEYWORDS, constructor_arguments

STORED = json.loads((Path(__file__).parent / "data" / "signatures.json").read_text("utf-8"))
# A layer has no name of its own, activations are channels-last, a schedule has no position to keep.
NOT_COMPARED = {"name", "data_format", "last_epoch", "verbose"}
ANSWERED = {*LAYER_KEYWORDS, *OPTIMIZER_KEYWORDS}  # arguments that an error says the line for
DIFFERS = {
    "nn.BatchNorm": "of static graphs: what is left is answered",
    "nn.ClipGradByGlobalNorm": "groups of static graphs",
    "nn.Maxout": "channels are the last axis",
    "nn.RNNCellBase": "no name and dtype",
    "nn.functional.hardsigmoid": "a sixth to more digits",
    "nn.functional.hsigmoid_loss": "is_sparse: gradients are dense",
    "nn.functional.margin_cross_entropy": "group: one process has all classes",
    "nn.functional.maxout": "channels are the last axis",
    "nn.functional.sequence_mask": "integers have 32 bits",
    "optimizer.Adagrad": "common arguments by keyword",
    "optimizer.AdamW": "common arguments by keyword",
    "optimizer.Lamb": "common arguments by keyword",
    "optimizer.lr.CosineAnnealingDecay": "None is the whole training",
    "optimizer.lr.LRScheduler": "a base without a rate",
    "optimizer.lr.LinearLR": "None is the whole training",
    "optimizer.lr.OneCycleLR": "None is the whole training",
    "optimizer.lr.PolynomialDecay": "None is the whole training",
    "metric.accuracy": "no variables to write counts to",
}


def same_default(first: str | None, second: str | None) -> bool:
    try:
        return float(first or "nan") == float(second or "nan") or first == second
    except ValueError:
        return first == second


def differences(name: str) -> list[str]:
    """How our signature differs from Paddle's; nothing for a name that we have not."""
    module, _, attribute = name.rpartition(".")
    owner = importlib.import_module(f"framework.{module}")
    if getattr(owner, attribute, None) is None:
        return []
    found_there = getattr(owner, attribute)
    is_class = isinstance(found_there, type)
    arguments = constructor_arguments(found_there) if is_class else inspect.signature(found_there).parameters
    ours = {p.name: None if p.default is p.empty else repr(p.default) for p in arguments.values()}
    theirs = {
        key: value for key, value in STORED[name] if key not in NOT_COMPARED and key not in ANSWERED - {*ours}
    }
    found = [f"no {key}" for key in theirs if key not in ours]
    found += [
        f"{key}={ours[key]}, not {value}"
        for key, value in theirs.items()
        if key in ours and not same_default(ours[key], value)
    ]
    # Optimizers take what all have by keyword.
    shared = [key for key in theirs if key in ours and not (module == "optimizer" and key == "parameters")]
    return found + (["another order"] if [key for key in ours if key in shared] != shared else [])


@pytest.mark.parametrize(
    "module", ["nn", "nn.functional", "nn.initializer", "optimizer", "optimizer.lr", "metric"]
)
def test_arguments_are_paddles(module: str) -> None:
    names = [name for name in STORED if name.rpartition(".")[0] == module]
    found = {name: list_ for name in names if (list_ := differences(name))}
    assert {name: found[name] for name in found if name not in DIFFERS} == {}
    assert {name for name in DIFFERS if name in names} <= set(found), "these differ no longer"
    assert len(names) > 4

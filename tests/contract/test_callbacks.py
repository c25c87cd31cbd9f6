"""Every registered callback: a frozen dataclass of plain settings, whose state goes through a checkpoint's JSON."""

from __future__ import annotations

import dataclasses
import json

import pytest

from framework.config import bind, plain
from framework.config.domains import packages_of_domain
from framework.config.registry import available, find
from framework.engine.callbacks import Callback

PACKAGES = packages_of_domain("classification")
NAMES = sorted(available("callback", PACKAGES))
SETTINGS = {"EarlyStopping": {"patience": 3}}


@pytest.mark.parametrize("name", NAMES)
def test_settings_and_state_are_plain(name: str) -> None:
    made = bind(SETTINGS.get(name, {}), find("callback", name, PACKAGES).config)
    assert isinstance(made, Callback) and dataclasses.fields(made)
    assert bind(json.loads(json.dumps(plain(made))), type(made)) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, dataclasses.fields(made)[-1].name, None)
    kept = json.loads(json.dumps(made.state_dict()))
    again = dataclasses.replace(made)
    again.set_state_dict(kept)
    assert again.state_dict() == made.state_dict()


def test_there_are_callbacks() -> None:
    assert {"EarlyStopping", "TensorBoard", "VisualDL", "WandB"} <= set(NAMES)

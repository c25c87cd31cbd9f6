"""Paddle's schedules made from the core's: one function, and what their settings must be."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from framework.core.errors import ConfigError
from framework.optimizer.lr.base import LRScheduler as CoreSchedule
from framework.optimizer.lr.formulas import HOST
from framework.paddle.optimizer.lr.base import LRScheduler

Check = tuple[Callable[[Any], bool], str]  # of a setting, and what it must be
COUNT: Check = (lambda value: isinstance(value, int) and value > 0, "an int above 0")
POSITIVE: Check = (lambda value: value > 0, "above 0")
SHARE: Check = (lambda value: 0 < value < 1, "above 0, below 1")
BELOW_ONE: Check = (lambda value: value < 1, "below 1")
FUNCTION: Check = (callable, "a function")
UP_TO_ONE: Check = (lambda value: 0 < value <= 1, "above 0, up to 1")
FROM_ZERO: Check = (lambda value: 0 <= value <= 1, "from 0 to 1")
RISING: Check = (
    lambda value: isinstance(value, tuple | list) and list(value) == sorted(set(value)),
    "a list or tuple of rising numbers",
)
SOME: Check = (lambda value: len(value) > 0, "one number or more")


def make_schedule(core_class: type[CoreSchedule], **checks: Check) -> Any:
    """The class of Paddle's name: the settings of the core's are its attributes, which a program may change, and
    `get_lr` gives the core's rate at `last_epoch` in Paddle's digits. Steps are what the program counts."""
    fields = [field for field in dataclasses.fields(core_class) if field.name not in ("by_epoch", "every")]
    required = {field.name for field in fields if field.default is dataclasses.MISSING} | {core_class.whole}
    defaults = {field.name: field.default for field in fields} | {"last_epoch": -1, "verbose": False}
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(name, kind, default=inspect.Parameter.empty if name in required else default)
            for name, default in defaults.items()
        ]
    )

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        settings = given.arguments
        for name, (fits, allowed) in checks.items():
            if not fits(settings[name]):
                raise ConfigError(
                    f"{name} is out of range",
                    where=type(self).__name__,
                    received=repr(settings[name]),
                    allowed=allowed,
                )
        last_epoch, verbose = settings.pop("last_epoch"), settings.pop("verbose")
        rate = settings.pop("learning_rate", 0.1)
        vars(self).update(settings)
        LRScheduler.__init__(self, rate, last_epoch, verbose)

    def get_lr(self: Any) -> float:
        settings = SimpleNamespace(**vars(self), learning_rate=self.base_lr, every=1)
        return float(core_class.rate(settings, self.last_epoch, HOST))  # type: ignore[arg-type]

    body = {
        "__module__": "framework.paddle.optimizer.lr",
        "__doc__": core_class.__doc__,
        "__signature__": signature,
    }
    return type(core_class.__name__, (LRScheduler,), {**body, "__init__": __init__, "get_lr": get_lr})

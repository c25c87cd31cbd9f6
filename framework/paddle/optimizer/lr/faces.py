"""Paddle's schedules made from the core's: one function, and what their settings must be."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from framework.core.errors import ConfigError
from framework.optimizer.lr.base import LRScheduler as CoreSchedule
from framework.optimizer.lr.formulas import HOST
from framework.paddle._kernel.constructors import Rowed, make_class, parameters
from framework.paddle.optimizer.lr.base import LRScheduler


class _AssertedConfigError(ConfigError, AssertionError):
    """What Paddle asserts of a setting does not hold."""


class Check(NamedTuple):
    """What a setting must be: `fits` says so of its value, which is of one of these `kinds`."""

    fits: Callable[[Any], bool]
    allowed: str
    kinds: type | tuple[type, ...] = object
    asserted: bool = False  # Paddle asserts it


def _above_zero(value: Any) -> bool:
    return value is None or value > 0


COUNT = Check(lambda value: value > 0, "an int above 0", int, True)
PERIOD = Check(lambda value: isinstance(value, int) and value > 0, "an int above 0")
STEPS = Check(_above_zero, "an int above 0", int)
OPTIONAL_STEPS = Check(_above_zero, "an int above 0, or None", (int, type(None)))
POSITIVE = Check(_above_zero, "above 0")
SHARE = Check(lambda value: 0 < value < 1, "above 0, below 1")
ASSERTED_POSITIVE = POSITIVE._replace(asserted=True)
BELOW_ONE = Check(lambda value: value < 1, "below 1")
FUNCTION = Check(callable, "a function", Callable)  # type: ignore[arg-type]  # a class to isinstance
NUMBER = Check(lambda value: True, "a number", (int, float))
FLOAT = Check(lambda value: True, "a float", float)
NOT_NEGATIVE = Check(lambda value: value >= 0, "a number from 0", (int, float))
UP_TO_ONE = Check(lambda value: 0 < value <= 1, "above 0, up to 1")
FROM_ZERO = Check(lambda value: 0 <= value <= 1, "from 0 to 1")
FLOAT_FROM_ZERO = FROM_ZERO._replace(kinds=float)
RISING = Check(
    lambda value: isinstance(value, tuple | list) and list(value) == sorted(set(value)),
    "a list or tuple of rising numbers",
    (tuple, list),
)
SOME = Check(lambda value: len(value) > 0, "one number or more")


def one_of(*names: str) -> Check:
    """One of these words."""
    return Check(lambda value: value in names, " or ".join(names))


class Face(Rowed, LRScheduler):
    """Base of the schedules that `make_schedule` makes: the settings of the core's are attributes, which a program may
    change, and `get_lr` gives the core's rate at `last_epoch` in Paddle's digits. Steps are what the program counts."""

    _core: ClassVar[type[CoreSchedule]]
    _checks: ClassVar[Mapping[str, Check]]

    def _begin(self, settings: dict[str, Any]) -> None:
        where = type(self).__name__
        for name, check in self._checks.items():
            value = settings[name]
            if not isinstance(value, check.kinds):
                raise TypeError(f"{where}: {name} must be {check.allowed}, received {type(value).__name__}")
            if not check.fits(value):
                problem = f"{name} is out of range"
                kind = _AssertedConfigError if check.asserted else ConfigError
                raise kind(problem, where=where, received=repr(value), allowed=check.allowed)
        self.last_epoch: int = settings.pop("last_epoch")
        verbose, rate = settings.pop("verbose"), self._start_rate(settings)
        vars(self).update(settings)
        LRScheduler.__init__(self, rate, self.last_epoch, verbose)

    def _start_rate(self, settings: dict[str, Any]) -> float:
        """`base_lr`, taken out of the settings or made of them."""
        return settings.pop("learning_rate", 0.1)

    def get_lr(self) -> float:
        settings: Any = SimpleNamespace(**vars(self), learning_rate=self.base_lr, every=1)
        return float(self._core.rate(settings, self.last_epoch, HOST))  # type: ignore[arg-type]


def make_schedule(core: type[CoreSchedule], base: type[Face] = Face, **checks: Check) -> type[Face]:
    """The class of Paddle's name, with what settings must be."""
    fields = {f.name: f.default for f in dataclasses.fields(core) if f.name not in ("by_epoch", "every")}
    defaults = {n: v for n, v in fields.items() if v is not dataclasses.MISSING and n != core.whole}
    defaults |= {"last_epoch": -1, "verbose": False}
    doc = core.__doc__ if base is Face else base.__doc__
    takes = parameters(dict.fromkeys([*fields, *defaults]), defaults)
    module = "framework.paddle.optimizer.lr"
    return make_class(core.__name__, base, takes, module, doc, _core=core, _checks=checks)

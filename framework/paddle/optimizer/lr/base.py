"""LRScheduler: a learning rate that the user's program moves on by `step()`."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Mapping
from typing import Any, Protocol

from framework.paddle._kernel.tensor import Tensor

log = logging.getLogger("oar")


class Follower(Protocol):
    """What is told of every new rate: an optimizer."""

    def _rate_changed(self, rate: float) -> None: ...


def number(value: object, name: str, where: str) -> float:
    """A rate as a float. Raises: TypeError, ValueError where it is no number or negative."""
    if isinstance(value, bool) or not isinstance(value, float | int):
        raise TypeError(f"{where}: {name} must be a number, received {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{where}: {name} must not be negative, received {value}")
    return float(value)


def positive(value: object, name: str, where: str) -> None:
    """Raises AssertionError unless `value` is an integer above 0, as Paddle does."""
    if not isinstance(value, int) or value <= 0:
        raise AssertionError(f"{where}: {name} must be a positive integer, received {value!r}")


class LRScheduler:
    """Base of the schedules: a subclass defines `get_lr()`, the rate at `last_epoch`, from `base_lr` and `last_lr`.

    The constructor makes the first step. `last_epoch` counts calls of `step`, whether they stand for batches or epochs.
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False) -> None:
        self._start(learning_rate, last_epoch, verbose)
        self.step()

    def _start(self, learning_rate: float, last_epoch: int, verbose: bool) -> None:
        self.base_lr = number(learning_rate, "learning_rate", type(self).__name__)
        self.last_lr = self.base_lr
        self.last_epoch = last_epoch
        self.verbose = verbose
        self._var_name: str | None = None

    def __call__(self) -> float:
        return self.last_lr

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name == "last_lr":  # compiled steps read the rate from a Tensor of the optimizer
            for follower in self.__dict__.get("_followers", ()):
                follower._rate_changed(float(value))

    def _follow(self, follower: Follower) -> None:
        """Tell an optimizer of this rate and of all that come."""
        if "_followers" not in self.__dict__:
            self._followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        self._followers.add(follower)
        follower._rate_changed(float(self.last_lr))

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_followers"}

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next rate, or to that of `epoch`."""
        if epoch is None:
            self.last_epoch += 1
            self.last_lr = self.get_lr()
        else:
            self.last_epoch = epoch
            self.last_lr = self._get_closed_form_lr()
        self._say()

    def _say(self) -> None:
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        raise NotImplementedError(f"{type(self).__name__} defines no get_lr()")

    def _get_closed_form_lr(self) -> float:
        """The rate of any epoch; where `get_lr` goes on from the rate before, something else."""
        return self.get_lr()

    def state_keys(self) -> None:
        """Sets `keys`, the attributes that `state_dict` holds."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict[str, object]:
        self.state_keys()
        found = {}
        for key in self.keys:
            if key in self.__dict__:
                value = self.__dict__[key]
                found[key] = float(value) if isinstance(value, Tensor) else value
        return found

    def set_state_dict(self, state_dict: Mapping[str, object]) -> None:
        self.state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise RuntimeError(f"the state of {type(self).__name__} has no {key!r}: {sorted(state_dict)}")
            setattr(self, key, state_dict[key])
        if len(state_dict) > len(self.keys):
            log.warning("the state of a learning rate schedule holds more than %s needs", type(self).__name__)

    set_dict = set_state_dict

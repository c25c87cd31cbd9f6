"""paddle.utils.environments: settings that are read from variables of the environment."""

from __future__ import annotations

import os
from typing import Generic, TypeVar

T = TypeVar("T")


class EnvironmentVariable(Generic[T]):
    """A setting of one kind.

    Args:
        name: The variable of the environment.
        default: Its value where the variable is not set.
    """

    kind: type = object
    kind_name = "value"

    def __init__(self, name: str, default: T) -> None:
        self._expect(default, "default")
        self.name = name
        self.default = default

    def _expect(self, value: object, what: str) -> None:
        of_kind = isinstance(value, self.kind) and not (self.kind is int and isinstance(value, bool))
        assert of_kind, f"{what} must be {self.kind_name}, received {value!r}"

    def get(self) -> T:
        """The value now."""
        raise NotImplementedError

    def set(self, value: T) -> None:
        """Write the value into the environment. Raises AssertionError: it is of another kind."""
        self._expect(value, "value")
        os.environ[self.name] = str(value)

    def delete(self) -> None:
        """Remove the variable, so that the default counts."""
        del os.environ[self.name]

    def __repr__(self) -> str:
        return f"Env({self.name}={self.get()!r})"


class StringEnvironmentVariable(EnvironmentVariable[str]):
    """A text."""

    kind, kind_name = str, "a string"

    def get(self) -> str:
        """The text now."""
        return os.getenv(self.name, self.default)


class BooleanEnvironmentVariable(EnvironmentVariable[bool]):
    """A switch: on for y, yes, t, true, on and 1."""

    kind, kind_name = bool, "a boolean"

    def get(self) -> bool:
        """Whether it is on."""
        return os.getenv(self.name, str(self.default)).lower() in ("y", "yes", "t", "true", "on", "1")

    def set(self, value: bool) -> None:
        """Switch it. Raises AssertionError: the value is no bool."""
        self._expect(value, "value")
        os.environ[self.name] = str(value).lower()


class IntegerEnvironmentVariable(EnvironmentVariable[int]):
    """A number; the default where the variable is none."""

    kind, kind_name = int, "an integer"

    def get(self) -> int:
        """The number now."""
        try:
            return int(os.getenv(self.name, str(self.default)))
        except ValueError:
            return self.default


class EnvironmentVariableGuard(Generic[T]):
    """Within its block a setting has another value."""

    def __init__(self, variable: EnvironmentVariable[T], value: T) -> None:
        self.variable = variable
        self.original_value = variable.get()
        variable.set(value)

    def __enter__(self) -> EnvironmentVariableGuard[T]:
        return self

    def __exit__(self, *error: object) -> None:
        self.variable.set(self.original_value)

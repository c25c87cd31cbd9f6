"""Scopes: where programs find values by name. Parameters hold their own; a scope keeps those of variables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from framework.paddle._kernel.lod_tensor import LoDTensor, LoDTensorArray
from framework.paddle._kernel.selected_rows import SelectedRows
from framework.paddle._kernel.tensor import Tensor, as_array
from framework.paddle.static.program import Variable
from framework.paddle.static.state import recent_programs


class _View(LoDTensor):
    """The values of a parameter or a global variable, which change with it."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        super().__init__()

    @property
    def _values(self) -> np.ndarray:  # type: ignore[override]
        return np.asarray(self._tensor._value)

    @_values.setter
    def _values(self, array: np.ndarray) -> None:
        if array.size or not self._tensor.size:  # not the empty start of a LoDTensor
            self._tensor._value = as_array(array, self._tensor.dtype)


class ScopeVariable:
    """A variable of a scope: a Tensor, or rows of one where `get_selected_rows` has asked for them."""

    def __init__(self, tensor: LoDTensor, selected: dict[int, SelectedRows] | None = None) -> None:
        self._tensor, self._selected = tensor, {} if selected is None else selected

    def get_tensor(self) -> LoDTensor:
        """Its values; `set` changes them."""
        return self._tensor

    def get_lod_tensor_array(self) -> LoDTensorArray:
        """Several values; without any before."""
        if self._tensor.array is None:
            self._tensor.array = LoDTensorArray()
        return self._tensor.array

    get_fetch_list = get_lod_tensor_array

    def set_int(self, value: int) -> None:
        """Hold an integer."""
        self._tensor.set(np.asarray(value, np.int32), None)

    def set_float(self, value: float) -> None:
        """Hold a fraction."""
        self._tensor.set(np.asarray(value, np.float32), None)

    def is_int(self) -> bool:
        """Whether it holds one integer."""
        return self._tensor.shape() == [] and np.asarray(self._tensor).dtype.kind == "i"

    def is_float(self) -> bool:
        """Whether it holds one fraction."""
        return self._tensor.shape() == [] and np.asarray(self._tensor).dtype.kind == "f"

    def get_int(self) -> int:
        """The integer."""
        return int(np.asarray(self._tensor))

    def get_float(self) -> float:
        """The fraction."""
        return float(np.asarray(self._tensor))

    def get_selected_rows(self) -> SelectedRows:
        """Its rows; without any before."""
        return self._selected.setdefault(id(self._tensor), SelectedRows())

    def is_selected_rows(self) -> bool:
        """Whether it holds rows."""
        return id(self._tensor) in self._selected


class Scope:
    """Values by name: those of parameters, of the current program first, and what was set for variables. A program that
    is not fed with an input takes it from here."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.values: dict[str, LoDTensor] = {}
        self._selected: dict[int, SelectedRows] = {}  # by the id of the Tensor among the values
        self._parent = parent

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable of this name; None: there is none here, in the scopes around, or in a program."""
        if name in self.values:
            return ScopeVariable(self.values[name], self._selected)
        if self._parent is not None:
            return self._parent.find_var(name)
        tensors = (program.global_block().vars.get(name) for program in recent_programs())
        tensor = next((one for one in tensors if one is not None), None)
        if tensor is None:
            return None
        return self._new(name) if isinstance(tensor, Variable) else ScopeVariable(_View(tensor))

    def var(self, name: str) -> ScopeVariable:
        """The variable of this name, a new one without values where there is none."""
        return self.find_var(name) or self._new(name)

    def _new(self, name: str) -> ScopeVariable:
        return ScopeVariable(self.values.setdefault(name, LoDTensor()), self._selected)

    def new_scope(self) -> Scope:
        """A scope inside this one."""
        return Scope(self)

    def drop_kids(self) -> None:
        """Accepted: the scopes inside this one live as long as they are used."""

    def erase(self, names: list[str]) -> None:
        """Forget the values of these variables."""
        for name in names:
            self.values.pop(name, None)

    def size(self) -> int:
        """How many variables have values here."""
        return len(self.values)

    def local_var_names(self) -> list[str]:
        """The names of the variables that have values here."""
        return list(self.values)


_scopes = [Scope()]


def global_scope() -> Scope:
    """The scope that an Executor uses."""
    return _scopes[-1]


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Within the block this scope keeps the values of variables; parameters hold their own."""
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()

"""OpTest: the test case of Paddle's operators, which checks the function of Python that stands for an operator."""

from __future__ import annotations

import functools
import random
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from framework.paddle import add_n, grad
from framework.paddle._kernel.kernels import has_operator, run_by_name
from framework.paddle._kernel.operators import is_operator
from framework.paddle._kernel.random import seed
from framework.paddle._kernel.signatures import find_signature
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.bfloat16_bits import convert_uint16_to_float, to_operand
from framework.paddle.base.dygraph.base import guard
from framework.paddle.device.places import CPUPlace
from framework.paddle.legacy_operators import find_legacy_operator
from framework.paddle.op_test.gradients import assert_close, check_directions
from framework.paddle.op_test.operands import Slots, bind, levels_of, make_operands, named_arrays
from framework.paddle.op_test.sequences import SequenceInputs

_SEED = 2023  # each run of an operator that draws numbers draws the same
_BF16_LIMIT = 1e-2
_ROUNDING = 1e-6  # of float32, where a test asks for equal bits
_GRADIENT_LIMIT = 1e-2  # of a directional difference, whose step leaves an error
_FLOATS = ("float64", "float32", "float16", "int64", "int32", "uint16", "int16", "int8", "uint8", "bool")

Weights: TypeAlias = ArrayLike | Sequence[ArrayLike] | None
"""The gradients of the outputs: one array, or one for each; None is the mean."""


class OpTest(SequenceInputs, unittest.TestCase):
    """A test of Paddle's tree sets `op_type`, `python_api`, `inputs`, `attrs` and `outputs`, and calls the checks.

    Outputs are compared with those of the test, gradients with given ones or with differences in float64. float16 is
    not checked, as Paddle does not on a CPU. Without `python_api` the operator of saved programs runs.
    """

    op_type: str
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]
    attrs: Mapping[str, object]
    python_api: Callable[..., object] | None
    dtype: object = None
    _by_name: bool = False  # run the operator of programs, not the function: Paddle's check_dygraph=False
    call_once: ClassVar[bool] = False
    is_calc_ref: ClassVar[bool] = False

    @classmethod
    def setUpClass(cls) -> None:
        """Fix the random numbers."""
        cls._states = np.random.get_state(), random.getstate()
        np.random.seed(123)
        random.seed(124)

    @classmethod
    def tearDownClass(cls) -> None:
        """Give the random numbers back."""
        np.random.set_state(cls._states[0])
        random.setstate(cls._states[1])

    # -- what subclasses ask ---------------------------------------------------------------------------------------

    def try_call_once(self, data_type: object) -> None:
        """Note the type of the inputs once."""
        if not self.call_once:
            type(self).call_once = True
            self.dtype = data_type

    def is_float16_op(self) -> bool:
        """Whether float16 is tested."""
        return _is_type(self, np.float16)

    def is_bfloat16_op(self) -> bool:
        """Whether bfloat16 is tested, which numpy has as uint16."""
        return _is_type(self, np.uint16)

    def is_mkldnn_op(self) -> bool:
        """Whether the kernels of oneDNN are tested."""
        return bool(getattr(self, "use_mkldnn", False) or self._settings().get("use_mkldnn"))

    def is_fp16_compared_with_fp32(self) -> bool:
        """Whether float32 gives the expected values of float16."""
        return self.is_float16_op()

    def is_bf16_compared_with_fp32(self) -> bool:
        """Whether float32 gives the expected values of bfloat16."""
        return self.is_bfloat16_op()

    def infer_dtype_from_inputs_outputs(
        self, inputs: Mapping[str, object], outputs: Mapping[str, object]
    ) -> None:
        """Set `dtype` and `output_dtype`: the first type of a list that is among the arrays."""
        for attribute, entries in (("dtype", inputs), ("output_dtype", outputs)):
            types = {
                array.dtype.name for slot, entry in entries.items() for _, array in named_arrays(slot, entry)
            }
            for name in _FLOATS:
                if name in types:
                    setattr(self, attribute, np.dtype(name))
                    break
        type(self).dtype = self.dtype

    @staticmethod
    def np_dtype_to_base_dtype(input: object) -> object:
        """Paddle takes numpy's types as they are."""
        return input

    @staticmethod
    def np_value_to_base_value(input: object) -> object:
        """Paddle takes numpy's numbers as they are."""
        return input

    np_dtype_to_fluid_dtype = np_dtype_to_base_dtype

    def _get_places(self) -> list[CPUPlace]:
        return [] if self.is_float16_op() else [CPUPlace()]

    # -- outputs ---------------------------------------------------------------------------------------------------

    def check_output(
        self,
        atol: float = 1e-5,
        rtol: float = 1e-5,
        no_check_set: Sequence[str] | None = None,
        equal_nan: bool = False,
        *_: object,
        **checks: bool,
    ) -> None:
        """That the outputs are those of the test. Raises: AssertionError."""
        self.infer_dtype_from_inputs_outputs(getattr(self, "inputs", {}), self.outputs)
        if self.is_float16_op() or checks.get("only_check_prim"):
            return
        limits = (max(atol, _BF16_LIMIT), max(rtol, _BF16_LIMIT)) if self.is_bfloat16_op() else (atol, rtol)
        self._by_name = not checks.get("check_dygraph", True)
        with guard():
            results = self._run(self._operands()[0])
            try:
                self._compare(results, self._expected(), no_check_set or (), limits)
            except AssertionError:
                if not self.is_bf16_compared_with_fp32():
                    raise
                reference = self._run(self._operands((), "float32")[0])
                expected = {name: _arrays(tensors) for name, tensors in reference.items()}
                self._compare(results, expected, no_check_set or (), limits)

    def check_output_with_place(
        self, place: object, atol: float = 0, rtol: float = 0, *args: object, **kwargs: object
    ) -> None:
        """`check_output`; there is one device."""
        del place
        check: Callable[..., None] = self.check_output
        check(max(atol, _ROUNDING), max(rtol, _ROUNDING), *args, **kwargs)

    def check_output_customized(
        self, checker: Callable[[list[np.ndarray]], None], custom_place: object = None, **checks: bool
    ) -> None:
        """Hand the outputs to `checker`, the shortest first."""
        del custom_place, checks
        if not self.is_float16_op():
            checker(self.calc_output())

    def check_output_with_place_customized(
        self, checker: Callable[[list[np.ndarray]], None], place: object = None, **checks: bool
    ) -> None:
        """As `check_output_customized`."""
        self.check_output_customized(checker, place, **checks)

    def calc_output(self, place: object = None) -> list[np.ndarray]:
        """The outputs, the shortest first."""
        del place
        self._by_name = is_operator(self.op_type)  # as Paddle does here
        with guard():
            results = self._run(self._operands()[0])
            arrays = [array for tensors in results.values() for array in _arrays(tensors)]
        return sorted(arrays, key=lambda array: len(array) if array.ndim else 1)

    def _calc_output(
        self, place: object, *_: object, **options: object
    ) -> tuple[list[np.ndarray], list[str]]:
        """(the outputs, their slots) of the operator, as tests that check properties of them ask for them."""
        del place, options
        self._by_name = True
        with guard():
            results = self._run(self._operands()[0])
            pairs = [(name, array) for name, tensors in results.items() for array in _arrays(tensors)]
        return [array for _, array in pairs], [name for name, _ in pairs]

    # -- gradients -------------------------------------------------------------------------------------------------

    def check_grad(
        self,
        inputs_to_check: Sequence[str],
        output_names: str | Sequence[str],
        no_grad_set: Sequence[str] | None = None,
        numeric_grad_delta: float = 0.005,
        in_place: bool = False,
        max_relative_error: float = 0.005,
        user_defined_grads: Sequence[ArrayLike] | None = None,
        user_defined_grad_outputs: Weights = None,
        *_: object,
        atol: float = 1e-5,
        **checks: bool,
    ) -> None:
        """That the gradients of the mean of the outputs are the given ones, or what differences give.

        Raises:
            AssertionError: they are not.
        """
        del no_grad_set, numeric_grad_delta, in_place
        self.infer_dtype_from_inputs_outputs(getattr(self, "inputs", {}), self.outputs)
        if self.is_float16_op() or checks.get("only_check_prim"):
            return
        self._by_name = not checks.get("check_dygraph", True)
        names = list(inputs_to_check)
        outputs = [output_names] if isinstance(output_names, str) else list(output_names)
        with guard():
            if user_defined_grads is None:
                self._check_numeric(names, outputs, user_defined_grad_outputs, max_relative_error)
                return
            gradients, *_rest = self._gradients(names, outputs, user_defined_grad_outputs, None)
            limit = max(max_relative_error, _BF16_LIMIT if self.is_bfloat16_op() else 1e-6)
            for name, ours, expected in zip(names, gradients, user_defined_grads):
                array = np.asarray(expected)
                array = convert_uint16_to_float(array) if array.dtype == np.uint16 else array
                assert_close(ours, array, name, limit, _BF16_LIMIT if self.is_bfloat16_op() else atol)

    def check_grad_with_place(self, place: object, *args: object, **kwargs: object) -> None:
        """`check_grad`; there is one device."""
        del place
        check: Callable[..., None] = self.check_grad
        check(*args, **kwargs)

    def _check_numeric(self, names: list[str], outputs: list[str], weights: Weights, limit: float) -> None:
        exact, leaves, loss = self._gradients(names, outputs, weights, "float64")
        check_directions(loss, leaves, exact, names, max(limit, _GRADIENT_LIMIT))
        if self.is_bfloat16_op():
            for name, ours, expected in zip(
                names, self._gradients(names, outputs, weights, None)[0], exact, strict=True
            ):
                assert_close(ours, expected, name, max(limit, 0.03), _BF16_LIMIT)

    def _gradients(
        self, names: list[str], outputs: list[str], weights: Weights, cast: str | None
    ) -> tuple[list[np.ndarray], list[Tensor], Callable[[], Tensor]]:
        """(gradients, the inputs that they are of, the loss as a function of the inputs' present values)."""
        slots, named = self._operands(names, cast)
        leaves = [named[name] for name in names]
        loss = functools.partial(self._loss, slots, outputs, weights)
        gradients = grad(loss(), leaves, allow_unused=True)
        return [_gradient_array(g, leaf) for g, leaf in zip(gradients, leaves, strict=True)], leaves, loss

    def _loss(self, slots: Slots, outputs: list[str], weights: Weights) -> Tensor:
        results = self._run(slots)
        if weights is not None:
            flat = [tensor for tensors in results.values() for tensor in tensors]
            factors = weights if isinstance(weights, list | tuple) else [weights]
            products = [
                (tensor * to_operand(np.asarray(factor)).astype(tensor.dtype)).sum()
                for tensor, factor in zip(flat, factors)
            ]
            return add_n(products)
        means = [self._output(results, name).mean() for name in outputs]
        return means[0] if len(means) == 1 else add_n(means) / len(means)

    def _output(self, results: Slots, name: str) -> Tensor:
        if name in results:
            return results[name][0]
        for slot, entry in self.outputs.items():
            if isinstance(entry, list) and slot in results:
                for (subname, _), tensor in zip(named_arrays(slot, entry), results[slot]):
                    if subname == name:
                        return tensor
        raise AssertionError(f"{self.op_type} has no output {name!r}; it has {list(results)}")

    # -- running ---------------------------------------------------------------------------------------------------

    def _settings(self) -> dict[str, object]:
        return {name: value for name, value in getattr(self, "attrs", {}).items() if value is not None}

    def _operands(
        self, gradients: Sequence[str] = (), cast: str | None = None
    ) -> tuple[Slots, dict[str, Tensor]]:
        return make_operands(getattr(self, "inputs", {}), gradients, cast)

    def _run(self, slots: Slots) -> Slots:
        """The outputs by slot."""
        seed(_SEED)
        function = getattr(self, "python_api", None)
        if function is None or self._runs_by_name():
            counts = {slot: len(named_arrays(slot, entry)) for slot, entry in self.outputs.items()}
            lengths = {slot: levels_of(entry) for slot, entry in getattr(self, "inputs", {}).items()}
            return run_by_name(self.op_type, slots, self._settings(), counts, lengths)
        signature = find_signature(self.op_type)
        arguments, keywords = bind(function, signature, slots, self._settings())
        result = function(*arguments, **keywords)
        if result is None:  # a kernel that updates its inputs
            return {slot: slots[slot.removesuffix("Out")] for slot in self.outputs if slot[:-3] in slots}
        names = getattr(self, "python_out_sig", None) or (
            signature.outputs if signature else list(self.outputs)
        )
        return _by_slot(result, list(names))

    def _runs_by_name(self) -> bool:
        """Whether the operator runs and not the function: where the test asks for it, where inputs have lengths, and
        where the function returns none of the outputs, so that Paddle too checks only the operator."""
        if find_legacy_operator(self.op_type) is not None and self._has_lengths():
            return True
        names = getattr(self, "python_out_sig", None)
        if names is not None and not {name.partition("@")[0] for name in names} & set(self._expected_names()):
            return has_operator(self.op_type)
        return self._by_name and is_operator(self.op_type)

    def _has_lengths(self) -> bool:
        inputs: Mapping[str, object] = getattr(self, "inputs", {})
        return any(levels for entry in inputs.values() for levels in levels_of(entry))

    def _expected_names(self) -> list[str]:
        """The slots of the outputs, and the names of arrays in lists."""
        return [*self.outputs, *self._expected_by_name()]

    def _expected(self) -> dict[str, list[np.ndarray]]:
        return {
            slot: [array for _, array in named_arrays(slot, entry)] for slot, entry in self.outputs.items()
        }

    def _expected_by_name(self) -> dict[str, list[np.ndarray]]:
        """The outputs of lists by their own names, which a test may list in `python_out_sig`."""
        entries = (pair for slot, entry in self.outputs.items() for pair in named_arrays(slot, entry))
        return {name: [array] for name, array in entries}

    def _compare(
        self,
        results: Slots,
        expected: Mapping[str, list[np.ndarray]],
        unchecked: Sequence[str],
        limits: tuple[float, float],
    ) -> None:
        expected = {**self._expected_by_name(), **expected}
        unchecked = [*unchecked]
        for slot in self.outputs.keys() & set(unchecked):
            unchecked += [name for name, _ in named_arrays(slot, self.outputs[slot])]
        names = [name for name in results if name in expected and name not in unchecked]
        if not names and not set(results) & set(unchecked):
            raise AssertionError(f"{self.op_type} returns {list(results)}; expected {list(self.outputs)}")
        for name in names:
            for ours, array in zip(_arrays(results[name]), expected.get(name, ())):
                _assert_equal(f"output {name} of {self.op_type}", ours, array, limits)


def _is_type(test: OpTest, dtype: type) -> bool:
    return any(
        value is not None and not isinstance(value, str) and np.dtype(value) == dtype
        for value in (_plain_type(test.dtype), _plain_type(getattr(test, "output_dtype", None)))
    )


def _plain_type(dtype: object) -> np.dtype | None:
    """What numpy takes for a type; Paddle's own types are none of those that are asked for."""
    try:
        return np.dtype(dtype) if dtype is not None else None  # type: ignore[call-overload]
    except TypeError:
        return None


def _by_slot(result: object, names: list[str]) -> Slots:
    values = list(result) if isinstance(result, tuple | list) else [result]
    if len(values) == len(names):
        pairs = zip(names, values, strict=True)
        return {name: _flat(value) for name, value in pairs if value is not None}
    return {names[0]: _flat(values)} if len(names) == 1 else {n: _flat(v) for n, v in zip(names, values)}


def _flat(value: object) -> list[Tensor]:
    if isinstance(value, tuple | list):
        return [tensor for one in value for tensor in _flat(one)]
    return [value] if isinstance(value, Tensor) else []


def _arrays(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    return [_array(tensor) for tensor in tensors]


def _array(tensor: Tensor) -> np.ndarray:
    return (tensor.astype("float32") if tensor.dtype.name == "bfloat16" else tensor).numpy()


def _gradient_array(gradient: Tensor | None, leaf: Tensor) -> np.ndarray:
    return np.zeros(leaf.shape) if gradient is None else _array(gradient)


def _assert_equal(name: str, ours: np.ndarray, expected: np.ndarray, limits: tuple[float, float]) -> None:
    expected = convert_uint16_to_float(expected) if expected.dtype == np.uint16 else expected
    if ours.shape != expected.shape:
        raise AssertionError(f"{name}: shape {ours.shape}, expected {expected.shape}")
    atol, rtol = limits
    np.testing.assert_allclose(ours, expected, rtol=rtol, atol=atol, equal_nan=True, err_msg=name)

"""What Paddle's and torch's names answer: the line to write, in an error that is an AttributeError too."""

# What is asked for here does not exist, which a type checker would say first.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import amp, nn, optimizer
from framework.core.errors import ConfigError, ForeignNameError, OarError
from framework.core.foreign_names import TABLES
from framework.nn import functional as F
from framework.optimizer import SGD, Adam, Lamb

LAYER, PARAMETER = nn.Linear(2, 3), nn.Linear(2, 3).parameters()[0]
X = jnp.ones((1, 2))
_OWNERS: dict[str, tuple[Any, Mapping[str, str]]] = {
    "layer": (LAYER, TABLES["layer"]),
    "parameter": (PARAMETER, TABLES["parameter"]),
    "optimizer": (Adam(), TABLES["optimizer"]),
    "scaler": (amp.GradScaler(), TABLES["scaler"]),
    "framework": (framework, TABLES["framework"]),
    "array": (X, TABLES["array"]),
    "utils": (nn.utils, TABLES["framework.nn.utils"]),
}


@pytest.mark.parametrize("kind", _OWNERS)
def test_every_name_of_the_table_answers_and_none_is_taken(kind: str) -> None:
    owner, hints = _OWNERS[kind]
    for name, hint in hints.items():
        assert getattr(owner, name, "absent") == "absent", f"{kind} has {name}: take it out of the table"
        with pytest.raises(ForeignNameError) as caught:
            getattr(owner, name)
        assert caught.value.fix == hint and name in str(caught.value)
        assert isinstance(caught.value, OarError) and isinstance(caught.value, AttributeError)
    assert getattr(owner, "no_such_name_at_all", None) is None


def test_other_unknown_names_stay_plain() -> None:
    for owner in (LAYER, PARAMETER, Adam(), amp.GradScaler(), X, framework, nn, F):
        with pytest.raises(AttributeError) as caught:
            getattr(owner, "no_such_name_at_all")  # noqa: B009
        assert not isinstance(caught.value, ForeignNameError)
    with pytest.raises(AttributeError, match="did you mean 'Linear'"):
        getattr(nn, "Linaer")  # noqa: B009


@pytest.mark.parametrize(
    ("look", "line"),
    [
        (lambda: LAYER.load_state_dict({}), r"layer\.set_state_dict\(state\)"),
        (lambda: LAYER.to("cuda"), r'framework\.set_device\("gpu"\)'),
        (
            lambda: X.sum().backward(),
            r"(?s)nn\.value_and_grad\(layer, loss_fn\).*from framework import paddle",
        ),
        (lambda: Adam().clear_grad(), "leave it out: nn.value_and_grad returns new gradients"),
        (lambda: nn.Module, r"nn\.Layer$"),
        (lambda: nn.Conv2d(3, 4, 3), r"nn\.Conv2D$"),
        (lambda: nn.BatchNorm2d(3), r"nn\.BatchNorm2D$"),
        (lambda: nn.ConvTranspose2d(3, 3, 2), r"nn\.Conv2DTranspose$"),
        (lambda: nn.ModuleList(), r"nn\.LayerList$"),
        (lambda: F.relu_(X), r"x = functional\.relu\(x\)"),
        (lambda: F.conv_transpose2d, r"functional\.conv2d_transpose$"),
        (lambda: F.logsigmoid(X), r"functional\.log_sigmoid$"),
        (lambda: framework.concat([X, X]), r"jax\.numpy\.concatenate\(arrays, axis\)"),
    ],
)
def test_the_line_to_write(look: Callable[[], object], line: str) -> None:
    with pytest.raises(ForeignNameError, match=line):
        look()


def test_hints_name_what_there_is() -> None:
    """`nn.X`, `functional.x`, `framework.x`, `optimizer.x` and `jax.numpy.x` of every hint exist."""
    modules = {"nn": (nn,), "functional": (F,), "framework": (framework,), "jax.numpy": (jnp,)}
    modules["optimizer"] = (optimizer, optimizer.Optimizer)
    hints = " ".join(hint for table in TABLES.values() for hint in table.values()).replace(
        "framework.paddle", ""
    )
    found = re.findall(r"(?<![\w.])(nn|functional|framework|optimizer|jax\.numpy)\.([A-Za-z_]\w*)", hints)
    assert len(found) > 100
    wrong = [(m, n) for m, n in found if not any(getattr(owner, n, None) for owner in modules[m])]
    assert not wrong


def test_arrays_still_work() -> None:
    assert not hasattr(X, "detach") and not hasattr(jax.Array, "numpy")
    with pytest.raises(ForeignNameError, match="stop_gradient"):
        X.stop_gradient = True  # type: ignore[attr-defined]
    assert np.asarray(X).tolist() == [[1.0, 1.0]] and X.at[0, 0].set(2.0)[0, 0] == 2
    assert jax.jit(lambda x: x.sum())(X) == 2 and copy.deepcopy(X).shape == (1, 2)


# -- keywords ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: nn.Conv2D(3, 4, 3, bias=False),
            r"(?s)Conv2D\(bias=…\).*allowed: in_channels.*bias_attr=False",
        ),
        (lambda: nn.ReLU(inplace=True), "arrays do not change in place"),
        (lambda: nn.LayerNorm(4, eps=1e-6), "epsilon=…"),
        (lambda: nn.Linear(3, 4, device="cuda"), "framework.set_device"),
        (lambda: Adam(lr=1e-3), r"(?s)Adam\(lr=…\).*learning_rate=…"),
        (lambda: Adam(learning_rte=1e-3), "did you mean 'learning_rate'"),
        (
            lambda: Adam(LAYER.parameters()),
            r"(?s)the learning rate must be a number or a schedule.*learning_rate=0\.001, parameters=",
        ),
        (lambda: Adam(parameters=[{"params": LAYER.parameters()}]), r"(?s)received: dict.*lr_multipliers="),
        (lambda: Adam(parameters=[]), "received: an empty list"),
    ],
)
def test_keywords_of_others(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_layer_may_have_such_keywords_itself() -> None:
    class Mine(nn.Layer):
        def __init__(self, bias: bool) -> None:
            super().__init__()
            self.has_bias = bias

    assert Mine(bias=True).has_bias and isinstance(nn.Identity(4, bias=False), nn.Layer)


# -- optimizers --------------------------------------------------------------------------------------------------------


def test_step_as_in_paddle() -> None:
    with pytest.raises(
        ConfigError,
        match=r"(?s)no layer and no gradients.*optimizer\.step\(layer, grads\).*from framework import paddle",
    ):
        Adam(parameters=LAYER.parameters()).step()


def test_parameters_are_what_is_trained() -> None:
    layer = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    how = SGD(learning_rate=1.0, parameters=layer[1].parameters(), name="opt")
    for made in (how, dataclasses.replace(how, learning_rate=0.5), how.resolve(10)):
        assert list(made.param_groups(layer)) == ["1.weight", "1.bias"]
    before = layer.state_dict()
    how.step(layer, {name: jnp.ones(p.shape) for name, p in layer.named_parameters()})
    after = layer.state_dict()
    assert [name for name in after if (after[name] != before[name]).any()] == ["1.weight", "1.bias"]
    assert how == SGD(learning_rate=1.0) and "parameters" not in {f.name for f in dataclasses.fields(how)}
    assert list(Lamb(parameters=layer.parameters()).param_groups(layer)) == list(before)
    with pytest.raises(ConfigError, match="those of one layer"):
        how.param_groups(nn.Linear(2, 2))


def test_parameters_stop_training_as_in_paddle() -> None:
    layer = nn.Linear(2, 2)
    weight, bias = layer.parameters()
    weight.stop_gradient, bias.trainable = True, False
    assert not weight.trainable and bias.stop_gradient
    bias.stop_gradient = False
    assert list(SGD().param_groups(layer)) == ["bias"]

"""Every public name of Paddle 2.6.2 is in framework.paddle or has a reason, as docs/paddle_api.md has it."""

from __future__ import annotations

import pytest

from framework import paddle
from framework.core.errors import ForeignNameError
from tools.docs import paddle_table
from tools.docs.paddle_table import Name


def test_every_name_is_there_or_has_a_reason() -> None:
    rows = list(paddle_table.rows())
    missing = [row.name.full for row in rows if row.missing]
    assert len(rows) > 1500 and len(missing) < 170
    operations = [row for row in rows if row.name.module in ("paddle", "paddle.nn", "paddle.nn.functional")]
    assert not [row.name.full for row in operations if row.missing or row.differs]


def test_a_name_without_a_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paddle_table, "names", lambda: [Name("paddle.nn", "Convolution9D", "class", "-")])
    with pytest.raises(KeyError, match=r"paddle\.nn\.Convolution9D"):
        list(paddle_table.rows())


@pytest.mark.parametrize(
    "parameters, expected",
    [
        ("(x, shape, name=None)", ""),
        ("(x, shape, order, name=None)", "without order"),
        ("(shape, x, name=None)", "in the order x, shape, name"),
        ("(x, shape, name='a')", "name is None"),
        ("(x, shape=[1], name=None)", "shape is needed"),
    ],
)
def test_differences_of_parameters(parameters: str, expected: str) -> None:
    name = Name("paddle", "reshape", "function", parameters)
    assert paddle_table.differs(name, paddle.reshape) == expected


def test_names_that_raise_at_the_call_are_listed() -> None:
    assert "| `paddle.framework` | `IrGraph` |" in paddle_table.refused_table()
    assert paddle_table._refuses(paddle.framework.IrGraph) and not paddle_table._refuses(paddle.nn.Linear)


def test_a_missing_name_says_why() -> None:
    with pytest.raises(AttributeError, match="make it dense"):
        _ = paddle.sparse.nn.functional.attention
    with pytest.raises(AttributeError, match="no such name"):
        _ = paddle.nothing_of_the_kind


def test_the_kinds_of_the_older_quantizers_are_imported_and_not_made():
    quantization = paddle.quantization
    assert quantization.AbsmaxQuantizer in quantization.SUPPORT_ACT_QUANTIZERS
    assert len(quantization.SUPPORT_WT_QUANTIZERS) == 2
    for kind in (*quantization.SUPPORT_ACT_QUANTIZERS, *quantization.SUPPORT_WT_QUANTIZERS):
        with pytest.raises(ForeignNameError, match="QAT and PTQ"):
            kind()

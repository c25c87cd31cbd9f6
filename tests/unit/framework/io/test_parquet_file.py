"""Damage to Parquet that is found when its rows are read, by every reader of such files; pyarrow is not needed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from framework.core.errors import FormatError
from framework.workflow.batch.tables import Table
from framework.workflow.data.parquet import unpack_parquet
from zoo.recommendation.data.formats import RowFormat


class ArrowException(Exception):
    """As pyarrow's, of which some errors are this alone."""


def read_rows(path: Path) -> Iterable[object]:
    return RowFormat().read_file(path)


def read_table(path: Path) -> Iterable[object]:
    return Table(path, "image").read()


def read_images(path: Path) -> Iterable[object]:
    return [unpack_parquet(path, path.parent / "out")]


@pytest.mark.parametrize("read", [read_rows, read_table, read_images])
@pytest.mark.parametrize("at", ["opening", "reading"])
@pytest.mark.parametrize(
    "error", [ArrowException("not implemented"), OSError("Corrupt snappy data"), OverflowError()]
)
def test_damage_is_an_error_that_names_the_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Path], Iterable[object]],
    at: str,
    error: Exception,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    def open_file(path: Path) -> SimpleNamespace:
        if at == "opening":
            fail()
        columns = [SimpleNamespace(name="image", type="binary"), SimpleNamespace(name="label", type="int64")]
        return SimpleNamespace(
            schema_arrow=Schema(columns),
            metadata=SimpleNamespace(
                num_row_groups=1, num_rows=1, row_group=lambda _: SimpleNamespace(num_rows=1)
            ),
            read_row_group=fail,
            iter_batches=lambda **_: (fail() for _ in range(1)),
        )

    class Schema(list):
        names = ("image", "label")
        metadata = None

    pyarrow, parquet = ModuleType("pyarrow"), ModuleType("pyarrow.parquet")
    vars(pyarrow)["ArrowException"], vars(parquet)["ParquetFile"] = ArrowException, open_file
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", parquet)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(FormatError, match=r"a\.parquet: the table cannot be read"):
        list(read(tmp_path / "a.parquet"))
    assert not (tmp_path / "out").exists()

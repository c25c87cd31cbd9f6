"""Raw rows to features: one function for training and serving, which is saved within the model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.bounded import VOCABULARY, read_bytes, read_text
from framework.core.errors import ConfigError, FormatError, InputError, did_you_mean
from framework.core.model_config import setting_of
from framework.core.transform import Transform
from zoo.recommendation.data.formats import expand_names
from zoo.recommendation.data.hashing import hash_feature
from zoo.recommendation.sample import RowSample, Value

PADDING, UNKNOWN, FIRST = 0, 1, 2
"""Rows of a table: no value, a value that the vocabulary has not, the first value."""
_REMEMBERED = 1 << 21  # values whose hash is kept
_NULL = r"\N"  # of databases, in any column
_NO_NUMBER = frozenset(
    {"", "nan", "null", "none", "na", "n/a", "<na>"}
)  # in a column of numbers, of any case
_TRUTH = {"true": "1", "false": "0"}
DenseScale = Literal["none", "log", "range"]


@register("transform")
@dataclass(frozen=True)
class EncodeFeatures(Transform[RowSample]):
    """Gives `sparse`, the table's row of each value, `dense`, numbers, and `label`, where the row has one.

    Row 0 of the table is padding and a missing value, row 1 an unknown one. The rows of a vocabulary count from 2,
    field after field; without one a value has the row 2 + xxh64(field, separator, value) % (size - 2).

    Attributes:
        sparse: Columns of values; C1..C26 stands for 26 of them.
        dense: Columns of numbers; a column of several counts as so many. A missing number, also NaN, null or NA, is 0;
            true and false are 1 and 0.
        size: Rows of the table.
        values: hash, or ids: a value is the number of its row, as in data that PaddleRec prepared.
        tables: Columns with a table of their own, and its rows, such as {item_id: 3708}; rows count apart there.
        same_as: Columns whose values are those of another one, such as {history: item_id}.
        widths: How many numbers each dense column of several has, such as {dense_feature: 13}: a row without the column
            has so many zeros.
        vocabulary: A file that `python -m zoo.recommendation.data` makes; it goes into the artifact.
        length: Values that a sparse column has at most; those behind are left out.
        log_bins: Sparse columns of numbers that become int(ln(x)^2) where x > 2, as the winners of Criteo's competition
            did; "I1..I13".
        dense_scale: What is done to numbers: log is ln(x - low + 1), range (x - low) / (high - low).
        low, high: Of each dense column; by default 0 and 1.
        weighted: Dense columns as further sparse ones: one row of the table each, whose vector is multiplied with the
            number, so `weight` is given too. They come before the sparse ones.
        labels: Columns of labels, numbers.
        group: The column by which AUC is averaged, such as the user.

    Raises:
        ConfigError: settings contradict one another.
    """

    sparse: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()
    size: int = 1_000_001
    values: Literal["hash", "ids"] = "hash"
    tables: dict[str, int] = field(default_factory=dict)
    same_as: dict[str, str] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)
    vocabulary: Path | None = None
    length: int = 1
    log_bins: tuple[str, ...] = ()
    dense_scale: DenseScale = "none"
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    weighted: bool = False
    labels: tuple[str, ...] = ("label",)
    group: str | None = None

    def __post_init__(self) -> None:
        if not (self.sparse or self.dense) or self.length < 1 or self.size < FIRST + 1:
            raise ConfigError(
                "there is nothing to encode",
                where="EncodeFeatures",
                received=f"{len(self.sparse)} sparse and {len(self.dense)} dense columns, length {self.length}, "
                f"size {self.size}",
                allowed="a column, length from 1, size from 3",
            )
        unknown = set(expand_names(self.log_bins)) - set(self.sparse_names)
        if unknown or (self.weighted and self.length > 1):
            raise ConfigError(
                "these settings of EncodeFeatures do not go together",
                received=f"log_bins {', '.join(sorted(unknown))}" if unknown else "weighted, length above 1",
                allowed="log_bins names sparse columns; with weighted each column has one value",
            )
        for name, width in self.widths.items():
            if name not in self.dense_names or width < 1:
                raise ConfigError(
                    "a width is that of a dense column",
                    where=f"EncodeFeatures.widths.{name}",
                    received=width,
                    allowed=f"1 or more, of {', '.join(self.dense_names[:8]) or 'no column'}",
                )
        for name, values in (("low", self.low), ("high", self.high)):
            if values is not None and len(values) != len(self.dense_names):
                raise ConfigError(
                    "there is not one number a dense column",
                    where=f"EncodeFeatures.{name}",
                    received=len(values),
                    allowed=len(self.dense_names),
                )

    @cached_property
    def sparse_names(self) -> tuple[str, ...]:
        return expand_names(self.sparse)

    @cached_property
    def dense_names(self) -> tuple[str, ...]:
        return expand_names(self.dense)

    @cached_property
    def _ids(self) -> dict[tuple[str, str], int]:
        """Rows of values that were encoded before."""
        return {}

    @cached_property
    def _number_ids(self) -> list[int]:
        """The rows of weighted numbers."""
        return [self._id(name, "") for name in self.dense_names]

    @cached_property
    def _content(self) -> Mapping[str, Sequence[str]] | None:
        """The values of each column that have rows; None: they are hashed."""
        path = self.vocabulary
        return (
            None
            if path is None
            else read_vocabulary(read_text(path, VOCABULARY, "vocabulary", InputError), path)
        )

    @cached_property
    def _binned(self) -> frozenset[str]:
        return frozenset(expand_names(self.log_bins))

    def __call__(self, sample: RowSample, rng: np.random.Generator) -> RowSample:
        row = sample.values
        if sample.is_complete:
            self.check_columns(row, sample.id)
        if not any(name in row for name in (*self.sparse_names, *self.dense_names)):
            raise InputError(
                "the row has none of the columns",
                where=sample.id,
                received=", ".join(list(row)[:8]) or "no column",
                allowed=", ".join((*self.sparse_names, *self.dense_names)[:8]) + ", …",
            )
        sparse = [self._encode(name, row.get(name)) for name in self.sparse_names]
        numbers = [
            number for name in self.dense_names for number in self._numbers(name, row.get(name), sample)
        ]
        dense = self._scale(np.asarray(numbers, np.float32))
        arrays: dict[str, np.ndarray] = {}
        if self.weighted:
            ids = self._number_ids
            arrays["sparse"] = np.asarray([*ids, *sparse], np.int32)
            arrays["weight"] = np.concatenate([dense, np.ones(len(sparse), np.float32)])
            arrays["dense"] = np.zeros(0, np.float32)
        else:
            arrays |= {"sparse": np.asarray(sparse, np.int32), "dense": dense}
        labels = [row.get(name) for name in self.labels]
        if labels and not any(_is_missing(label) for label in labels):
            values = [self._numbers(name, label, sample)[0] for name, label in zip(self.labels, labels)]
            arrays["label"] = np.asarray(values, np.float32)
        if self.group is not None and row.get(self.group) is not None:
            arrays["group"] = np.asarray(str(row[self.group]))
        return sample.replace(arrays={**sample.arrays, **arrays})

    def check_columns(self, row: Mapping[str, Value], where: object) -> None:
        """Raises: InputError, where a row that has all columns of its table lacks one that is encoded."""
        if not self._columns <= row.keys():
            missing = [name for name in (*self.sparse_names, *self.dense_names) if name not in row]
            raise InputError(
                f"the table has no column {missing[0]!r}",
                where=where,
                received=f"columns {', '.join(list(row)[:40])}",
                allowed=f"a table with {', '.join(missing[:8])}",
                fix=did_you_mean(missing[0], row),
            )

    @cached_property
    def _columns(self) -> frozenset[str]:
        return frozenset((*self.sparse_names, *self.dense_names))

    def texts(self, name: str, value: Value) -> list[str]:
        """What is encoded of a sparse column: its values as text, up to `length`, none where it is missing."""
        if isinstance(value, Sequence) and not isinstance(value, str):
            values = [text_of(one) for one in value]
        else:
            values = (
                [text_of(value)] if self.length == 1 else [text_of(one) for one in text_of(value).split()]
            )
        values = [text for text in values if text][: self.length]
        return [bin_number(text) for text in values] if name in self._binned else values

    def _encode(self, name: str, value: Value) -> int | list[int]:
        """The table's row of a value, or `length` of them."""
        if self.length == 1 and isinstance(value, str) and (row := self._ids.get((name, value))) is not None:
            return row
        ids = [self._id(name, text) for text in self.texts(name, value)]
        if self.length > 1:
            return ids + [PADDING] * (self.length - len(ids))
        row = ids[0] if ids else PADDING
        if isinstance(value, str):
            if len(self._ids) >= _REMEMBERED:
                self._ids.clear()
            self._ids[name, value] = row
        return row

    def _id(self, name: str, text: str) -> int:
        """The table's row of one text."""
        name = self.same_as.get(name, name)
        size = self.tables.get(name, self.size)
        if self._content is not None:
            return self._rows.get((name, text), UNKNOWN)
        if self.values == "hash":
            return hash_feature(name, text, size)
        row = int(text) if text.isdecimal() else -1
        if not 0 <= row < size:
            raise InputError(
                "this is no row of the table",
                where=f"column {name}",
                received=text[:40],
                allowed=f"0 to {size - 1}",
                fix="values: hash, where the columns hold values and not rows",
            )
        return row

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str], int]:
        """The row of each value of the vocabulary; those of a table count apart."""
        following: dict[str, int] = {}
        rows: dict[tuple[str, str], int] = {}
        for name, values in (self._content or {}).items():
            owner = name if name in self.tables else ""
            for value in values:
                rows[name, text_of(value)] = following[owner] = following.get(owner, FIRST - 1) + 1
        for owner, last in following.items():
            size = self.tables.get(owner, self.size)
            if last >= size:
                raise ConfigError(
                    "the table is too small for the vocabulary",
                    where=f"EncodeFeatures.tables.{owner}" if owner else "EncodeFeatures.size",
                    received=size,
                    allowed=f"{last + 1} or more",
                )
        return rows

    def _numbers(self, name: str, value: Value, sample: RowSample) -> list[float]:
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        width = self.widths.get(name)
        if width is not None and len(values) != width:
            if not all(map(_is_missing, values)):
                raise InputError(
                    "the row has another count of numbers",
                    where=f"{sample.id}, column {name}",
                    received=len(values),
                    allowed=width,
                )
            values = [None] * width
        try:
            numbers = [0.0 if _is_missing(one) else float(_truth(text_of(one))) for one in values]
        except ValueError:
            numbers = [math.nan]
        if not all(map(math.isfinite, numbers)):
            raise InputError(
                "this is no number",
                where=f"{sample.id}, column {name}",
                received=str(value)[:40],
                allowed="such as 0.5, true or false, or nothing where it is missing",
            )
        return numbers

    def _scale(self, dense: np.ndarray) -> np.ndarray:
        if self.dense_scale == "none":
            return dense
        low = np.zeros_like(dense) if self.low is None else np.asarray(self.low, np.float32)
        if self.dense_scale == "range":
            high = np.ones_like(dense) if self.high is None else np.asarray(self.high, np.float32)
            return ((dense - low) / (high - low)).astype(np.float32)
        return np.log(np.maximum(dense - low, 0) + 1).astype(np.float32)

    def check(self, model: object) -> None:
        """Raises: ConfigError, where the model's table or its fields are others."""
        fields = len(self.sparse_names) + (len(self.dense_names) if self.weighted else 0)
        needs = {
            "sparse_feature_number": (setting_of(model, "sparse_feature_number", int), self.size),
            "num_field": (setting_of(model, "num_field", int), fields),
        }
        for name, (received, needed) in needs.items():
            smaller = received is not None and received < needed and not setting_of(model, "hashed_ids", bool)
            if received is not None and (smaller if name == "sparse_feature_number" else received != needed):
                raise ConfigError(
                    "the model does not fit the features",
                    where=f"model.{name}",
                    received=received,
                    allowed=needed,
                    fix=f"-o model.{name}={needed}",
                )

    def pack_assets(self) -> tuple[EncodeFeatures, Mapping[str, bytes]]:
        if self.vocabulary is None:
            return self, {}
        name = "vocabulary.json"
        return replace(self, vocabulary=Path(name)), {
            name: read_bytes(self.vocabulary, VOCABULARY, "vocabulary", InputError)
        }

    def load_assets(self, files: Mapping[str, bytes]) -> EncodeFeatures:
        if self.vocabulary is None:
            return self
        name = self.vocabulary.name
        if name not in files:
            raise FormatError("the vocabulary is missing", where=name, allowed="a file of the artifact")
        loaded = replace(self)
        text = files[name].decode("utf-8")
        vars(loaded)["_content"] = read_vocabulary(text, name)
        return loaded


def text_of(value: object) -> str:
    """A value as it is hashed: whole numbers without a point, so that CSV, JSON and Parquet agree. A table that lacks a
    number somewhere holds 3.0 for 3 in that column, where pandas wrote it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "" if math.isnan(value) else str(int(value)) if value.is_integer() else repr(value)
    text = str(value).strip()
    if text.endswith(".0") and text[:-2].removeprefix("-").isdecimal():
        return text[:-2]
    return "" if text == _NULL else text


def _truth(text: str) -> str:
    return _TRUTH.get(text.lower(), text)


def _is_missing(value: Value) -> bool:
    """Whether there is no number."""
    return text_of(value).lower() in _NO_NUMBER


def bin_number(text: str) -> str:
    """int(ln(x)^2) of a number above 2, the number without its fraction of others.

    Source: the features of the winners of Criteo's competition, https://github.com/ycjuan/kaggle-2014-criteo
    """
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return str(int(math.log(number) ** 2)) if number > 2 else f"s{int(number)}"


def read_vocabulary(text: str, where: object) -> Mapping[str, Sequence[str]]:
    """The values of each column. Raises: FormatError, where this is no vocabulary."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise FormatError("this is no vocabulary", where=where, received=error) from None
    columns = content.get("columns") if isinstance(content, dict) else None
    if not isinstance(columns, dict) or not all(isinstance(values, list) for values in columns.values()):
        raise FormatError(
            "this is no vocabulary",
            where=where,
            allowed='{"columns": {name: [values]}}, as python -m zoo.recommendation.data vocabulary writes it',
        )
    return columns

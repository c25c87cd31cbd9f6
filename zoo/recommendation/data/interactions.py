"""Logs of who took which item when, as one sequence of items a user in the order of time."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.core.transform import Transform
from framework.io.dataset import LazyDataset
from zoo.recommendation.data.features import text_of
from zoo.recommendation.data.formats import Format, RowFormat
from zoo.recommendation.data.rows import expand_paths
from zoo.recommendation.sample import RowSample, Value

log = logging.getLogger("oar")
Split = Literal["train", "valid", "test", "all"]
_BEHIND = {"train": 2, "valid": 1, "test": 0, "all": 0}  # interactions at the end that a split does not see


def _number(value: Value, where: str, column: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InputError(
            "this is no number",
            where=f"{where}, column {column}",
            received=repr(str(value)[:40]),
            allowed="such as 4 or 0.5",
        )
    return number


def _seconds(value: Value, where: str, column: str) -> float:
    """A time as a number: of a date that of its seconds, in UTC where it names no zone."""
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if math.isnan(number):
        try:
            date = datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise InputError(
                "this is no time",
                where=f"{where}, column {column}",
                received=repr(str(value)[:40]),
                allowed="a number, or a date such as 2024-05-01 12:30:00",
                fix="time: null, where the lines stand in the order of time",
            ) from None
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    return number


@register("dataset")
@dataclass(frozen=True)
class Interactions(LazyDataset):
    """A sample a user: `user`, the row of that user, and `history`, the rows of the items before; of valid and test
    `target`, the row of the next one; of train `chance`, how likely each of them is the item of a user and a place in
    the history that are drawn.

    Leave-one-out by time: the last item of a user is the test's, the one before the validation's; those of train and
    all have no target. Equal times keep the order of the file, so a split is always the same. A user with too few
    interactions for a split is in no sample of it. `class_names` are the items, in the order of their first row.

    Attributes:
        paths: RecBole's .inter, MovieLens' u.data or ratings.dat, CSV.
        user, item, time: Columns; rows without a user or an item are left out, and the log says how many. Times are
            numbers or dates of ISO 8601; without `time` the order of the file is that of time.
        rating, min_rating: Column of ratings, and the least that counts as taken; None: all count.
        min_count: Users and items with fewer interactions are left out, again and again until none is left.
        format, columns, separator: See `RowFormat`.
    """

    paths: tuple[str, ...]
    split: Split = "train"
    user: str = "user_id"
    item: str = "item_id"
    time: str | None = "timestamp"
    rating: str = "rating"
    min_rating: float | None = None
    min_count: int = 1
    format: Format = "auto"
    columns: tuple[str, ...] | None = None
    separator: str | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The items by their number: row i + 1 of a table is item i."""
        return self._log[1]

    @cached_property
    def user_names(self) -> tuple[str, ...]:
        """The users with interactions by their number, in the order of their first row: row i of a table is user i."""
        return tuple(self._log[0])

    @property
    def num_users(self) -> int:
        """Users with interactions."""
        return len(self._log[0])

    @cached_property
    def edges(self) -> np.ndarray:
        """The pairs of a user's row and an item's in what the split sees, each once, int32 [E, 2]."""
        pairs = [
            np.stack([np.full_like(rows, self._user_rows[user]), rows], axis=1)
            for user, rows in ((user, self._before(user)) for user in self._users)
        ]
        return np.unique(np.concatenate(pairs), axis=0)

    @cached_property
    def popularity(self) -> np.ndarray:
        """How often each row was taken in what the split sees, int64 [V + 1]."""
        rows = np.concatenate([self[number].arrays["history"] for number in range(len(self))])
        return np.bincount(rows, minlength=len(self.class_names) + 1)

    def __len__(self) -> int:
        return len(self._users)

    def __getitem__(self, index: int) -> RowSample:
        user = self._users[index]
        rows = self._before(user)
        arrays = {"user": np.int32(self._user_rows[user]), "history": rows}
        if self.split == "train":
            arrays["chance"] = self._chances[rows]
        elif self.split != "all":
            arrays |= {"history": rows[:-1], "target": rows[-1]}
        return RowSample(values={self.user: user}, arrays=arrays, id=user)

    def _before(self, user: str) -> np.ndarray:
        """The rows of the items of a user that the split sees."""
        rows = self._log[0][user]
        return rows[: len(rows) - _BEHIND[self.split]]

    @cached_property
    def _user_rows(self) -> Mapping[str, int]:
        return {user: row for row, user in enumerate(self.user_names)}

    @cached_property
    def _chances(self) -> np.ndarray:
        """Of each row, float32 [V + 1]."""
        chances = np.zeros(len(self.class_names) + 1)
        for user in self._users:
            rows = self._before(user)
            np.add.at(chances, rows, 1 / (len(rows) * len(self._users)))
        return chances.astype(np.float32)

    @cached_property
    def _users(self) -> list[str]:
        least = {"train": 3, "valid": 3, "test": 3, "all": 1}[self.split]
        users = [user for user, rows in self._log[0].items() if len(rows) >= least]
        if not users:
            raise InputError(
                "no user has enough interactions", where=", ".join(self.paths), allowed=f"{least} or more"
            )
        return users

    @cached_property
    def _log(self) -> tuple[Mapping[str, np.ndarray], tuple[str, ...]]:
        """(rows of items by user, items)."""
        triples = _frequent(self._triples(), self.min_count)
        order = np.argsort([time for _, _, time in triples], kind="stable")
        items: dict[str, int] = {}
        for _, item, _ in triples:
            items.setdefault(item, len(items) + 1)
        users: dict[str, list[int]] = {user: [] for user, _, _ in triples}
        for index in order:
            user, item, _ = triples[index]
            users[user].append(items[item])
        return {user: np.asarray(rows, np.int32) for user, rows in users.items()}, tuple(items)

    def _triples(self) -> list[tuple[str, str, float]]:
        """(user, item, time) of each row that counts, in the order of the files."""
        reader = RowFormat(self.format, self.columns, self.separator)
        names = [self.user, self.item, *([] if self.time is None else [self.time])]
        names += [] if self.min_rating is None else [self.rating]
        triples: list[tuple[str, str, float]] = []
        left_out = 0
        for where, row in (pair for path in expand_paths(self.paths) for pair in reader.read_file(path)):
            if missing := [name for name in names if name not in row]:
                raise InputError(
                    "a row lacks columns",
                    where=where,
                    received=", ".join(row),
                    allowed=", ".join(missing),
                    fix="`user`, `item`, `time` and `rating` of the data set name the columns; time: null is for none",
                )
            user, item = text_of(row[self.user]), text_of(row[self.item])
            if not user or not item:
                left_out += 1
            elif self.min_rating is None or _number(row[self.rating], where, self.rating) >= self.min_rating:
                time = 0.0 if self.time is None else _seconds(row[self.time], where, self.time)
                triples.append((user, item, time))
        if left_out:
            log.warning(f"{left_out} rows have no {self.user} or no {self.item}: they are left out")
        return triples


@register("dataset")
@dataclass(frozen=True)
class InteractionPairs(Interactions):
    """A sample a pair of a user and an item that the split sees: `user` and `target`, their rows. See Interactions."""

    def __post_init__(self) -> None:
        if self.split in ("valid", "test"):
            raise ConfigError(
                "pairs are trained on",
                where="InteractionPairs.split",
                received=self.split,
                allowed="train, or all; Interactions for an evaluation",
            )

    def __len__(self) -> int:
        return len(self.edges)

    def __getitem__(self, index: int) -> RowSample:
        user, item = self.edges[index]
        values = {self.user: self.user_names[user], self.item: self.class_names[item - 1]}
        return RowSample(values=values, arrays={"user": user, "target": item}, id=", ".join(values.values()))


def _frequent(triples: list[tuple[str, str, float]], least: int) -> list[tuple[str, str, float]]:
    """Those whose user and item have so many interactions."""
    while True:
        counts = [dict(zip(*np.unique([one[k] for one in triples], return_counts=True))) for k in (0, 1)]
        remaining = [one for one in triples if min(counts[0][one[0]], counts[1][one[1]]) >= least]
        if not remaining:
            raise InputError("no interaction is left", where="Interactions.min_count", received=least)
        if len(remaining) == len(triples):
            return triples
        triples = remaining


@register("transform")
@dataclass(frozen=True)
class EncodeHistory(Transform[RowSample]):
    """Gives `items`, the last `length` rows of the history, with padding in front, and their `chance` where the data
    have it.

    A raw row has the items by name in a column, as a list or with blanks or commas between them; a predictor fills
    `vocabulary` with the items of its model. Items that the model does not know are left out, with a warning of the
    result.

    Attributes:
        length: Items that a model looks at.
        column: Of the history in raw rows.
        crop: In training, a random window of length + 1 items: a model learns what follows each.
    """

    length: int = 50
    column: str = "history"
    crop: bool = False
    vocabulary: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ConfigError(
                "a history has items", where="EncodeHistory.length", received=self.length, allowed="1 or more"
            )

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {item: row for row, item in enumerate(self.vocabulary, start=1)}

    def __call__(self, sample: RowSample, rng: np.random.Generator) -> RowSample:
        if "history" not in sample.arrays:
            sample = self._read(sample)
        history = sample.arrays["history"]
        width = self.length + 1 if self.crop else self.length
        start = max(0, len(history) - width)
        if self.crop and start:
            start = int(rng.integers(start + 1))
        arrays = {**sample.arrays, "items": self._pad(history, start, width, np.int32)}
        if "chance" in arrays:
            arrays["chance"] = self._pad(arrays["chance"], start, width, np.float32)
        return sample.replace(arrays=arrays)

    def _pad(self, values: np.ndarray, start: int, width: int, kind: type[np.generic]) -> np.ndarray:
        window = values[start : start + width]
        padded = np.zeros(width, kind)
        padded[width - len(window) :] = window
        return padded

    def _read(self, sample: RowSample) -> RowSample:
        value = sample.values.get(self.column)
        if value is None:
            raise InputError(
                "the row has no history",
                where=sample.id,
                received=", ".join(sample.values) or "no column",
                allowed=f"the column {self.column}, a list of items or their names with blanks between them",
            )
        if isinstance(value, Sequence) and not isinstance(value, str):
            names = [str(one) for one in value]
        else:
            names = str(value).replace(",", " ").split()
        rows = [self._rows[name] for name in names if name in self._rows]
        unknown = [name for name in names if name not in self._rows]
        warnings = sample.warnings
        if unknown:
            listed = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
            warnings = (*warnings, f"{len(unknown)} items of the history are unknown to the model: {listed}")
        arrays = {**sample.arrays, "history": np.asarray(rows, np.int32)}
        return sample.replace(arrays=arrays, warnings=warnings)

    def with_items(self, items: Sequence[str]) -> EncodeHistory:
        """For raw rows, with the names of the items that a model knows."""
        return replace(self, vocabulary=tuple(items), crop=False)


@register("transform")
@dataclass(frozen=True)
class EncodeUser(Transform[RowSample]):
    """Gives `user`, the row of a user of the training data; a raw row may say in another column what was taken since.
    A user that the model does not know is row -1, with a warning of the result.

    Attributes:
        column: Of the user in raw rows.
        history: Column of items that are left out of the result, beside those of the training data; see EncodeHistory.
        users, items: By their rows; a predictor fills them with those of its model.
    """

    column: str = "user_id"
    history: str = "history"
    users: tuple[str, ...] = ()
    items: tuple[str, ...] = ()

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {user: row for row, user in enumerate(self.users)}

    def __call__(self, sample: RowSample, rng: np.random.Generator) -> RowSample:
        if "user" in sample.arrays:
            return sample
        user = sample.values.get(self.column)
        if user is None:
            raise InputError(
                "the row has no user",
                where=sample.id,
                received=", ".join(sample.values) or "no column",
                allowed=f"the column {self.column}",
            )
        row = self._rows.get(str(user), -1)
        warnings = sample.warnings
        if row < 0:
            unknown = (
                f"the user {str(user)[:40]} is unknown to the model: the items are those of an average user"
            )
            warnings = (*warnings, unknown)
        sample = sample.replace(arrays={**sample.arrays, "user": np.int32(row)}, warnings=warnings)
        if sample.values.get(self.history) is None:
            return sample
        return EncodeHistory(column=self.history, vocabulary=self.items)(sample, rng)

    def with_names(self, users: Sequence[str], items: Sequence[str]) -> EncodeUser:
        """For raw rows, with the names of the users and items that a model knows."""
        return replace(self, users=tuple(users), items=tuple(items))

"""Rows in the memory of the host, or in a file that is mapped into it: a dictionary of ids, which grows and shrinks.

What computes stays on the device: a lookup hands over the rows of a batch with the state of their optimizer, an update
takes them back. Ids get a row when the entry of the table admits them; until then all have the values that a new row
would have, which follow from the id and the seed alone.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from framework.core.errors import ConfigError, FormatError
from framework.core.types import PyTree
from framework.nn.table_options import CountFilterEntry, Entry, ProbabilityEntry, ShowClickEntry

_FIRST = 1024  # rows of a new table
_STATISTICS = ("seen", "show", "click", "delta", "unseen")


@dataclass(frozen=True)
class Eviction:
    """How rows of a table on the host are scored, made and deleted; names and formulas of Paddle's CtrCommonAccessor.

    The score of a row is `nonclk_coeff * (show - click) + click_coeff * click`.

    Attributes:
        embedx_threshold: With ShowClickEntry the numbers of a vector but the first are 0 until its score is this.
        show_click_decay_rate: Shows and clicks are multiplied by it at each `shrink`, before scores are compared.
        delete_threshold: Rows of a lower score are deleted.
        delete_after_unseen_days: Rows that were not met for more days are deleted; `next_day` counts them.
    """

    nonclk_coeff: float = 0.1
    click_coeff: float = 1.0
    embedx_threshold: float = 10.0
    show_click_decay_rate: float = 0.98
    delete_threshold: float = 0.8
    delete_after_unseen_days: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.show_click_decay_rate <= 1:
            raise ConfigError(
                "wrong setting of a table",
                where="Eviction(show_click_decay_rate=…)",
                received=self.show_click_decay_rate,
                allowed="above 0, up to 1",
            )


class HostTable:
    """Rows of `features` numbers and `extras` numbers of an optimizer's state, float32, by 64-bit ids.

    Args:
        fill: First value of the state.
        scale: First values of vectors are uniform within ± scale.
        path: A file that holds the rows, which then need no memory but the system's cache; made anew. None: memory.
        seed: Of first values and of admission by chance.
    """

    def __init__(
        self,
        features: int,
        extras: int = 0,
        *,
        fill: float = 0.0,
        scale: float = 0.01,
        entry: Entry | None = None,
        eviction: Eviction | None = None,
        path: str | Path | None = None,
        seed: int = 0,
    ) -> None:
        self.features, self.extras, self.fill, self.scale, self.seed = features, extras, fill, scale, seed
        self.entry, self.eviction = entry, eviction or Eviction()
        self.path = Path(path) if path is not None else None
        self._lock = threading.RLock()
        self._warmer: ThreadPoolExecutor | None = None
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._slots: dict[int, int] = {}
        self._waiting: dict[int, int] = {}  # ids that are not admitted yet, and how often they were met
        self._free: list[int] = []
        self._values = self._open(_FIRST)
        self._statistics = {name: np.zeros(_FIRST, np.float32) for name in _STATISTICS}
        self._pushes = 0

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def columns(self) -> int:
        """Numbers that `pull` gives of an id: vector, state, and 1 where the whole vector is trained."""
        return self.features + self.extras + 1

    def _open(self, rows: int) -> np.ndarray:
        shape = (rows, self.features + self.extras)
        if self.path is None:
            return np.zeros(shape, np.float32)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return np.memmap(self.path, np.float32, "w+", shape=shape)

    def _grow(self) -> None:
        rows = len(self._values)
        if isinstance(self._values, np.memmap) and self.path is not None:
            self._values.flush()
            del self._values
            shape = (2 * rows, self.features + self.extras)
            with self.path.open("r+b") as file:
                file.truncate(int(np.prod(shape)) * 4)
            self._values = np.memmap(self.path, np.float32, "r+", shape=shape)
        else:
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
        for name, one in self._statistics.items():
            self._statistics[name] = np.concatenate([one, np.zeros_like(one)])

    def first_values(self, ids: np.ndarray) -> np.ndarray:
        """What rows of these ids start with, [N, features + extras]."""
        counter = ids.astype(np.uint64)[:, None] * np.uint64(self.features) + np.arange(
            self.features, dtype=np.uint64
        )
        bits = _mix(counter + np.uint64((self.seed * 0x9E3779B97F4A7C15) % 2**64))
        uniform = (bits >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-23) - 1
        state = np.full((len(ids), self.extras), self.fill, np.float32)
        return np.concatenate([uniform * np.float32(self.scale), state], axis=1)

    def _find(self, ids: np.ndarray) -> np.ndarray:
        """The slots of ids, -1 where there is none."""
        slots = self._slots
        return np.fromiter((slots.get(one, -1) for one in ids.tolist()), np.int64, len(ids))

    # -- lookups and updates ---------------------------------------------------------------------------------------

    def pull(self, ids: np.ndarray) -> np.ndarray:
        """The rows of distinct ids, [N, columns]; ids without a row have the values that one would start with."""
        with self._lock:
            slots = self._find(ids)
            there = slots >= 0
            rows = np.empty((len(ids), self.columns), np.float32)
            rows[there, :-1] = self._values[slots[there]]
            rows[:, -1] = 1
            if not there.all():
                rows[~there, :-1] = self.first_values(ids[~there])
            if isinstance(self.entry, ShowClickEntry):
                live = np.zeros(len(ids), bool)
                live[there] = self._scores(slots[there]) >= self.eviction.embedx_threshold
                rows[~live, 1 : self.features] = 0
                rows[:, -1] = live
        return rows

    def push(
        self,
        ids: np.ndarray,
        rows: np.ndarray,
        met: np.ndarray,
        shows: np.ndarray | None = None,
        clicks: np.ndarray | None = None,
    ) -> None:
        """Take rows of distinct ids back, as `pull` gave them and training changed them.

        Args:
            met: How often each id was met. shows, clicks: Their sums; by default each time is a show without a click.
        """
        with self._lock:
            self._pushes += 1
            slots = self._find(ids)
            for number in np.flatnonzero(slots < 0):
                if self._admit(int(ids[number]), int(met[number])):
                    slots[number] = self._make(int(ids[number]))
            there = slots >= 0
            slots, rows, met = slots[there], rows[there], met[there]
            live, values = rows[:, -1] > 0, rows[:, :-1]
            if not live.all():  # the numbers behind the first stay as they were made
                values = values.copy()
                values[~live, 1 : self.features] = self._values[slots[~live], 1 : self.features]
            self._values[slots] = values
            statistics = self._statistics
            show = met if shows is None else shows[there]
            click = np.zeros(len(slots), np.float32) if clicks is None else clicks[there]
            statistics["seen"][slots] += met
            statistics["show"][slots] += show
            statistics["click"][slots] += click
            coefficients = self.eviction
            statistics["delta"][slots] += (
                coefficients.nonclk_coeff * (show - click) + coefficients.click_coeff * click
            )
            statistics["unseen"][slots] = 0

    def pull_words(
        self, version: object, valid: object, low: object, high: object
    ) -> tuple[np.ndarray, np.ndarray]:
        """For a program: the rows of the distinct ids among M, [M, columns] (behind them zeros), and which of these
        each id is, int32 [M], -1 where `valid` is. `version` only says that earlier updates are done."""
        there = np.asarray(valid) >= 0
        distinct, which = np.unique(_join(low, high)[there], return_inverse=True)
        rows = np.zeros((len(there), self.columns), np.float32)
        rows[: len(distinct)] = self.pull(distinct)
        index = np.full(len(there), -1, np.int32)
        index[there] = which
        return rows, index

    def push_words(
        self,
        version: object,
        valid: object,
        low: object,
        high: object,
        shows: object,
        clicks: object,
        rows: object,
    ) -> np.ndarray:
        """For a program: take back what `pull_words` gave; the next version."""
        there = np.asarray(valid) >= 0
        distinct, which, met = np.unique(_join(low, high)[there], return_inverse=True, return_counts=True)
        count = len(distinct)
        sums = [
            np.bincount(which, np.asarray(one, np.float32)[there], count).astype(np.float32)
            for one in (shows, clicks)
        ]
        self.push(distinct, np.asarray(rows)[:count], met, *sums)
        return np.asarray(version) + np.float32(1)

    def _admit(self, one: int, met: int) -> bool:
        entry = self.entry
        if isinstance(entry, CountFilterEntry):
            total = self._waiting.pop(one, 0) + met
            if total < entry.count_filter:
                self._waiting[one] = total
                return False
        if isinstance(entry, ProbabilityEntry):
            key = np.array([one % 2**64, self._pushes, self.seed], np.uint64)
            drawn = _mix(np.array([_mix(key)[0] ^ _mix(key)[1] + key[2]], np.uint64))[0]
            return float(drawn) < entry.probability * 2.0**64
        return True

    def _make(self, one: int) -> int:
        if self._free:
            slot = self._free.pop()
        else:  # none was deleted, or all places of those are taken again
            slot = len(self._slots)
            if slot == len(self._values):
                self._grow()
        self._slots[one] = slot
        self._values[slot] = self.first_values(np.array([one], np.int64))[0]
        for statistic in self._statistics.values():
            statistic[slot] = 0
        return slot

    def prefetch(self, ids: np.ndarray, words: bool = False) -> None:
        """Read the rows of ids, or of `words` of ids, in the background, so that those of a file are in memory when a
        batch asks for them."""
        if self.path is None:
            return
        if self._warmer is None:
            self._warmer = ThreadPoolExecutor(1, thread_name_prefix="oar-rows")
        numbers = _join(ids[..., 0], ids[..., 1]) if words else np.asarray(ids, np.int64)
        self._warmer.submit(self._touch, np.unique(numbers))

    def _touch(self, ids: np.ndarray) -> None:
        with self._lock:
            slots, values = self._find(ids), self._values
        values[np.sort(slots[slots >= 0])].sum()

    # -- the life of rows -------------------------------------------------------------------------------------------

    def _scores(self, slots: np.ndarray) -> np.ndarray:
        show, click = self._statistics["show"][slots], self._statistics["click"][slots]
        return self.eviction.nonclk_coeff * (show - click) + self.eviction.click_coeff * click

    def next_day(self) -> None:
        """Let a day pass: of each row one more since it was met."""
        with self._lock:
            self._statistics["unseen"] += 1

    def shrink(self, threshold: float | None = None) -> np.ndarray:
        """Decay shows and clicks, then delete rows of a low score or that were not met for long; their ids.

        Args:
            threshold: In place of `delete_threshold`.
        """
        with self._lock:
            limit = self.eviction.delete_threshold if threshold is None else threshold
            for name in ("show", "click"):
                self._statistics[name] *= np.float32(self.eviction.show_click_decay_rate)
            ids = np.fromiter(self._slots, np.int64, len(self._slots))
            slots = self._find(ids)
            old = self._statistics["unseen"][slots] > self.eviction.delete_after_unseen_days
            return self._delete(ids[(self._scores(slots) < limit) | old])

    def restrict(self, count: int, by: Literal["seen", "unseen", "score"] = "seen") -> np.ndarray:
        """Delete all but `count` rows; the ids of those that are gone.

        Args:
            by: Kept are rows that were met most often, those that were met last (in days), or those of highest score.
        """
        with self._lock:
            ids = np.fromiter(self._slots, np.int64, len(self._slots))
            slots = self._find(ids)
            if by == "score":
                worth = self._scores(slots)
            else:
                worth = self._statistics[by][slots] * (1 if by == "seen" else -1)
            return self._delete(ids[np.argsort(-worth, kind="stable")[count:]])

    def _delete(self, ids: np.ndarray) -> np.ndarray:
        for one in ids.tolist():
            self._free.append(self._slots.pop(one))
        return ids

    def waiting_ids(self) -> dict[int, int]:
        """Ids that CountFilterEntry has not admitted yet, and how often they were met."""
        with self._lock:
            return dict(self._waiting)

    def statistics(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """`seen`, `show`, `click`, `delta` (score since the last saving of changes), `unseen` days; nan without row."""
        slots = self._find(np.asarray(ids, np.int64))
        return {
            name: np.where(slots < 0, np.nan, one[np.maximum(slots, 0)])
            for name, one in self._statistics.items()
        }

    def hot_ids(self, count: int) -> np.ndarray:
        """The ids that were met most often, int64 [up to count], the first one most."""
        ids = np.fromiter(self._slots, np.int64, len(self._slots))
        counts = self._statistics["seen"][self._find(ids)]
        return ids[np.argsort(-counts, kind="stable")[:count]]

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write ids, rows and statistics to one .npz file."""
        with self._lock:
            ids = np.fromiter(self._slots, np.int64, len(self._slots))
            slots = self._find(ids)
            waiting = np.array(list(self._waiting.items()), np.int64).reshape(-1, 2)
            arrays: dict[str, PyTree] = {name: one[slots] for name, one in self._statistics.items()}
            arrays["about"] = np.array(json.dumps([self.features, self.extras, self._pushes]))
            arrays["rows"] = np.asarray(self._values[slots])
            with Path(path).open("wb") as file:
                np.savez(file, ids=ids, waiting=waiting, **arrays)

    def load(self, path: str | Path) -> None:
        """Read what `save` wrote in place of all rows. Raises: FormatError, where it is of another table."""
        try:
            with np.load(path) as file:  # which takes no pickled objects
                arrays = {name: file[name] for name in file.files}
            features, extras, pushes = json.loads(str(arrays["about"]))
            ids, rows = arrays["ids"], arrays["rows"]
            statistics = {name: arrays[name] for name in _STATISTICS}
            waiting = arrays["waiting"].tolist()
        except (OSError, ValueError, KeyError) as error:
            raise FormatError(
                "the rows of a table cannot be read",
                where=path,
                received=str(error)[:200],
                allowed="a file of HostTable.save",
            ) from error
        if (features, extras) != (self.features, self.extras) or rows.shape != (len(ids), features + extras):
            raise FormatError(
                "the rows are of another table",
                where=path,
                received=f"{features} features, {extras} of state",
                allowed=f"{self.features} features, {self.extras} of state",
            )
        with self._lock:
            self.clear()
            while len(self._values) < len(ids):
                self._grow()
            self._slots = {one: slot for slot, one in enumerate(ids.tolist())}
            self._values[: len(ids)] = rows
            for name, one in statistics.items():
                self._statistics[name][: len(ids)] = one
            self._waiting, self._pushes = dict(waiting), pushes


def _join(low: object, high: object) -> np.ndarray:
    """64-bit ids of two words."""
    words = np.asarray(high, np.uint64) << np.uint64(32) | np.asarray(low, np.uint64)
    return words.astype(np.int64)


def _mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64 of uint64."""
    with np.errstate(over="ignore"):
        x = x + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))

"""Settings of large tables: how their rows are updated, and which ids get a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from framework.core.errors import ConfigError

TableOptimizer = Literal["sgd", "adagrad", "rowwise_adagrad", "adam"]


@dataclass(frozen=True)
class CountFilterEntry:
    """A row is trained from the `count_filter`-th time on that one of its ids is met; until then it keeps its first
    values. Source: paddle.distributed.CountFilterEntry."""

    count_filter: int

    def __post_init__(self) -> None:
        if isinstance(self.count_filter, bool) or not isinstance(self.count_filter, int):
            raise _wrong("CountFilterEntry", self.count_filter, "an integer of 0 or more")
        if self.count_filter < 0:
            raise _wrong("CountFilterEntry", self.count_filter, "an integer of 0 or more")

    def to_attr(self) -> str:
        """As Paddle's programs keep it."""
        return f"count_filter_entry:{self.count_filter}"


@dataclass(frozen=True)
class ProbabilityEntry:
    """Each time that a row is met that is not trained yet, it is admitted with this probability; rows that are not
    keep their first values. Source: paddle.distributed.ProbabilityEntry."""

    probability: float

    def __post_init__(self) -> None:
        if not isinstance(self.probability, float) or not 0 < self.probability < 1:
            raise _wrong("ProbabilityEntry", self.probability, "a float above 0 and below 1")

    def to_attr(self) -> str:
        """As Paddle's programs keep it."""
        return f"probability_entry:{self.probability}"


@dataclass(frozen=True)
class ShowClickEntry:
    """Rows have a score of how often they were shown and clicked; a row of a low score has no vector. The arguments
    name what a batch has of each sample. Of tables in the memory of the host. Source:
    paddle.distributed.ShowClickEntry."""

    show_name: str
    click_name: str

    def __post_init__(self) -> None:
        for name in (self.show_name, self.click_name):
            if not isinstance(name, str):
                raise _wrong("ShowClickEntry", name, "names: ShowClickEntry('show', 'click')")

    def to_attr(self) -> str:
        """As Paddle's programs keep it."""
        return f"show_click_entry:{self.show_name}:{self.click_name}"


Entry = CountFilterEntry | ProbabilityEntry | ShowClickEntry


@dataclass(frozen=True)
class TableOptions:
    """How the rows of a table are updated.

    Attributes:
        optimizer: `rowwise_adagrad`: one sum of squares a row, `a += mean(g^2)`, `w -= lr g / (sqrt(a) + eps)`
            (FBGEMM, TorchRec). `adagrad`: one for each number. `adam`: lazy, rows that are not met keep their moments,
            the bias is corrected by the step of the whole training (torch.optim.SparseAdam). `sgd`.
        learning_rate: Of this table alone; None takes that of the training, with its schedule.
        epsilon: None: 1e-8 of `adam` and `rowwise_adagrad`, 1e-6 of `adagrad`, as Paddle's and FBGEMM's are.
        weight_decay: L2, of the rows that are met.
        initial_accumulator: First value of the sums of squares.
        betas: Of `adam`.
        entry: Which rows are trained.
        count_ids: Keep how often the ids of each row were met (`seen` of the table's state), which tells the rows that
            are hot.
    """

    optimizer: TableOptimizer = "rowwise_adagrad"
    learning_rate: float | None = None
    epsilon: float | None = None
    weight_decay: float = 0.0
    initial_accumulator: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    entry: Entry | None = None
    count_ids: bool = False

    def __post_init__(self) -> None:
        if self.optimizer not in get_args(TableOptimizer):
            allowed = ", ".join(get_args(TableOptimizer))
            raise _wrong("ShardedEmbedding(optimizer=…)", self.optimizer, allowed)
        for name in ("learning_rate", "epsilon", "weight_decay", "initial_accumulator"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise _wrong(f"ShardedEmbedding({name}=…)", value, "0 or more")


def _wrong(where: str, received: object, allowed: str) -> ConfigError:
    return ConfigError("wrong setting of a table", where=where, received=repr(received), allowed=allowed)

"""Callbacks that write numbers and images for TensorBoard, VisualDL and Weights & Biases; each needs its own extra."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, MissingExtraError
from framework.core.types import JSON
from framework.engine.callbacks import Callback, Row

if TYPE_CHECKING:
    from framework.engine.trainer import Trainer


@dataclass(frozen=True)
class _Logger(Callback):
    """Writes every number of the log and of evaluations, and the image that the task draws of an evaluated sample."""

    every_process = False

    _writers: list[Any] = field(init=False, repr=False, compare=False, default_factory=list)

    @abstractmethod
    def _open(self, trainer: Trainer) -> Any:
        """What is written to. Raises: MissingExtraError."""

    @abstractmethod
    def _write(self, numbers: Mapping[str, float], image: np.ndarray | None, step: int) -> None:
        """Numbers by name, and an image [H, W, 3] uint8."""

    @abstractmethod
    def _close(self) -> None: ...

    def on_begin(self, trainer: Trainer) -> None:
        self._writers[:] = [self._open(trainer)]

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self._write(_numbers("train", row), None, row["step"])

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        first = trainer.evaluator and trainer.evaluator.first
        image = trainer.task.visualize(*first, trainer.labels) if first else None
        self._write(_numbers("eval", row), image, row["step"])

    def on_end(self, trainer: Trainer) -> None:
        if self._writers:
            self._close()
            self._writers.clear()

    def _folder(self, folder: Path | None, trainer: Trainer, name: str) -> Path:
        if folder is None and trainer.folder is None:
            raise ConfigError(
                "there is no folder to write to",
                where=f"{type(self).__name__}.log_dir",
                received="neither log_dir nor the folder of a run",
                fix=f"{type(self).__name__}(log_dir=...)",
            )
        return Path(folder) if folder is not None else Path(str(trainer.folder)) / name


def _numbers(group: str, row: Row) -> dict[str, float]:
    return {f"{group}/{name}": value for name, value in row.items() if isinstance(value, float)}


@register("callback")
@dataclass(frozen=True)
class TensorBoard(_Logger):
    """Event files for TensorBoard in `log_dir`, by default <run>/tensorboard. A resumed run takes the place of what was
    logged after its checkpoint."""

    log_dir: Path | None = None

    def _open(self, trainer: Trainer) -> Any:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtraError("tensorboardX", "log", "writing TensorBoard files") from None
        folder = self._folder(self.log_dir, trainer, "tensorboard")
        return SummaryWriter(str(folder), purge_step=trainer.step + 1 if trainer.step else None)

    def _write(self, numbers: Mapping[str, float], image: np.ndarray | None, step: int) -> None:
        (writer,) = self._writers
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        if image is not None:
            writer.add_image("eval/sample", image, step, dataformats="HWC")
        writer.flush()

    def _close(self) -> None:
        self._writers[0].close()


@register("callback")
@dataclass(frozen=True)
class VisualDL(_Logger):
    """Files for `visualdl --logdir` in `log_dir`, by default <run>/visualdl."""

    log_dir: Path | None = None

    def _open(self, trainer: Trainer) -> Any:
        try:
            from visualdl import LogWriter  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise MissingExtraError("visualdl", "visualdl", "writing files for VisualDL") from None
        return LogWriter(logdir=str(self._folder(self.log_dir, trainer, "visualdl")))

    def _write(self, numbers: Mapping[str, float], image: np.ndarray | None, step: int) -> None:
        (writer,) = self._writers
        for name, value in numbers.items():
            writer.add_scalar(tag=name, value=value, step=step)
        if image is not None:
            writer.add_image(tag="eval/sample", img=image, step=step)

    def _close(self) -> None:
        self._writers[0].close()


@register("callback")
@dataclass(frozen=True)
class WandB(_Logger):
    """A run of Weights & Biases; a resumed run goes on with the one that it began.

    Attributes:
        mode: "offline" writes to the run's folder alone, for `wandb sync`.
        log_dir: Where its files go; by default <run>/wandb.
    """

    project: str = "oar"
    name: str | None = None
    entity: str | None = None
    mode: Literal["online", "offline", "disabled"] | None = None
    log_dir: Path | None = None
    _run: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def _open(self, trainer: Trainer) -> Any:
        try:
            import wandb  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise MissingExtraError("wandb", "wandb", "logging to Weights & Biases") from None
        folder = self._folder(self.log_dir, trainer, "wandb")
        folder.mkdir(parents=True, exist_ok=True)
        run = wandb.init(
            project=self.project,
            name=self.name or (trainer.folder.name if trainer.folder else None),
            entity=self.entity,
            mode=self.mode,
            dir=str(folder),
            id=self._run.get("id"),
            resume="allow",
        )
        self._run["id"] = run.id
        return run

    def _write(self, numbers: Mapping[str, float], image: np.ndarray | None, step: int) -> None:
        (run,) = self._writers
        entries: dict[str, object] = dict(numbers)
        if image is not None:
            import wandb  # pyright: ignore[reportMissingImports]

            entries["eval/sample"] = wandb.Image(image)
        run.log(entries, step=step)

    def _close(self) -> None:
        self._writers[0].finish()

    def state_dict(self) -> dict[str, JSON]:
        return dict(self._run)

    def set_state_dict(self, state: Mapping[str, JSON]) -> None:
        if not all(isinstance(value, str) for value in state.values()):
            raise FormatError(
                "the state of WandB must hold the run's id", received=dict(state), allowed='{"id": "..."}'
            )
        self._run.update({name: str(value) for name, value in state.items()})

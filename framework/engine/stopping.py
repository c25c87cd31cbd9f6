"""Training that is asked to stop: SIGINT and SIGTERM end it after a step, and nothing of it is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from jax.experimental import multihost_utils


class TrainingStopped(KeyboardInterrupt):
    """A signal ended the training after a whole step. `str(stopped)` is one line for the user.

    Attributes:
        signal: Its name, such as "SIGINT".
        step: Steps done.
        checkpoint: Of this step; None where the run keeps none.
        command: What goes on with the run.
    """

    def __init__(self, signal: str, step: int, checkpoint: Path | None, command: str | None = None) -> None:
        self.signal, self.step, self.checkpoint, self.command = signal, step, checkpoint, command
        outcome = f"saved as {checkpoint}" if checkpoint else "nothing is saved, as the run has no folder"
        onward = f"; to go on: {command}" if command else ""
        super().__init__(f"stopped by {signal} after step {step}: {outcome}{onward}")


class StopSignals:
    """Within the block the first SIGINT or SIGTERM is noted in `received`, and the second does what it did before.

    Handlers belong to the main thread: in others nothing changes. On Windows only Ctrl-C comes as a signal; a process
    that is terminated there ends at once.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self._before: dict[int, signal.Handlers | int | Callable[[int, FrameType | None], object]] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._note) or signal.SIG_DFL
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def agree(self, step: int) -> None:
        """Called after every step; here a signal counts when it comes."""

    def _note(self, number: int, frame: FrameType | None) -> None:
        # Nothing is logged here: the signal may have come while a line of the log is being written.
        self.received = signal.Signals(number).name
        self.__exit__()


class AgreedStop(StopSignals):
    """The same for several processes, which must stop after the same step: SIGTERM of one of them counts for all, by
    jax's service for preemptions. SIGINT goes to whoever started them, who ends them by SIGTERM."""

    def __enter__(self) -> AgreedStop:
        return self

    def agree(self, step: int) -> None:
        """Ask all processes whether to stop after this step; all call it at every step."""
        if self.received is None and multihost_utils.reached_preemption_sync_point(step):
            self.received = signal.Signals.SIGTERM.name

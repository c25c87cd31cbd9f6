"""Datasets for parameter servers by name, from before `paddle.distributed.InMemoryDataset`: settings one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed import data_sets

if TYPE_CHECKING:
    from framework.paddle.static.program import Variable


class DatasetBase(data_sets.DatasetBase):
    """Settings have a method each; what they mean is told by `paddle.distributed.QueueDataset.init`."""

    def set_pipe_command(self, pipe_command: str) -> None:
        """The command that turns files into MultiSlot text."""
        self.init(pipe_command=pipe_command)

    def set_batch_size(self, batch_size: int) -> None:
        """Samples of a batch."""
        self.init(batch_size=batch_size)

    def set_thread(self, thread_num: int) -> None:
        """Threads, which do not change what is read."""
        self.init(thread_num=thread_num)

    def set_use_var(self, var_list: Sequence[Variable]) -> None:
        """The variables of the slots. Raises: InputError, for one that is neither int64 nor float32."""
        self.init(use_var=var_list)

    def set_input_type(self, input_type: int) -> None:
        """A number that is kept."""
        self.init(input_type=input_type)

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:
        """Names of a file system that are kept: files are read from this machine."""
        self.init(fs_name=fs_name, fs_ugi=fs_ugi)

    def set_download_cmd(self, download_cmd: str) -> None:
        """A command that is kept."""
        self.init(download_cmd=download_cmd)


class QueueDataset(DatasetBase, data_sets.QueueDataset):
    """Streams its files, in their order."""


class InMemoryDataset(DatasetBase, data_sets.InMemoryDataset):
    """Reads its files into memory, where they are shuffled."""

    def set_feed_type(self, data_feed_type: str) -> None:
        """The reader of Paddle that is asked for."""
        self.init(data_feed_type=data_feed_type)

    def set_queue_num(self, queue_num: int) -> None:
        """Queues, which do not change what is read."""
        self.init(queue_num=queue_num)

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = 1024) -> None:
        """Samples that are sent together when they are shuffled over processes."""
        self.init(fleet_send_batch_size=fleet_send_batch_size)


_KINDS: dict[str, type[DatasetBase]] = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}


class DatasetFactory:
    """Makes datasets by their names."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """An empty dataset. Raises: ValueError: there is none of the name."""
        if datafeed_class not in _KINDS:
            raise ValueError(f"datafeed class {datafeed_class} does not exist; here are {', '.join(_KINDS)}")
        return _KINDS[datafeed_class]()


_complete(__name__)

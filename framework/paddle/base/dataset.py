"""Datasets for parameter servers by name, from before `paddle.distributed.InMemoryDataset`."""

from __future__ import annotations

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.data_sets import DatasetBase as DatasetBase
from framework.paddle.distributed.data_sets import InMemoryDataset as InMemoryDataset
from framework.paddle.distributed.data_sets import QueueDataset as QueueDataset

_KINDS = {"QueueDataset": QueueDataset, "InMemoryDataset": InMemoryDataset}


class DatasetFactory:
    """Makes datasets by their names."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> DatasetBase:
        """An empty dataset. Raises: ValueError: there is none of the name."""
        if datafeed_class not in _KINDS:
            raise ValueError(f"datafeed class {datafeed_class} does not exist; here are {', '.join(_KINDS)}")
        return _KINDS[datafeed_class]()


_complete(__name__)

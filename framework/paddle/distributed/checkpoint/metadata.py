"""What a checkpoint says of its Tensors. `paddle.distributed.save_state_dict` writes whole ones here."""

from __future__ import annotations

from dataclasses import dataclass

from framework.paddle._kernel.modules import complete as _complete


@dataclass
class LocalTensorMetadata:
    """Where a part of a Tensor begins in it, and its shape."""

    global_offset: tuple[int, ...]
    local_shape: tuple[int, ...]


@dataclass(frozen=True)
class LocalTensorIndex:
    """A part of a Tensor, by the name of the Tensor and where it begins."""

    tensor_key: str
    global_offset: tuple[int, ...]


@dataclass
class Metadata:
    """The parts of each Tensor, and the file of each part."""

    state_dict_metadata: dict[str, list[LocalTensorMetadata]] | None = None
    storage_metadata: dict[LocalTensorIndex, str] | None = None


_complete(__name__)

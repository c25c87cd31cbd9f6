"""Several sends and receives at once: `batch_isend_irecv([P2POp(isend, x, 1), P2POp(irecv, y, 1)])`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed.collective import Group, Task, _member, _world, irecv, isend
from framework.paddle.distributed.env import get_rank


@dataclass(eq=False)
class P2POp:
    """One message of a batch.

    Attributes:
        op: `paddle.distributed.isend` or `irecv`.
        tensor: What is sent, or filled.
        peer: The rank of the other process.

    Raises:
        RuntimeError: it is another function.
    """

    op: Callable[..., Task]
    tensor: Tensor
    peer: int
    group: Group | None = None

    def __post_init__(self) -> None:
        if self.op not in (isend, irecv):
            raise RuntimeError(
                f"P2POp: op is paddle.distributed.isend or paddle.distributed.irecv, received {self.op!r}"
            )
        self.group = self.group or _world()

    def route(self) -> tuple[int, int]:
        """(the process that sends, the one that receives)."""
        return (get_rank(), self.peer) if self.op is isend else (self.peer, get_rank())


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Task]:
    """Send and receive all messages; the tasks that it returns are done.

    Both ends meet for a message, so that all processes take them in one order: by the sender, then by the receiver.
    Messages between the same two processes are taken in the order of the list.

    Raises:
        RuntimeError: it is no list of P2POp.
        DeviceError: there is no such process.
    """
    if not (
        isinstance(p2p_op_list, list) and p2p_op_list and all(isinstance(one, P2POp) for one in p2p_op_list)
    ):
        raise RuntimeError(
            f"batch_isend_irecv: a list of paddle.distributed.P2POp, received {p2p_op_list!r:.80}"
        )
    if not _member(p2p_op_list[0].group):
        return []
    ordered = sorted(range(len(p2p_op_list)), key=lambda index: p2p_op_list[index].route())
    tasks = {
        index: message.op(message.tensor, message.peer, message.group)
        for index in ordered
        for message in [p2p_op_list[index]]
    }
    return [tasks[index] for index in range(len(p2p_op_list))]

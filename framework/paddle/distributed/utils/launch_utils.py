"""Addresses of the processes of a run, for programs that start their processes themselves."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from framework.paddle._kernel.modules import complete as _complete


@dataclass
class Trainer:
    """A process and its devices."""

    gpus: list[object] = field(default_factory=list)
    endpoint: str | None = None
    rank: int | None = None

    def get_rank(self) -> int | None:
        return self.rank


@dataclass
class Pod:
    """A machine and its processes."""

    rank: int | None = None
    id: object = None
    addr: str | None = None
    port: int | None = None
    trainers: list[Trainer] = field(default_factory=list)
    gpus: list[object] = field(default_factory=list)

    def get_visible_gpus(self) -> str:
        """Their numbers with commas. Raises: AssertionError, where there are none."""
        assert self.gpus, f"this pod {self} can't see any gpus"
        return ",".join(map(str, self.gpus))


@dataclass
class Cluster:
    """All machines of a run."""

    hdfs: object = None
    job_server: object = None
    pods: list[Pod] = field(default_factory=list)
    job_stage_flag: object = None

    def update_pods(self, cluster: Cluster) -> None:
        """Take the machines of another cluster."""
        self.pods = list(cluster.pods)

    def trainers_endpoints(self) -> list[str | None]:
        """The addresses of all processes, in the order of their ranks."""
        return [trainer.endpoint for pod in self.pods for trainer in pod.trainers]

    def trainers_nranks(self) -> int:
        return len(self.trainers_endpoints())

    def pods_nranks(self) -> int:
        return len(self.pods)

    def pods_endpoints(self) -> list[str]:
        """The addresses of machines. Raises: AssertionError, where one has none."""
        for pod in self.pods:
            assert pod.port is not None and pod.addr is not None, (
                f"{pod.addr}:{pod.port} not a valid endpoint"
            )
        return [f"{pod.addr}:{pod.port}" for pod in self.pods]

    def get_pod_by_id(self, pod_id: object) -> Pod | None:
        return next((pod for pod in self.pods if str(pod.id) == str(pod_id)), None)


def get_cluster(
    node_ips: Sequence[str],
    node_ip: str,
    trainer_endpoints: Sequence[Sequence[str]],
    selected_gpus: Sequence[object],
) -> tuple[Cluster, Pod]:
    """The cluster of one process for each device of each machine, and this machine in it.

    Raises:
        AssertionError: `trainer_endpoints` is no list, or has fewer addresses than devices for a machine.
    """
    assert isinstance(trainer_endpoints, list), "trainer_endpoints must be list"
    cluster = Cluster()
    for node_rank, (address, endpoints) in enumerate(zip(node_ips, trainer_endpoints, strict=False)):
        assert len(endpoints) >= len(selected_gpus), (
            "current trainer_endpoints size should be greater equal than selected_gpus size."
        )
        first = cluster.trainers_nranks()
        trainers = [
            Trainer([device], endpoint, first + number)
            for number, (device, endpoint) in enumerate(zip(selected_gpus, endpoints, strict=False))
        ]
        cluster.pods.append(Pod(rank=node_rank, addr=address, trainers=trainers))
    return cluster, cluster.pods[list(node_ips).index(node_ip)]


def find_free_ports(num: int) -> set[int]:
    """So many ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(num)]
        for one in sockets:  # held together, so that they differ
            one.bind(("", 0))
        return {one.getsockname()[1] for one in sockets}


def get_host_name_ip() -> tuple[str, str] | None:
    """The name and the address of this machine; None: it has none."""
    try:
        return socket.gethostname(), socket.gethostbyname(socket.getfqdn(socket.gethostname()))
    except OSError:
        return None


_complete(__name__)

"""Addresses of the processes of a run, for programs that start their processes themselves."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from framework.paddle._kernel.modules import complete as _complete

log = logging.getLogger("oar")
_SECONDS_TO_END = 3  # of a process that was asked to


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


@dataclass
class TrainerProc:
    """A process that was started, its command and its log."""

    proc: subprocess.Popen[bytes] | None = None
    log_fn: TextIO | None = None
    log_offset: int | None = None
    rank: int | None = None
    local_rank: int | None = None
    cmd: list[str] | None = None


def start_local_trainers(
    cluster: Cluster,
    pod: Pod,
    training_script: str,
    training_script_args: Sequence[str],
    log_dir: str | None = None,
) -> list[TrainerProc]:
    """A process of the script for each of the machine's trainers, whose environment says its rank and the addresses of
    all; their output goes to `workerlog.0`, `workerlog.1`, … of `log_dir`. Proxies are taken out of the environment."""
    started = []
    for number, trainer in enumerate(pod.trainers):
        environment = {name: value for name, value in os.environ.items() if name not in _PROXIES}
        environment |= _environment(cluster, trainer)
        command = [sys.executable, "-u", training_script, *training_script_args]
        stream = None
        if log_dir is not None:
            Path(log_dir).mkdir(parents=True, exist_ok=True)
            stream = (Path(log_dir) / f"workerlog.{number}").open("a", encoding="utf-8")
        proc = subprocess.Popen(command, env=environment, stdout=stream, stderr=stream)
        offset = stream.tell() if stream else None
        started.append(TrainerProc(proc, stream, offset, trainer.rank, number, command))
    return started


_PROXIES = ("http_proxy", "https_proxy")


def _environment(cluster: Cluster, trainer: Trainer) -> dict[str, str]:
    devices = ",".join(map(str, trainer.gpus))
    return {
        "FLAGS_selected_gpus": devices,
        "PADDLE_TRAINER_ID": str(trainer.rank),
        "PADDLE_CURRENT_ENDPOINT": str(trainer.endpoint),
        "PADDLE_TRAINERS_NUM": str(cluster.trainers_nranks()),
        "PADDLE_TRAINER_ENDPOINTS": ",".join(map(str, cluster.trainers_endpoints())),
    }


def pull_worker_log(tp: TrainerProc) -> None:
    """Show what a process has written since the last time."""
    if tp.log_fn is None:
        return
    with Path(tp.log_fn.name).open(encoding="utf-8", errors="replace") as lines:
        lines.seek(tp.log_offset or 0)
        for line in iter(lines.readline, ""):
            sys.stdout.write(line)
        tp.log_offset = lines.tell()


def terminate_local_procs(procs: Sequence[TrainerProc]) -> None:
    """End the processes that run, by force where one has not ended after three seconds."""
    running = [one for one in procs if one.proc is not None and one.proc.poll() is None]
    for one in running:
        one.proc.terminate()  # type: ignore[union-attr]
    for one in running:
        try:
            one.proc.wait(_SECONDS_TO_END)  # type: ignore[union-attr]
        except subprocess.TimeoutExpired:
            one.proc.kill()  # type: ignore[union-attr]
            one.proc.wait()  # type: ignore[union-attr]
    for one in procs:
        if one.log_fn is not None:
            one.log_fn.close()


def watch_local_trainers(procs: Sequence[TrainerProc], nranks: int) -> bool:
    """Whether a process still runs; the log of the first is shown.

    Raises:
        SystemExit: a process has failed; the others are ended.
    """
    failed: list[int | None] = []
    running = False
    try:
        for one in procs:
            if one.local_rank == 0:
                pull_worker_log(one)
            status = None if one.proc is None else one.proc.poll()
            running = running or status is None
            if status:
                failed.append(one.rank)
    except BaseException:
        terminate_local_procs(procs)
        raise
    if failed:
        log.error("of %d processes those with the ranks %s have failed: their logs say why", nranks, failed)
        terminate_local_procs(procs)
        sys.exit(1)
    return running


_complete(__name__)

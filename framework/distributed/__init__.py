"""Several devices and several processes: the mesh, and where arrays of a batch and of a state lie on it."""

from framework.distributed.mesh import ParallelOptions as ParallelOptions
from framework.distributed.partitioner import Partitioner as Partitioner
from framework.distributed.processes import init_parallel_env as init_parallel_env

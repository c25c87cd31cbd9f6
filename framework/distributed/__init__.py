"""Several devices: the mesh, and where arrays of a batch and of a state lie on it."""

from framework.distributed.partitioner import Partitioner as Partitioner

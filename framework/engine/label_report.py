"""Which labels of a batch are no class: found after a loss was NaN, as a compiled step cannot raise for values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.dtypes import narrow
from framework.core.rng import rng_scope
from framework.engine.task import Task
from framework.io.device import without_texts
from framework.nn.functional.losses import LabelError
from framework.nn.layer import Layer


def find_bad_labels(
    task: Task, model: Layer, batch: Mapping[str, np.ndarray | jax.Array], step: int = 0
) -> LabelError | None:
    """The error of the task's loss on a batch of host arrays when it is computed outside of a compiled program.

    None where the labels are classes, or where the loss cannot be computed so.
    """
    arrays = {name: jnp.asarray(narrow(np.asarray(v), name)) for name, v in without_texts(batch).items()}
    try:
        with rng_scope(jax.random.key(0)):
            task.loss(model, {**arrays, "step": jnp.asarray(step, jnp.int32)})
    except LabelError as error:
        return error
    except Exception:  # only the report is poorer for it, and the error to report is another one
        return None
    return None


def name_samples(error: LabelError, ids: Sequence[object]) -> list[object]:
    """The samples that the wrong labels are of, whose first axis counts samples, or places of samples in turn."""
    rows, count = error.shape[0] if error.shape else 1, len(ids)
    if not count or rows % count:
        return []
    return [ids[place] for place in np.unique(error.rows // (rows // count)).tolist()]

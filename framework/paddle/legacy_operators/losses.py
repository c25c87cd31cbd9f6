"""Losses over sequences that lie in one array, with their lengths beside it.

Source: paddle/phi/kernels/impl/warpctc_kernel_impl.h
"""

from __future__ import annotations

import jax.numpy as jnp

from framework.nn import functional as F
from framework.paddle.legacy_operators.operands import Operands, Outputs, Table, pad, registrar

OPERATORS: Table = {}
operator = registrar(OPERATORS)


@operator("warpctc")
def _warpctc(a: Operands) -> Outputs:
    """The CTC loss of logits [T, N, C] and labels [N, L] with their lengths, or of rows of sequences."""
    logits, labels = a.array("Logits"), a.array("Label")
    if a.get("LogitsLength") is not None:
        steps, sizes = a.array("LogitsLength").reshape(-1), a.array("LabelLength").reshape(-1)
    else:
        rows, symbols = a.lengths("Logits"), a.lengths("Label")
        logits = jnp.swapaxes(pad(logits, rows, int(rows.max(initial=1))), 0, 1)
        labels = pad(labels.reshape(-1), symbols, int(symbols.max(initial=1)))
        steps, sizes = jnp.asarray(rows), jnp.asarray(symbols)
    blank, by_times = a.attr("blank", 0), a.attr("norm_by_times", False)
    loss = F.ctc_loss(logits, labels, steps, sizes, blank, "none", by_times)
    return {"Loss": loss.reshape(-1, 1)}

"""Training in low precision: `auto_cast` and, for float16, `GradScaler`.

    with amp.auto_cast(level="O2", dtype="bfloat16"):
        loss, grads = nn.value_and_grad(layer, loss_fn)(x, label)    # loss and grads are float32

Parameters, buffers and optimizer states are float32 at both levels: what Paddle calls master weights is all there is,
so there is no `amp.decorate`, and checkpoints do not change. bfloat16 is real on the CPU too, where Paddle's is not.
"""

from framework.amp.auto_cast import auto_cast as auto_cast
from framework.amp.grad_scaler import GradScaler as GradScaler
from framework.amp.grad_scaler import ScalerState as ScalerState

"""Reference outputs of the Transformer, from PaddleNLP's TransformerModel.

    python tools/golden/transformer.py small …          needs: paddlepaddle 2.6, paddlenlp 2.8, huggingface_hub 0.23

Weights are drawn from the reference's own names (transformer_cases.py), so loading them by name is part of the test;
the table of positions is the reference's own. Stored are the names and shapes of the state, thinned outputs of the
encoder and logits. Written to tests/golden/data/transformer/<case>.npz.
"""

from __future__ import annotations

import sys
import zlib  # noqa: F401  loaded before paddle, whose libraries bring one that crashes Python's
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from text_encoders import pretend  # noqa: E402
from transformer_cases import CASES, drawn, inputs, thin  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "transformer"


def reference(name: str) -> None:
    import paddle

    for unused in ("aistudio_sdk.hub", "datasets"):  # their later releases do not fit
        pretend(unused)
    from paddlenlp.transformers import TransformerModel

    case = CASES[name]
    model = TransformerModel(**case, dropout=0.1, bos_id=0, eos_id=1)
    model.eval()
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    state = {key: paddle.to_tensor(value) for key, value in drawn(shapes).items()}
    missing, unexpected = model.set_state_dict(state)
    assert all("pos_encoder" in key for key in missing) and not unexpected, (missing, unexpected)
    encoded = []
    model.transformer.encoder.register_forward_post_hook(lambda layer, args, out: encoded.append(out))
    x = inputs(case)
    with paddle.no_grad():
        logits = model(paddle.to_tensor(x.source), paddle.to_tensor(x.target)).numpy()
    memory = encoded[0].numpy() * (x.source != 0)[..., None]
    keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
    for what, value in (("memory", memory), ("logits", logits)):
        print(f"{name:24} {what:8} {value.shape!s:16} max {np.abs(value).max():.3f} std {value.std():.4f}")
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        OUT / f"{name}.npz", keys=np.array(keys.encode()), memory=thin(memory), logits=thin(logits)
    )


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        reference(chosen)

"""Networks trained a few steps here, saved as .pdparams, loaded in Paddle: 0 missing, the same outputs.

    python tools/golden/pdparams_parity.py train FOLDER      with Oar
    python tools/golden/pdparams_parity.py check FOLDER      needs: paddlepaddle 2.6, ppdet 2.6, paddlenlp 2.8

`train` writes <case>.pdparams with the official names, and inputs and outputs in <case>.npz. `check` builds the
official network, loads the file with `paddle.load` and `set_state_dict`, and compares: ResNet50 and MobileNetV3 of
paddle.vision.models, ResNet50 of PaddleClas, PicoDet-S of PaddleDetection, ERNIE for sequences of PaddleNLP.
"""

from __future__ import annotations

import sys
import zlib  # noqa: F401  paddle crashes in this environment when it is loaded first
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
STEPS, CLASSES, TOLERANCE = 4, 5, 1e-4
ERNIE = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
ERNIE |= {"intermediate_size": 64, "max_position_embeddings": 24, "type_vocab_size": 4}
SUITES = {
    "resnet50_vision": "paddle.vision",
    "resnet50_clas": "paddleclas",
    "mobilenet_v3_small_vision": "paddle.vision",
    "picodet_s": "paddledet",
    "ernie": "paddlenlp",
}


def images(side: int) -> np.ndarray:
    return np.random.RandomState(3).standard_normal((2, side, side, 3)).astype(np.float32)


def train(folder: Path) -> None:
    """Write the files and what our networks make of the inputs."""
    import jax
    import jax.numpy as jnp

    import framework
    from detection.models.picodet import PicoDet, PicoDetConfig
    from framework import nn
    from framework.optimizer import Momentum
    from framework.workflow.convert.pdparams import official_state
    from nlp.contracts import Tokens
    from nlp.models.sequence_classification import SequenceClassifier, SequenceClassifierConfig
    from zoo.text.ernie import ErnieConfig
    from zoo.vision.mobilenet_v3 import MobileNetV3, MobileNetV3Config
    from zoo.vision.resnet import ResNet, ResNetConfig

    framework.seed(0)
    ernie = ErnieConfig(
        variant="ernie-3.0-tiny-pico-v2-zh",
        vocab_size=ERNIE["vocab_size"],
        hidden_size=ERNIE["hidden_size"],
        num_layers=ERNIE["num_hidden_layers"],
        num_heads=ERNIE["num_attention_heads"],
        intermediate_size=ERNIE["intermediate_size"],
        max_positions=ERNIE["max_position_embeddings"],
        type_vocab_size=ERNIE["type_vocab_size"],
    )
    small = MobileNetV3Config("mobilenetv3_small_x1_0", CLASSES, original=True)
    ids = np.random.RandomState(5).randint(1, 97, (2, 12)).astype(np.int32)
    tokens = Tokens(ids, np.ones_like(ids, bool), np.zeros_like(ids))
    cases: dict[str, tuple[nn.Layer, Any, np.ndarray]] = {
        "resnet50_vision": (ResNet(ResNetConfig("resnet50", CLASSES)), images(64), images(64)),
        "resnet50_clas": (ResNet(ResNetConfig("resnet50", CLASSES)), images(64), images(64)),
        "mobilenet_v3_small_vision": (MobileNetV3(small), images(64), images(64)),
        "picodet_s": (PicoDet(PicoDetConfig("picodet_s")), images(96), images(96)),
        "ernie": (SequenceClassifier(SequenceClassifierConfig(ernie, CLASSES)), tokens, ids),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, (model, given, stored) in cases.items():
        optimizer = Momentum(learning_rate=2e-4, momentum=0.9)

        def loss(net: nn.Layer, x: Any) -> jax.Array:
            return sum(
                (jnp.square(leaf.astype(jnp.float32) - 0.5).mean() for leaf in jax.tree.leaves(net(x))),
                jnp.zeros(()),
            )

        step, losses = nn.value_and_grad(model, loss), []
        for _ in range(STEPS):
            value, grads = step(given)
            optimizer.step(model, grads)
            losses.append(float(value))
        assert losses[-1] < losses[0], (name, losses)
        framework.save(official_state(model, SUITES[name]), folder / f"{name}.pdparams")
        outputs = [np.asarray(leaf, np.float32) for leaf in jax.tree.leaves(model.eval()(given))]
        if name == "picodet_s":  # scores and distances of all levels together, as there
            outputs = [
                np.concatenate([out.reshape(2, -1, out.shape[-1]) for out in outputs[kind::2]], axis=1)
                for kind in (0, 1)
            ]
        np.savez(folder / f"{name}.npz", stored, *outputs)
        print(f"{name:16} losses {', '.join(f'{value:.4f}' for value in losses)}")


def check(folder: Path) -> None:
    """Load in Paddle and compare. Raises: AssertionError."""
    import paddle

    for name in SUITES:
        with np.load(folder / f"{name}.npz") as data:
            given, *want = (data[key] for key in data.files)
        model, run = network(name)
        missing, unexpected = model.set_state_dict(paddle.load(str(folder / f"{name}.pdparams")))
        model.eval()
        with paddle.no_grad():
            found = [np.asarray(out) for out in run(given)]
        assert len(found) == len(want), (len(found), len(want))
        largest = max(
            float(np.abs(a - b).max()) / max(1.0, float(np.abs(b).max()))
            for a, b in zip(found, want, strict=True)
        )
        print(
            f"{name:16} missing {len(missing)}, unexpected {len(unexpected)}, outputs differ by {largest:.1e}"
        )
        assert not missing and not unexpected, (missing[:5], unexpected[:5])
        assert largest < TOLERANCE and all(out.std() > 1e-4 for out in found)


def network(name: str) -> tuple[Any, Any]:
    """The official network, and what gives the outputs of ours from the stored input."""
    import paddle

    def nchw(x: np.ndarray) -> paddle.Tensor:
        return paddle.to_tensor(x.transpose(0, 3, 1, 2))

    if name.endswith("_vision"):
        vision = getattr(paddle.vision.models, name.removesuffix("_vision"))(num_classes=CLASSES)
        return vision, lambda x: [vision(nchw(x)).numpy()]
    import text_encoders

    for absent in ("faiss", "aistudio_sdk.hub", *text_encoders._UNUSED):
        text_encoders.pretend(absent)
    if name == "resnet50_clas":
        from paddleclas.ppcls.arch.backbone.legendary_models import resnet

        clas = resnet.ResNet50(class_num=CLASSES)
        return clas, lambda x: [clas(nchw(x)).numpy()]
    if name == "picodet_s":
        import picodet

        detector = picodet.VARIANTS["picodet_s"]()

        def detect(x: np.ndarray) -> list[np.ndarray]:
            return [out.numpy() for out in detector.head.forward_train(detector(nchw(x)))[:2]]

        return detector, detect
    from paddlenlp import transformers

    config = transformers.ErnieConfig(num_labels=CLASSES, hidden_act="gelu", **ERNIE)
    ernie = transformers.ErnieForSequenceClassification(config)
    return ernie, lambda ids: [ernie(paddle.to_tensor(ids.astype(np.int64))).numpy()]


if __name__ == "__main__":
    {"train": train, "check": check}[sys.argv[1]](Path(sys.argv[2]))

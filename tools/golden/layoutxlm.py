"""Reference outputs of LayoutXLM and VI-LayoutXLM, of their encoders, of SER and of RE, from PaddleNLP.

    python tools/golden/layoutxlm.py [case ...]      needs: paddlepaddle 2.6, paddlenlp 2.6.1, yacs
    python tools/golden/layoutxlm.py --count         values of the models in full size

Stored are names and shapes, thinned states of the tokens, logits of SER, and of RE the logits of all pairs of a key and
a value and the loss. Upstream's `REDecoder.build_relation` cannot be run as published (`paddle.any(...) is False` is
never true), so its layers are called here on the pairs, in its order. Written to
tests/golden/data/layoutxlm/<case>.npz.
"""

from __future__ import annotations

import sys
import zlib  # loaded before paddle, whose libraries bring one that crashes Python's
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
from layoutxlm_cases import CASES, CLASSES, HEADS, Case, drawn, inputs, thin  # noqa: E402
from text_encoders import _UNUSED, pretend  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "layoutxlm"


def library() -> Any:
    import paddle

    assert paddle.__version__.startswith("2.6")
    for name in (*_UNUSED, "pandas"):
        pretend(name)
    from paddlenlp.transformers.layoutxlm import modeling

    return modeling


def build(case: Case, head: str) -> Any:
    modeling = library()
    from paddlenlp.transformers import LayoutXLMConfig

    settings = dict(case.settings)
    if "hidden_size" in settings:
        settings["coordinate_size"] = settings["shape_size"] = settings["hidden_size"] // 6
    original = modeling.read_config

    def read_config(fp: Any = None) -> Any:
        cfg = original(fp)
        cfg.defrost()
        depth, width = case.visual or (101, 64)
        cfg.MODEL.RESNETS.DEPTH, cfg.MODEL.RESNETS.STEM_OUT_CHANNELS = depth, width
        cfg.MODEL.RESNETS.WIDTH_PER_GROUP, cfg.MODEL.RESNETS.RES2_OUT_CHANNELS = width // 8, 4 * width
        cfg.freeze()
        return cfg

    modeling.read_config = read_config
    config = LayoutXLMConfig(num_labels=CLASSES, use_visual_backbone=case.visual is not None, **settings)
    model = getattr(modeling, f"LayoutXLM{head}")(config)
    modeling.read_config = original
    model.eval()
    return model


def reference(name: str) -> None:
    import paddle

    case = CASES[name]
    x = inputs(case)
    stored: dict[str, np.ndarray] = {}
    for head in HEADS:
        model = build(case, head)
        shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
        keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
        stored[f"keys.{head}"] = np.array(zlib.compress(keys.encode(), 9))
        constants = ("position_ids", "pixel_mean", "pixel_std")
        own = {key: shape for key, shape in shapes.items() if not key.endswith(constants)}
        model.set_state_dict({key: paddle.to_tensor(value) for key, value in drawn(own).items()})
        given = {
            "input_ids": paddle.to_tensor(x.ids.astype(np.int64)),
            "bbox": paddle.to_tensor(x.boxes.astype(np.int64)),
            "attention_mask": paddle.to_tensor(x.mask.astype(np.int64)),
            "image": paddle.to_tensor(x.image.transpose(0, 3, 1, 2)) if case.visual else None,
        }
        with paddle.no_grad():
            if head == HEADS[0]:
                stored["logits"] = model(**given)[0].numpy()
                continue
            hidden = model.layoutxlm(**given)[0][:, : x.ids.shape[1]]
            stored["hidden"] = hidden.numpy()
            stored["pairs"], stored["loss"] = relate(model.extractor, hidden, x.starts, x.kinds)
    for key, value in stored.items():
        if not key.startswith("keys."):
            print(f"{name:10} {key:8} {value.shape!s:16} max {np.abs(value).max():.3f} std {value.std():.4f}")
            stored[key] = value if key in ("pairs", "loss") else thin(value)
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT / f"{name}.npz", **stored)  # type: ignore[arg-type]


def relate(
    extractor: Any, hidden: Any, starts: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The logits of the pairs of a key (1) and a value (2), page after page, key by key, and the loss where the first
    pair of each page is related."""
    import paddle

    found, loss = [], 0.0
    for page in range(len(starts)):
        heads, tails = (np.flatnonzero(kinds[page] == kind) for kind in (1, 2))
        pairs = np.array([(head, tail) for head in heads for tail in tails])
        parts = []
        for column, ffn in ((0, extractor.ffnn_head), (1, extractor.ffnn_tail)):
            places = paddle.to_tensor(starts[page][pairs[:, column]])
            labels = paddle.to_tensor(kinds[page][pairs[:, column]])
            parts.append(ffn(paddle.concat([hidden[page][places], extractor.entity_emb(labels)], axis=-1)))
        logits = extractor.rel_classifier(*parts)
        labels = paddle.to_tensor(np.arange(len(pairs)) == 0).astype("int64")
        loss += float(extractor.loss_fct(logits, labels))
        found.append(logits.numpy())
    return np.concatenate(found), np.array(loss, np.float32)


def count() -> None:
    for name, visual in (("layoutxlm-base-uncased", (101, 64)), ("vi-layoutxlm-base-uncased", None)):
        for head in HEADS:
            model = build(Case({}, visual), head)
            values = sum(int(np.prod(value.shape)) for value in model.parameters())
            trained = sum(
                int(np.prod(value.shape)) for value in model.parameters() if not value.stop_gradient
            )
            print(f"{name} {head}: {values:,} parameters, {trained:,} that are trained")
            del model


if __name__ == "__main__":
    if sys.argv[1:] == ["--count"]:
        count()
    else:
        for chosen in sys.argv[1:] or CASES:
            reference(chosen)

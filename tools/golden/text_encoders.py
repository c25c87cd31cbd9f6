"""Reference outputs of BERT, RoBERTa, ALBERT and ERNIE and of the heads on them, from transformers and from PaddleNLP.

    python tools/golden/text_encoders.py bert_small …          needs: torch, transformers 5
    python tools/golden/text_encoders.py ernie_3_base …        needs: paddlepaddle 2.6, paddlenlp 2.6.1

Weights are drawn from the reference's own names (text_encoders_cases.py), so loading them by name is part of the test.
Stored are the names and shapes of each model, thinned hidden states behind the embeddings and behind every layer, the
pooled output, the same of the last layer where more tokens are hidden, and what the heads give.
Written to tests/golden/data/text_encoders/<case>.npz.

PaddleNLP imports packages for its data sets and servers; what is not installed is replaced by an empty module.
"""

from __future__ import annotations

import importlib.machinery
import sys
import zlib  # noqa: F401  loaded before paddle, whose libraries bring one that crashes Python's
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from text_encoders_cases import CASES, CLASSES, HEADS, Case, drawn, inputs, thin  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "text_encoders"
_UNUSED = (
    "huggingface_hub.utils",
    "colorlog",
    "jieba",
    "sentencepiece",
    "datasets",
    "multiprocess",
    "fastapi",
)
_UNUSED += ("seqeval.metrics.sequence_labeling", "pydantic")


def pretend(name: str) -> None:
    parts = name.split(".")
    for i in range(len(parts)):
        module: Any = MagicMock(__path__=[], __version__="1.0")
        module.__spec__ = importlib.machinery.ModuleSpec(".".join(parts[: i + 1]), None)
        sys.modules.setdefault(".".join(parts[: i + 1]), module)


def from_paddlenlp(case: Case, head: str) -> tuple[dict[str, Any], Callable[..., dict[str, np.ndarray]]]:
    import paddle

    for name in _UNUSED:
        pretend(name)
    from paddlenlp import transformers

    config = getattr(transformers, f"{case.family}Config")(num_labels=CLASSES, **case.settings)
    model = getattr(transformers, case.family + head)(config)
    model.eval()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    state = drawn(case, {n: s for n, s in shapes.items() if not n.endswith("position_ids")})
    model.set_state_dict({name: paddle.to_tensor(value) for name, value in state.items()})

    def run(ids: np.ndarray, types: np.ndarray, mask: np.ndarray, tasks: np.ndarray | None) -> Any:
        named = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask.astype(np.int64)}
        if tasks is not None:
            named["task_type_ids"] = tasks
        given = {name: paddle.to_tensor(value) for name, value in named.items()}
        with paddle.no_grad():
            if head == "Model":
                out = model(**given, output_hidden_states=True, return_dict=True)
                hidden, pooled = out.hidden_states, out.pooler_output
                return {"pooled": pooled.numpy(), **{f"hidden.{i}": h.numpy() for i, h in enumerate(hidden)}}
            out = model(**given)
        return out.numpy() if not isinstance(out, tuple) else np.stack([part.numpy() for part in out], -1)

    return shapes, run


def from_transformers(case: Case, head: str) -> tuple[dict[str, Any], Callable[..., dict[str, np.ndarray]]]:
    import torch
    import transformers

    config = getattr(transformers, f"{case.family}Config")(num_labels=CLASSES, **case.settings)
    config._attn_implementation = "eager"
    if head == "ForQuestionAnswering":
        config.num_labels = 2
    model = getattr(transformers, case.family + head)(config).eval()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    model.load_state_dict({name: torch.from_numpy(value) for name, value in drawn(case, shapes).items()})

    def run(ids: np.ndarray, types: np.ndarray, mask: np.ndarray, tasks: np.ndarray | None) -> Any:
        named = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask.astype(np.int64)}
        if tasks is not None:
            named["task_type_ids"] = tasks
        given = {name: torch.from_numpy(value) for name, value in named.items()}
        with torch.no_grad():
            out = model(**given, output_hidden_states=head == "Model")
        if head == "Model":
            hidden, pooled = out.hidden_states, out.pooler_output
            return {"pooled": pooled.numpy(), **{f"hidden.{i}": h.numpy() for i, h in enumerate(hidden)}}
        if head == "ForQuestionAnswering":
            return np.stack([out.start_logits.numpy(), out.end_logits.numpy()], -1)
        return out.logits.numpy()

    return shapes, run


def reference(name: str) -> None:
    case = CASES[name]
    x = inputs(case)
    tasks = x.tasks if case.settings.get("use_task_id") else None
    stored: dict[str, np.ndarray] = {}
    for head in HEADS:
        shapes, run = (from_paddlenlp if case.library == "paddlenlp" else from_transformers)(case, head)
        keys = "\n".join(f"{key} {'x'.join(map(str, shape))}" for key, shape in sorted(shapes.items()))
        stored[f"keys.{head}"] = np.array(keys.encode())
        if head != "Model":
            stored[head] = run(x.ids, x.types, x.real, None)
            continue
        stored |= run(x.ids, x.types, x.real, tasks)
        holes = run(x.ids, x.types, x.holes, tasks)
        last = max(int(key.partition(".")[2]) for key in holes if key.startswith("hidden."))
        stored |= {"holes.hidden": holes[f"hidden.{last}"], "holes.pooled": holes["pooled"]}
    for key, value in stored.items():
        if not key.startswith("keys."):
            print(
                f"{name:20} {key:26} {value.shape!s:16} max {np.abs(value).max():.3f} std {value.std():.4f}"
            )
            stored[key] = thin(value)
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT / f"{name}.npz", **stored)  # type: ignore[arg-type]


if __name__ == "__main__":
    for chosen in sys.argv[1:]:
        reference(chosen)

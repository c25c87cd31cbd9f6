"""Networks of PaddleRec: cases that tests/golden/test_recommendation.py runs too, and what the reference gives.

    python -m tools.golden recommendation --path CHECKOUT        with PaddleRec's folder, by Paddle's interpreter

Nothing above `files` needs paddle or our packages.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden.network import import_paddle, named_weights

Arrays = dict[str, np.ndarray]
FILE = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "recommendation.npz"
BATCH, ROWS = 6, 211
_CLICKS = (ROWS, 5, 13, 26)
_SIZES = {"sparse_feature_number": ROWS, "sparse_feature_dim": 5}


@dataclass(frozen=True)
class Case:
    """A network of PaddleRec.

    Attributes:
        net: Its folder and class.
        args: Of the class.
        model: Ours, by name, with the settings of its config besides `paddlerec`.
        inputs: clicks (26 ids, 13 numbers), weighted (39 ids with weights), numbers (499), slots (23 fields of 3 ids),
            history (items, categories, and those of the target), pairs (user, item), bags (counts of a query and of an
            answer).
        probability: Whether the output is one, of the second class where there are two; else logits.
    """

    net: str
    args: Sequence[Any]
    model: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: str = "clicks"
    probability: bool = True


CASES = {
    "lr": Case("rank/logistic_regression:LRLayer", (ROWS - 1, 1e-4, 1e-3, 39), "LR",
               {"sparse_feature_number": ROWS - 1}, "weighted"),
    "fm": Case("rank/fm:FMLayer", _CLICKS, "FM", _SIZES),
    "ffm": Case("rank/ffm:FFMLayer", (ROWS, 5, 13, 39), "FFM", _SIZES),
    "deepfm": Case("rank/deepfm:DeepFMLayer", (*_CLICKS, [24, 16]), "DeepFM", {**_SIZES, "fc_sizes": (24, 16)}),
    "wide_deep": Case("rank/wide_deep:WideDeepLayer", (*_CLICKS, [24, 16]), "WideDeep",
                      {**_SIZES, "fc_sizes": (24, 16)}),
    "dcn": Case("rank/dcn:DeepCroLayer", (*_CLICKS, [24, 16], 2, 10.0, 1e-5, False), "DCN",
                {**_SIZES, "fc_sizes": (24, 16)}),
    "dcn_v2_matrix": Case("rank/dcn_v2:DCN_V2Layer", (*_CLICKS, [24, 16], 2, False, False, 4, 3), "DCNv2",
                          {**_SIZES, "fc_sizes": (24, 16), "is_Stacked": False, "use_low_rank_mixture": False}),
    "dcn_v2_mix": Case("rank/dcn_v2:DCN_V2Layer", (*_CLICKS, [24, 16], 2, True, True, 4, 3), "DCNv2",
                       {**_SIZES, "fc_sizes": (24, 16), "low_rank": 4, "num_experts": 3}),
    "xdeepfm": Case("rank/xdeepfm:xDeepFMLayer", (*_CLICKS, [7, 6], [24, 16]), "XDeepFM",
                    {**_SIZES, "layer_sizes_cin": (7, 6), "layer_sizes_dnn": (24, 16)}),
    "autoint": Case("rank/autoint:AutoInt", (ROWS, 6, [24, 16], True, True, True, True, 2, 39, [8, 12]), "AutoInt",
                    {"sparse_feature_number": ROWS, "embedding_dim": 6, "fc_sizes": (24, 16), "use_wide": True,
                     "attn_layer_sizes": (8, 12)}, "weighted"),
    "dlrm": Case("rank/dlrm:DLRMLayer", (13, [24, 5], ROWS, 5, [16, 2], 26), "DLRM",
                 {**_SIZES, "bot_layer_sizes": (24, 5), "top_layer_sizes": (16, 2)}, probability=False),
    "din": Case("rank/din:DINLayer", (6, 4, "sigmoid", False, True, ROWS, 31), "DIN",
                {"item_count": ROWS, "cat_count": 31, "item_emb_size": 6, "cat_emb_size": 4}, "history", False),
    "mmoe": Case("multitask/mmoe:MMoELayer", (499, 3, 8, 6, 2), "MMoE",
                 {"expert_num": 3, "expert_size": 8, "tower_size": 6}, "numbers"),
    "ple": Case("multitask/ple:PLELayer", (499, 2, 3, 2, 8, 6, 2), "PLE",
                {"level_number": 2, "expert_size": 8, "tower_size": 6}, "numbers"),
    "esmm": Case("multitask/esmm:ESMMLayer", (ROWS, 5, 23, [16], [16]), "ESMM",
                 {**_SIZES, "ctr_fc_sizes": (16,), "cvr_fc_sizes": (16,)}, "slots"),
    "neumf": Case("recall/ncf:NCF_NeuMF_Layer", (50, 60, 8, [64, 32, 16, 8]), "NeuMF",
                  {"num_users": 50, "num_items": 60}, "pairs"),
    "dssm": Case("match/dssm:DSSMLayer", (40, 1, BATCH, [16, 12, 8], ["relu"] * 3), "DSSM",
                 {"num_items": 39, "fc_sizes": (16, 12, 8), "fc_acts": ("relu",) * 3}, "bags", False),
}  # fmt: skip


def inputs(kind: str) -> Arrays:
    """`sparse`, `dense` and, of weighted ids, `weight`: the arrays of a batch."""
    rng = np.random.RandomState(3)
    if kind == "bags":
        return {name: rng.poisson(0.4, (BATCH, 40)).astype(np.float32) for name in ("query", "answer")}
    dense = rng.uniform(-1, 1, (BATCH, {"clicks": 13, "numbers": 499}.get(kind, 0))).astype(np.float32)
    shape = {
        "clicks": (26,),
        "weighted": (39,),
        "numbers": (0,),
        "slots": (23, 3),
        "history": (4, 7),
        "pairs": (2,),
    }
    sparse = rng.randint(0, 31 if kind == "history" else 50, (BATCH, *shape[kind]))
    if kind == "weighted":
        return {
            "sparse": sparse,
            "dense": dense,
            "weight": rng.uniform(0.2, 1, (BATCH, 39)).astype(np.float32),
        }
    if kind == "history":  # padding is row 0 of items and of categories, and no other
        sparse = np.maximum(sparse, 1)
        sparse[:, :2] *= np.arange(7) < np.array((7, 5, 3, 1, 6, 7))[:, None, None]
    return {"sparse": sparse, "dense": dense}


def first_name(name: str) -> str:
    """The first name of a layer that a network holds twice."""
    name = name.replace("cnn_fc", "cin_linear")
    return re.sub(r"^(lev_\d+)\._param_gate_shared", r"\1.\1_gate_shared_", name)


def drawn(shapes: Mapping[str, tuple[int, ...]]) -> Arrays:
    """Weights from names; the vectors of tables are of about the size .5, so that their products count."""
    values = named_weights(shapes)
    for name, value in values.items():
        if re.search(r"embedding|_emb_attr|feature_bias|Embedding|item_b_attr", name):
            scale = 0.5 / max(float(value.std()), 1e-6)
            values[name] = (value * np.float32(scale)).astype(np.float32)
    return values


def files(name: str, cases: Sequence[str]) -> Iterator[tuple[Path, Arrays]]:
    """The one file of all cases: names and shapes, the number of values, and outputs [tasks, N]."""
    paddle = import_paddle()
    paddle.disable_signal_handler()
    arrays: Arrays = {}
    for key, case in CASES.items():
        with paddle.utils.unique_name.guard():  # nets name their tables alike
            net = _load(case.net)(*case.args)
        net.eval()
        state = {name: tuple(value.shape) for name, value in net.state_dict().items()}
        values = drawn({first_name(name): shape for name, shape in state.items()})
        net.set_state_dict({name: paddle.to_tensor(values[first_name(name)]) for name in state})
        if key == "din":  # whose attention has no names in its state
            extra = {
                f"attention.linear_{k}.{part}": tuple(getattr(layer, part).shape)
                for k, layer in enumerate(net.attention_layer[::2])
                for part in ("weight", "bias")
            }
            for name, value in drawn(extra).items():
                number, leaf = int(name.split("_")[1][0]), name.rpartition(".")[2]
                getattr(net.attention_layer[2 * number], leaf).set_value(paddle.to_tensor(value))
            state |= extra
        outputs = _run(paddle, net, case)
        rows = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(state.items()))
        arrays[f"{key}.keys"] = np.array(rows.encode())
        arrays[f"{key}.outputs"] = outputs
    yield FILE, arrays


def _load(net: str) -> Any:
    folder, _, name = net.partition(":")
    root = next(Path(path) for path in sys.path if (Path(path) / "models" / "rank").is_dir())
    spec = importlib.util.spec_from_file_location("rec_net", root / "models" / folder / "net.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _run(paddle: Any, net: Any, case: Case) -> np.ndarray:
    """Probabilities [tasks, N], or of the DLRM and DIN logits."""
    arrays = {name: paddle.to_tensor(value) for name, value in inputs(case.inputs).items()}
    if case.inputs == "bags":
        with paddle.no_grad():
            return net([arrays["query"], arrays["answer"]], True)[0].numpy().reshape(1, -1)
    sparse, dense = arrays["sparse"], arrays["dense"]
    with paddle.no_grad():
        if case.inputs == "weighted":
            out = net(sparse, arrays["weight"])
        elif case.inputs == "numbers":
            return np.stack([one.numpy()[:, 1] for one in net(dense)])
        elif case.inputs == "slots":
            out = net([sparse[:, k] for k in range(sparse.shape[1])])
            return np.stack([out[1].numpy()[:, 0], out[3].numpy()[:, 0]])
        elif case.inputs == "history":
            items, cats, item, cat = sparse[:, 0], sparse[:, 1], sparse[:, 2, 0], sparse[:, 3, 0]
            mask = paddle.where(items > 0, paddle.zeros_like(items), -(10**9) * paddle.ones_like(items))
            width = items.shape[1]
            out = net(
                items,
                cats,
                item,
                cat,
                None,
                mask.unsqueeze(2),
                item.unsqueeze(1).tile([1, width]),
                cat.unsqueeze(1).tile([1, width]),
            )
        elif case.inputs == "pairs":
            out = net([sparse[:, :1], sparse[:, 1:], None])
        else:
            out = net([sparse[:, k : k + 1] for k in range(26)], dense)
    out = (out[0] if isinstance(out, (tuple, list)) else out).numpy()
    return (out[:, 1] - out[:, 0] if out.shape[1] == 2 else out[:, 0])[None]

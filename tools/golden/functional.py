"""Makes tests/golden/data/functional/*.npz: what Paddle computes for the cases in functional_cases.py and
functional_more_cases.py.

Run it from the root of the repository in an environment with paddlepaddle and numpy (no jax, none of our code): 2.6.2,
or 3.3.1 for the groups that end in _v3.

    python tools/golden/functional.py [group ...]

Each file holds one group of cases: outputs and gradients in float32, channels-last. Inputs are not stored.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import functional_cases
import numpy as np
import paddle  # type: ignore[import-not-found]
from functional_cases import Case, derived
from functional_more_cases import more_cases

F = paddle.nn.functional
CASES = [*functional_cases.CASES, *more_cases(functional_cases)]
OUTPUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "functional"


def channels_first(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(array, -1, 1)) if array.ndim > 2 else array


def channels_last(array: np.ndarray) -> np.ndarray:
    return np.moveaxis(array, 1, -1) if array.ndim > 2 else array


def build_layer(case: Case) -> Any:
    *wrappers, name = case.op.split(":")[1:]
    layer = getattr(paddle.nn, name)(**case.options)
    for wrapper in wrappers:
        layer = getattr(paddle.nn.utils, wrapper)(layer)
    values = {key: derived(case.name, key, tuple(v.shape), 0.5) for key, v in layer.state_dict().items()}
    aliases = {key: value for key, value in values.items() if not key[0].isdigit()}
    for key, value in aliases.items():
        if key.endswith(("_variance", "weight_g")):
            value[...] = np.abs(value) + 0.5
    state = layer.state_dict()
    for key, value in aliases.items():
        state[key].set_value(value)
    return layer


def run_layer(case: Case, inputs: dict[str, Any]) -> list[Any]:
    layer = build_layer(case)
    inputs = dict(inputs)
    first = inputs.pop("x")
    if case.op.endswith("BatchNorm2D"):
        out = layer(first)
        return [out, layer._mean, layer._variance]
    out = layer(first, *(inputs.pop(k) for k in ("key", "value", "memory", "tgt") if k in inputs), **inputs)
    flat: list[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, (tuple, list)):
            for part in value:
                collect(part)
        else:
            flat.append(value)

    collect(out)
    return flat


def run(case: Case, inputs: dict[str, Any]) -> list[Any]:
    """The outputs of one case, images still channels-first."""
    options = dict(case.options)
    if case.op.startswith("layer:"):
        return run_layer(case, inputs)
    if case.op == "batch_norm":
        mean, variance = inputs["running_mean"].clone(), inputs["running_var"].clone()
        y = F.batch_norm(inputs["x"], mean, variance, inputs["weight"], inputs["bias"], **options)
        return [y, mean, variance]
    if case.op == "affine_grid":
        n, h, w, c = options.pop("out_shape")
        return [F.affine_grid(inputs["theta"], [n, c, h, w], **options)]
    if case.op == "unfold":
        return [F.unfold(inputs["x"], **options).transpose([0, 2, 1])]
    if case.op == "fold":
        return [F.fold(inputs["x"].transpose([0, 2, 1]), **options)]
    if case.op == "ctc_loss":
        out = F.ctc_loss(**inputs, **options)
        return [out.reshape([-1]) if options.get("reduction") == "none" else out]
    if case.op == "cross_entropy" and options.get("label_smoothing") and options.get("reduction") == "none":
        return [F.cross_entropy(**inputs, **options)[:, 0]]  # ours keeps the label's shape
    if case.op == "group_norm":
        numbers = options.get("epsilon", 1e-5), options["num_groups"], "NCHW"
        return [paddle._C_ops.group_norm(inputs["x"], inputs["weight"], inputs["bias"], *numbers)]
    if case.op == "rnnt_loss":  # its kernel for the CPU takes log-probabilities, that for a GPU logits
        inputs["input"] = F.log_softmax(inputs["input"])
    if case.op == "hsigmoid_loss":  # counts log 2 for every step that a path is shorter than the longest
        out = F.hsigmoid_loss(**inputs, **options)
        paths = inputs["path_table"].numpy() if "path_table" in inputs else None
        leaves = inputs["label"].numpy()[:, 0] + options["num_classes"]
        lengths = [int(n).bit_length() - 1 for n in leaves] if paths is None else (paths >= 0).sum(1)
        longest = paths.shape[1] if paths is not None else (2 * options["num_classes"] - 1).bit_length() - 1
        unused = longest - np.asarray(lengths, "float32")
        return [out - paddle.to_tensor(unused[:, None] * np.float32(np.log(2)))]
    if case.op in ("pad", "interpolate"):
        options["data_format"] = {3: "NCL" if case.op == "pad" else "NCW", 4: "NCHW", 5: "NCDHW"}[
            inputs["x"].ndim
        ]
    if case.op == "prelu":
        return [F.prelu(inputs["x"], inputs["weight"])]
    positional = [inputs.pop(k) for k in list(inputs) if k in ("x", "x1", "x2")]
    out = getattr(F, case.op)(*positional, **inputs, **options)
    return list(out) if isinstance(out, (list, tuple)) else [out]


def record(case: Case) -> dict[str, np.ndarray]:
    tensors = {}
    for name, value in case.inputs().items():
        if case.arrays[name].image:
            value = channels_first(value)
        tensors[name] = paddle.to_tensor(value, stop_gradient=not case.arrays[name].grad)
    leaves = dict(tensors)
    outputs = run(case, tensors)
    stored, total = {}, None
    for i, out in enumerate(outputs):
        value = out.numpy()
        last = channels_last(value) if case.image_out else value
        stored[f"{case.name}/out{i}"] = last
        if not out.stop_gradient and out.is_floating_point() and case.differentiated:
            cotangent = case.cotangent(i, last.shape)
            part = (out * paddle.to_tensor(channels_first(cotangent) if case.image_out else cotangent)).sum()
            total = part if total is None else total + part
    if total is not None:
        total.backward()
        for name in case.differentiated:
            gradient = leaves[name].grad
            value = np.zeros(leaves[name].shape, np.float32) if gradient is None else gradient.numpy()
            stored[f"{case.name}/grad/{name}"] = channels_last(value) if case.arrays[name].image else value
    return {k: np.asarray(v, np.float32) for k, v in stored.items()}


def main(groups: list[str]) -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for group in groups or sorted({case.group for case in CASES if not case.group.endswith("_v3")}):
        stored: dict[str, np.ndarray] = {}
        for case in CASES:
            if case.group == group:
                stored |= record(case)
        np.savez_compressed(OUTPUT / f"{group}.npz", **stored)  # type: ignore[arg-type]
        size = (OUTPUT / f"{group}.npz").stat().st_size
        print(f"{group}: {len(stored)} arrays, {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(sys.argv[1:])

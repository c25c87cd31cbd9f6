"""A network of a reference as a row says: built, given weights drawn from names, run, its outputs thinned.

A row stands in references.yml, or in the table REFERENCES of a golden test. Its keys:

    call, args, options   what makes the model, and its arguments; `{call: …}` among them is made first
    parts                 in place of these, for Paddle: {attribute: {call: …}…}, see `assemble`
    run                   a function (reference, row) -> arrays in place of the default; `row` may hold settings of it
    stages                sublayers whose outputs are stored; a dict {ours: theirs} where names differ
    eval                  name of the outputs in evaluation, "eval.{}" for all by number
    train                 whether outputs in training are stored, too, or on how many images
    size_hw, images       of images or text lines, and how many: noise whose contrast differs; see `inputs` for others
    gain, gain_of         factor of kernels, or [of depthwise ones, of others]; the prefix of those that it is for
    scale, add            {regex: factor}; {regex: [index, summand]} of other entries
    fill                  false where `run` gives the model its weights
    as_dict               true where the model takes {"image": …}
    weights               a function (drawn weights, model) -> weights, where these do not do
    constant              regex of entries that stay as the library makes them
    shared                "last": an array of several names has the values of the last, not of the first as in files
    names                 [[regex, replacement]…] from the library's names to those that weights are drawn from
    keys                  names and shapes to store: "own", "drawn" (those above), "torch" (own, torch's shapes, T
                          behind transposed matrices) or "" for none
    tokens, channels_last outputs [N, T, C] as [N, C, T]; [N, H, W, C] as [N, C, H, W]
    kept, exact           how many values of each output are stored; names of outputs that are stored whole
    save                  of count (trained values), gain
    torch, file, print    true for models of torch; the file under tests/golden/data; true where `run` prints alone
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.golden.thinning import KEPT, images, soft_images, thin

Row = Mapping[str, Any]
Arrays = dict[str, np.ndarray]
UNUSED = (
    *(
        "prettytable",
        "psutil",
        "imgaug.augmenters",
        "imgaug.augmentables.lines",
        "imgaug.augmentables.segmaps",
    ),
    *(
        "lap",
        "motmetrics",
        "cython_bbox",
        "pandas",
        "jieba",
        "colorlog",
        "faiss",
        "aistudio_sdk.hub",
        "datasets",
    ),
    *(
        "multiprocess",
        "fastapi",
        "pydantic",
        "seqeval.metrics.sequence_labeling",
        "huggingface_hub.utils",
        "sentencepiece",
    ),
)
MAKES = ("call", "args", "options")
TORCH_LEAVES = (("running_mean$", "_mean"), ("running_var$", "_variance"))


def load_file(path: Path, name: str) -> Any:
    """A module by its path."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# By its path: its package needs jax. It imports zlib, which has to come before Paddle's own.
_INTEROP = Path(__file__).resolve().parents[2] / "framework" / "interop"
named_weights = load_file(_INTEROP / "named_weights.py", "golden_named_weights").named_weights


def find(path: str) -> Any:
    """What a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def make(value: Any) -> Any:
    """A value of a row, with every `{call: …}` in it called."""
    if isinstance(value, Mapping):
        if "call" in value:
            function = find(value["call"])
            return function(*make(value.get("args", [])), **make(value.get("options", {})))
        return {key: make(item) for key, item in value.items()}
    return [make(item) for item in value] if isinstance(value, list) else value


def assemble(parts: Mapping[str, Row]) -> Any:
    """A Paddle network of parts in their order; `=backbone.out_channels` is an argument that a part before it has, and
    `=backbone.out_shape.*.channels` a list of such. A dotted name makes the layer that holds it, too."""
    layer = import_paddle().nn.Layer

    class Network(layer):
        def forward(self, x: Any) -> Any:
            for name in parts:
                x = getattr(self, name)(x)
            return x

    network = Network()

    def resolved(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("="):
            found = network
            path, star, rest = value[1:].partition(".*.")
            for name in path.split("."):
                found = getattr(found, name)
            return [getattr(item, rest) for item in found] if star else found
        if isinstance(value, Mapping):
            return {key: resolved(item) for key, item in value.items()}
        return [resolved(item) for item in value] if isinstance(value, list) else value

    for name, row in parts.items():
        owner, _, last = name.rpartition(".")
        if owner:
            setattr(network, owner, layer())
        setattr(getattr(network, owner) if owner else network, last, make(resolved(row)))
    return network


def spell(shapes: Mapping[str, tuple[int, ...]]) -> np.ndarray:
    """Names with their shapes as bytes, a line each, which compress better than an array of texts."""
    return np.array("\n".join(f"{key} {'x'.join(map(str, shapes[key]))}" for key in sorted(shapes)).encode())


def flatten(value: Any) -> list[Any]:
    """The arrays of nested outputs, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten(item)]
    return [] if value is None else [value]


def import_paddle() -> Any:
    """paddle, after what does not load behind it; what its suites import and no network needs may be missing."""
    for name in ("sklearn", "cv2", "PIL.Image"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    paddle = importlib.import_module("paddle")
    for name in UNUSED:
        pretend(name)
    return paddle


def import_torch() -> Any:
    """torch, and torchvision where it is built for another one: the operators that it misses no network needs."""
    torch = importlib.import_module("torch")
    try:
        importlib.import_module("torchvision")
    except (RuntimeError, AttributeError):
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        torch.torchvision_operators = library  # it ends with its library
        importlib.import_module("torchvision")
    except ImportError:
        pass
    return torch


def pretend(name: str) -> None:
    """Have an empty module under this name, and packages over it, where there is none."""
    parts = name.split(".")
    for path in (".".join(parts[: i + 1]) for i in range(len(parts))):
        try:
            importlib.import_module(path)
        except Exception:  # whatever a release that does not fit raises
            module: Any = mock.MagicMock(__path__=[], __version__="1.0")
            module.__spec__ = importlib.machinery.ModuleSpec(path, None)
            sys.modules[path] = module


def numpy_of(value: Any) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value
    return value.detach().numpy() if hasattr(value, "detach") and hasattr(value, "cpu") else value.numpy()


class Reference:
    """A model of Paddle or torch: names of its state, weights by these, hooks, calls without gradients."""

    def __init__(self, model: Any, row: Row) -> None:
        self.model, self.row = model, row
        self.is_torch = any(kind.__module__.startswith("torch.") for kind in type(model).__mro__)
        self.library = importlib.import_module("torch") if self.is_torch else import_paddle()
        self.state = dict(model.state_dict())
        constant = row.get("constant")
        self.own = {
            name: self._shape(name)
            for name in self.state
            if not (self.is_torch and name.endswith("num_batches_tracked"))
        }
        self.names = {
            name: self._spelled(name) for name in self.own if not (constant and re.search(constant, name))
        }

    @functools.cached_property
    def transposed(self) -> set[str]:
        """Matrices that torch has the other way round."""
        if not self.is_torch:
            return set()
        linear = self.library.nn.Linear
        found = {f"{name}.weight" for name, part in self.model.named_modules() if isinstance(part, linear)}
        return found | {name for name in self.state if name.endswith("in_proj_weight")}

    def _shape(self, name: str) -> tuple[int, ...]:
        shape = tuple(self.state[name].shape)
        return shape[::-1] if name in self.transposed else shape

    def _spelled(self, name: str) -> str:
        if not self.is_torch and self.row.get("shared") != "last":
            name = self.first.get(id(self.state[name]), name)
        for pattern, other in (*(TORCH_LEAVES if self.is_torch else ()), *self.row.get("names", ())):
            name = re.sub(pattern, other, name)
        return re.sub(r"@(\d+)([+-]\d+)", lambda match: str(int(match[1]) + int(match[2])), name)

    @functools.cached_property
    def first(self) -> dict[int, str]:
        """Of each array the first of its names; those of recurrent cells come last."""
        found: dict[int, str] = {}
        for name in sorted(self.state, key=lambda name: ".cell_" in name):
            found.setdefault(id(self.state[name]), name)
        return found

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """By the names that weights are drawn from."""
        return {drawn: self.own[name] for name, drawn in reversed(self.names.items())}

    def keys(self) -> np.ndarray:
        if self.row.get("keys") == "torch":
            rows = {name: "x".join(map(str, value.shape)) for name, value in self.state.items()}
            marks = {name: "T" if name in self.transposed else "-" for name in rows}
            return np.array("\n".join(f"{name} {rows[name]} {marks[name]}" for name in rows).encode())
        return spell(self.shapes if self.row.get("keys") == "drawn" else self.own)

    def count(self) -> int:
        """Values that are trained."""
        if self.is_torch:
            return sum(p.numel() for p in self.model.parameters() if p.requires_grad)
        return sum(int(np.prod(p.shape)) for p in self.model.parameters() if not p.stop_gradient)

    def drawn(self) -> Arrays:
        """The weights that the row asks for, by drawn names."""
        row, drawn = self.row, named_weights(self.shapes)
        for pattern, factor in row.get("scale", {}).items():
            for name in filter(re.compile(pattern).search, drawn):
                drawn[name] = drawn[name] * np.float32(factor)
        gain, only = row.get("gain", 1.0), row.get("gain_of", "")
        depthwise, full = gain if isinstance(gain, list) else (gain, gain)
        for name, value in drawn.items():
            if value.ndim == 4 and name.startswith(only):
                drawn[name] = (depthwise if value.shape[1] == 1 else full) * value
        for pattern, (index, summand) in row.get("add", {}).items():
            for name in filter(re.compile(pattern).search, drawn):
                drawn[name][index] += summand
        return find(row["weights"])(drawn, self) if "weights" in row else drawn

    def fill(self, drawn: Arrays | None = None) -> None:
        """Give the model its weights."""
        drawn = self.drawn() if drawn is None else drawn
        values = {name: drawn[theirs] for name, theirs in self.names.items()}
        if self.is_torch:
            for name, value in values.items():
                value = value.T if name in self.transposed else value
                self.state[name] = self.library.from_numpy(np.ascontiguousarray(value))
            self.model.load_state_dict(self.state)
        else:
            self.model.set_state_dict({name: self.library.to_tensor(v) for name, v in values.items()})

    def watch(self, found: Arrays, names: Any = None) -> list[Any]:
        """Have the outputs of sublayers put into `found`; returns the hooks."""
        names = self.row.get("stages", ()) if names is None else names
        layers = dict(self.model.named_modules() if self.is_torch else self.model.named_sublayers())

        def keep(name: str) -> Callable[..., None]:
            def hook(layer: Any, args: Any, out: Any) -> None:
                many = isinstance(out, (list, tuple))
                found.update(
                    {f"{name}.{i}" if many else name: self._laid(x) for i, x in enumerate(flatten(out))}
                )

            return hook

        pairs = names.items() if isinstance(names, Mapping) else zip(names, names)
        method = "register_forward_hook" if self.is_torch else "register_forward_post_hook"
        return [getattr(layers[theirs], method)(keep(ours)) for ours, theirs in pairs]

    def _laid(self, out: Any) -> np.ndarray:
        array = numpy_of(out)
        if self.row.get("tokens") and array.ndim == 3:
            return array.swapaxes(1, 2)
        return array.transpose(0, 3, 1, 2) if self.row.get("channels_last") and array.ndim == 4 else array

    def tensor(self, array: np.ndarray) -> Any:
        return self.library.from_numpy(array) if self.is_torch else self.library.to_tensor(array)

    def __call__(self, x: Any, call: Any = None) -> list[np.ndarray]:
        """The outputs of `call`, of the model, without gradients."""
        x = self.tensor(x) if isinstance(x, np.ndarray) else x
        with self.library.no_grad():
            return [numpy_of(out) for out in flatten((call or self.model)(make_input(self.row, x)))]

    def train(self) -> None:
        """Training, but for dropout."""
        self.model.train()
        for layer in self.model.sublayers():
            if "Drop" in type(layer).__name__:
                layer.eval()


def make_input(row: Row, x: Any) -> Any:
    """PaddleDetection's backbones take a dict."""
    return {"image": x} if row.get("as_dict") else x


def inputs(row: Row, count: int | None = None) -> np.ndarray:
    """What a row is run on: images [N, C, H, W] of `noise` ([N, C, H, W]), `uniform`, `soft` or `size_hw`, or the ids
    [N, T] of tokens or words (`ids`: [vocabulary, N, T]); all with `seed`."""
    rng = np.random.RandomState(row.get("seed", 7))
    if "ids" in row:
        vocabulary, *shape = row["ids"]
        return rng.randint(0, vocabulary, shape).astype(np.int64)
    if "noise" in row:
        return rng.standard_normal(row["noise"]).astype(np.float32)
    if "uniform" in row:
        return rng.uniform(0, 1, row["uniform"]).astype(np.float32)
    if "soft" in row:
        return soft_images(tuple(row["soft"]))
    return images({**row, **({} if count is None else {"images": count})})


def run_default(reference: Reference, row: Row) -> Arrays:
    """Stages and outputs in evaluation, and where the row says so outputs in training."""
    found: Arrays = {}
    hooks = reference.watch(found)
    reference.model.eval()
    x = inputs(row)
    outputs = reference(x)
    for hook in hooks:
        hook.remove()
    found |= named(row.get("eval"), outputs)
    if row.get("train"):
        reference.train()
        many = row["train"] if isinstance(row["train"], int) and row["train"] is not True else None
        found |= named("train.{}", reference(inputs(row, many)))
    return found


def named(name: str | None, outputs: list[np.ndarray]) -> Arrays:
    """Outputs by number, or the first alone under a name without a number."""
    if not name:
        return {}
    return {name.format(i): out for i, out in enumerate(outputs if "{" in name else outputs[:1])}


def reference_arrays(row: Row) -> Arrays:
    """What a row's file holds."""
    if not row.get("call") and "parts" not in row:
        return find(row["run"])(None, row)
    import_torch() if row.get("torch") else import_paddle()
    model = assemble(row["parts"]) if "parts" in row else make({k: row[k] for k in MAKES if k in row})
    reference = Reference(model, row)
    stored: Arrays = {}
    keys = row.get("keys", "own")
    if keys:
        stored["keys"] = reference.keys()
    if "count" in row.get("save", ()):
        stored["count"] = np.array(reference.count())
    if "gain" in row.get("save", ()):
        stored["gain"] = np.float32(row["gain"])
    if row.get("run") == "names":
        return stored
    if row.get("fill", True):
        reference.fill()
    run = find(row["run"]) if "run" in row else run_default
    found = run(reference, row)
    for key, out in found.items():
        whole = out.dtype != np.float32 or not out.ndim or key in row.get("exact", ())
        stored[key] = out if whole else thin(out, row.get("kept", KEPT))
    return stored

"""Reference outputs of the PP-OCRv6 networks, from the rapidocr package.

    python tools/golden/pp_ocrv6.py        needs: pip install rapidocr torch onnxruntime

<variant>.npz: the PyTorch port. Every entry of the state dict is drawn from its Paddle name
(framework/interop/named_weights.py); each stage's output, NCHW, is thinned to a few values. The names and shapes of the
state dict are in it too.
nrtr.npz: torch.nn.TransformerDecoder as the decoder of NRTR, whose names are written out here.
official_small.npz: the official small detector and recogniser as ONNX, run on a line of text drawn here.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import rapidocr
import torch
import yaml
from rapidocr.inference_engine.pytorch.networks.architectures.base_model import BaseModel

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from framework.interop.named_weights import named_weights

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "pp_ocrv6"
DET_STAGES = ("stem", "blocks_s1", "blocks_s2", "blocks_s3", "blocks_s4")
REC_STAGES = ("conv1", "blocks2", "blocks3", "blocks4", "blocks5")
KEPT = 160  # values of each stage


def thin(array: np.ndarray) -> np.ndarray:
    flat = array.reshape(-1)
    return flat[:: -(-flat.size // KEPT)].astype(np.float32)


def paddle_names(model: torch.nn.Module) -> dict[str, tuple[str, bool]]:
    """Torch name -> (Paddle name, whether a linear weight is stored transposed)."""
    linear = {f"{name}.weight" for name, m in model.named_modules() if isinstance(m, torch.nn.Linear)}
    return {
        name: (name.replace("running_mean", "_mean").replace("running_var", "_variance"), name in linear)
        for name in model.state_dict()
        if not name.endswith("num_batches_tracked")
    }


def fill(model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Load named weights; returns the shapes by Paddle name."""
    state, names = model.state_dict(), paddle_names(model)
    shapes = {
        paddle: tuple(state[name].shape[::-1] if transposed else state[name].shape)
        for name, (paddle, transposed) in names.items()
    }
    weights = named_weights(shapes)
    for name, (paddle, transposed) in names.items():
        value = weights[paddle].T if transposed else weights[paddle]
        state[name] = torch.from_numpy(np.ascontiguousarray(value))
    model.load_state_dict(state)
    return shapes


def reference(variant: str) -> None:
    folder = Path(rapidocr.__file__).parent / "inference_engine" / "pytorch" / "networks"
    configs = yaml.safe_load((folder / "arch_config.yaml").read_text(encoding="utf-8"))
    size, task = variant.split("_")[1:]
    model = BaseModel(copy.deepcopy(configs[f"PP-OCRv6_{task}_{size}"])).eval()
    shapes = fill(model)
    watched = [f"backbone.{name}" for name in (DET_STAGES if task == "det" else REC_STAGES)]
    watched += ["neck", "head.binarize"] if task == "det" else ["head.ctc_encoder"]
    if task == "rec":
        watched.append("head.ctc_head.fc2" if size == "tiny" else "head.ctc_head.fc")
    stages: dict[str, np.ndarray] = {}
    for name in watched:
        hook = lambda _, args, out, name=name: stages.__setitem__(name, out.numpy())  # noqa: E731
        model.get_submodule(name).register_forward_hook(hook)
    shape = (1, 3, 64, 96) if task == "det" else (2, 3, 48, 96)
    image = np.random.RandomState(6).standard_normal(shape).astype(np.float32)
    with torch.no_grad():
        model(torch.from_numpy(image))
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in sorted(shapes.items()))
    for name, out in stages.items():
        print(
            f"{variant:24} {name:20} {out.shape!s:20} mean |x| {np.abs(out).mean():.4f}, max {out.max():.4f}"
        )
    thinned = {name: thin(out) for name, out in stages.items()}
    OUT.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT / f"{variant}.npz", keys=np.array(keys.encode()), **thinned)


def decoder(dims: int = 64, depth: int = 2, total: int = 14) -> None:
    """Logits of a decoder of post-norm blocks under a causal mask, on a given memory."""
    layer = torch.nn.TransformerDecoderLayer(dims, dims // 32, 4 * dims, 0.0, batch_first=True)
    stack = torch.nn.TransformerDecoder(layer, depth).eval()

    def made(name: str, *shape: int) -> torch.Tensor:
        return torch.from_numpy(named_weights({name: shape})[name])

    state = {}
    for i in range(depth):
        ours, theirs = f"decoder.{i}", f"layers.{i}"
        both = [
            made(f"{ours}.cross_attn.q.weight", dims, dims),
            made(f"{ours}.cross_attn.kv.weight", dims, 2 * dims),
        ]
        biases = [made(f"{ours}.cross_attn.q.bias", dims), made(f"{ours}.cross_attn.kv.bias", 2 * dims)]
        state[f"{theirs}.multihead_attn.in_proj_weight"] = torch.cat(both, 1).T
        state[f"{theirs}.multihead_attn.in_proj_bias"] = torch.cat(biases)
        state[f"{theirs}.self_attn.in_proj_weight"] = made(f"{ours}.self_attn.qkv.weight", dims, 3 * dims).T
        state[f"{theirs}.self_attn.in_proj_bias"] = made(f"{ours}.self_attn.qkv.bias", 3 * dims)
        linears = {
            "self_attn.out_proj": ("self_attn.out_proj", dims, dims),
            "cross_attn.out_proj": ("multihead_attn.out_proj", dims, dims),
            "mlp.fc1": ("linear1", dims, 4 * dims),
            "mlp.fc2": ("linear2", 4 * dims, dims),
        }
        for name, (other, rows, columns) in linears.items():
            state[f"{theirs}.{other}.weight"] = made(f"{ours}.{name}.weight", rows, columns).T
            state[f"{theirs}.{other}.bias"] = made(f"{ours}.{name}.bias", columns)
        for norm in ("norm1", "norm2", "norm3"):
            for end in ("weight", "bias"):
                state[f"{theirs}.{norm}.{end}"] = made(f"{ours}.{norm}.{end}", dims)
    stack.load_state_dict(state)

    tokens = torch.tensor([[2, 5, 9, 13, 3, 0], [2, 7, 3, 0, 0, 0]])
    memory = torch.from_numpy(np.random.RandomState(6).standard_normal((2, 9, dims)).astype(np.float32))
    table = made("embedding.embedding.weight", total, dims)
    rows = torch.nn.functional.embedding(tokens[:, :-1], table) * (tokens[:, :-1, None] != 0) * dims**0.5
    angle = torch.arange(5)[:, None] / 10000 ** (torch.arange(0, dims, 2) / dims)
    rows[..., 0::2] += torch.sin(angle)
    rows[..., 1::2] += torch.cos(angle)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    with torch.no_grad():
        out = stack(rows, memory, tgt_mask=mask) @ made("tgt_word_prj.weight", dims, total)
    print("nrtr", tuple(out.shape), "mean |x|", float(out.abs().mean()))
    np.savez_compressed(
        OUT / "nrtr.npz", tokens=tokens.int().numpy(), memory=memory.numpy(), logits=out.numpy()
    )


GLYPHS = {  # 5 x 7 pixels, a row a number
    "O": (14, 17, 17, 17, 17, 17, 14),
    "A": (14, 17, 17, 31, 17, 17, 17),
    "R": (30, 17, 17, 30, 20, 18, 17),
    "4": (2, 6, 10, 18, 31, 2, 2),
    "2": (14, 17, 1, 2, 4, 8, 31),
    " ": (0, 0, 0, 0, 0, 0, 0),
}


def drawn(text: str, scale: int, height: int, width: int) -> np.ndarray:
    """Dark text in the middle of a light image [height, width, 3] uint8."""
    rows = [[(GLYPHS[c][y] >> x) & 1 for c in text for x in (4, 3, 2, 1, 0)] for y in range(7)]
    cells = np.array(rows).reshape(7, len(text), 5)
    cells = np.pad(cells, ((0, 0), (0, 0), (0, 1))).reshape(7, -1)
    ink = np.kron(cells, np.ones((scale, scale), int))
    page = np.full((height, width, 3), 235, np.uint8)
    top, left = (height - ink.shape[0]) // 2, (width - ink.shape[1]) // 2
    page[top : top + ink.shape[0], left : left + ink.shape[1]][ink > 0] = 30
    return page


def official() -> None:
    models = Path(rapidocr.__file__).parent / "models"

    def run(name: str, image: np.ndarray) -> np.ndarray:
        x = (image.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
        session = onnxruntime.InferenceSession(models / name, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {"x": x})[0])

    page, line = drawn("OAR 42", 3, 96, 192), drawn("OAR 42", 4, 48, 176)
    probability = run("PP-OCRv6_det_small.onnx", page)[0, 0]
    classes = run("PP-OCRv6_rec_small.onnx", line)[0]
    print("official_small: text pixels", (probability > 0.5).sum(), "classes", classes.argmax(-1).tolist())
    np.savez_compressed(
        OUT / "official_small.npz",
        page=page,
        line=line,
        probability=probability[::4, ::4],
        classes=classes.argmax(-1),
        peaks=classes.max(-1),
    )


if __name__ == "__main__":
    for variant in (
        f"PP-OCRv6_{size}_{task}" for task in ("det", "rec") for size in ("tiny", "small", "medium")
    ):
        reference(variant)
    decoder()
    official()

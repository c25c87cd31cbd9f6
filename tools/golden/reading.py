"""What networks that read text and tables are asked, where stages and outputs alone do not tell: rows name these."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.formula_weights import sharpen
from tests.golden.thinning import images, thin
from tools.golden.network import Arrays, Reference, Row, find, inputs, named_weights

UNUSED = ("backbone.last_conv.", "backbone.fc.")  # layers that nothing calls


def _normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def server(reference: Reference, row: Row) -> Arrays:
    """Stages; of detectors the map, and the three maps in training, with normalisations as in evaluation."""
    model, found = reference.model, {}
    model.eval()
    reference.watch(found)
    out = reference(inputs(row))
    if "head.ctc_encoder" not in row["stages"] and "head.fc" not in row["stages"]:
        found["map"] = out[0]
        stages = dict(found)
        model.head.training = True
        found["training"] = reference(inputs(row))[0]
        found |= stages
    sizes = {name: int(np.prod(shape)) for name, shape in reference.shapes.items()}
    unused = sum(size for name, size in sizes.items() if name.startswith(UNUSED))
    return found | {"count": np.array([sum(sizes.values()), unused, reference.count()])}


def svtr(reference: Reference, row: Row) -> Arrays:
    """Parameters of the model and of its backbone; stages, but of the large sizes."""
    backbone = sum(
        int(np.prod(p.shape)) for p in reference.model.backbone.parameters() if not p.stop_gradient
    )
    found = {"count": np.array([reference.count(), backbone])}
    if "stages" in row:
        reference.model.eval()
        reference.watch(found)
        reference(inputs(row))
    return found


def near_the_edges(drawn: Arrays, reference: Reference) -> Arrays:
    """Half of the drawn bias of the control points on top of that of upstream's initialisation."""
    name = "transform.stn_head.stn_fc2.bias"
    return drawn | {name: 0.5 * drawn[name] + reference.state[name].numpy()}


def unwarp(reference: Reference, row: Row) -> Arrays:
    """Stages, the grid, an image that was unwarped with it, and how many values the parameters have."""
    found: Arrays = {}
    reference.model.eval()
    reference.watch(found)
    image = inputs(row)
    flat = reference(image, lambda x: reference.model([image]))
    return {
        **{name: thin(value) for name, value in found.items()},
        "keys": np.frombuffer(reference.keys().item(), np.uint8),
        "count": np.array(sum(int(np.prod(p.shape)) for p in reference.model.parameters())),
        "grid": found["out_point_positions2D"],
        "flat": flat[0],
    }


def parseq(reference: Reference, row: Row) -> Arrays:
    """The encoder's output, the largest probabilities without and with a second reading, logits under permutations."""
    model, found = reference.model, {}
    paddle = reference.library
    paddle.Tensor.cuda = lambda self: self  # upstream moves a mask to the GPU, wherever the network is
    model.eval()
    tokens = [[95, 5, 6, 7, 0, 96, 96], [95, 1, 94, 1, 2, 3, 0]]
    model.head.gen_tgt_perms = lambda _: paddle.to_tensor(
        [[0, 1, 2, 3, 4, 5, 6], [0, 6, 5, 4, 3, 2, 1], [0, 3, 1, 5, 4, 2, 6]]
    )
    with paddle.no_grad():
        memory = model.backbone(paddle.to_tensor(images(row)))
        for refine in (0, 1):
            model.head.refine_iters = refine
            read = model.head(memory)["predict"].numpy()
            found |= {f"read.{refine}": np.sort(read, -1)[..., -1:], f"best.read.{refine}": read.argmax(-1)}
        out = model.head.forward_train(memory[:2], paddle.to_tensor(tokens))
    permuted = np.stack([logits.numpy() for logits in out["logits_list"]])
    return found | {"backbone": memory.numpy(), "permuted": permuted}


def _steps(said: Any) -> Arrays:
    """What a head says itself: tokens, every fourth of their probabilities, boxes."""
    probabilities = said["structure_probs"].numpy()
    return {
        "tokens": probabilities.argmax(-1).astype(np.uint8),
        "peaks": probabilities.max(-1).astype(np.float32)[:, ::4],
        "boxes": said["loc_preds"].numpy(),
    }


def _after(said: Any) -> Arrays:
    return {"after": said["structure_probs"].numpy(), "after_boxes": said["loc_preds"].numpy()}


def table_cells(reference: Reference, row: Row) -> Arrays:
    """SLANet and SLANeXt: features, logits and boxes after given tokens; and of noise, which differs more, what the
    head says itself."""
    model, paddle, found = reference.model, reference.library, {}
    model.eval()
    reference.watch(found)
    tokens = np.random.RandomState(3).randint(0, row["tokens_of"], (3, 12))
    tokens[:, 0] = 0
    lengths, noise = paddle.to_tensor([11, 5, 8]), paddle.to_tensor(_normal(5, *row["of_noise"]))
    with paddle.no_grad():
        x = paddle.to_tensor(images(row))
        if hasattr(model, "neck"):
            features = model.neck(model.backbone(x))
            found["features"] = features[-1].numpy().transpose(0, 2, 3, 1)
            said = model.head([noise])
        else:
            map_ = model.backbone.vision_tower_high(x)
            features = map_.flatten(2).transpose([0, 2, 1])
            found["net_2"] = map_.numpy()
            said = model.head(noise)
        model.head.training = True
        after = model.head(features, [paddle.to_tensor(tokens), lengths, None])
    return {**found, "given": tokens, **_after(after), **_steps(said)}


def tokens_louder(drawn: Arrays, reference: Reference) -> Arrays:
    """The GRU's columns for the token before, behind the 512 of the features, six times as large."""
    drawn["head.structure_attention_cell.rnn.weight_ih"][:, 512:] *= 6.0
    return drawn


def seldom_padding(drawn: Arrays, reference: Reference) -> Arrays:
    for index, bias in {-2: 1.6, -1: -30.0}.items():  # of the end, of padding
        drawn["head.cls_fc.bias"][index] += bias
    return drawn


def table_master(reference: Reference, row: Row) -> Arrays:
    """The last map, logits, boxes and losses with given targets: tokens [3, 13] with start, end and padding behind,
    boxes [3, 13, 4], masks [3, 13, 1]; and of noise, what the head says itself in 61 steps."""
    loss = find("ppocr.losses.table_master_loss.TableMasterLoss")(42)
    model, paddle = reference.model, reference.library
    model.eval()
    rng = np.random.RandomState(3)
    tokens = rng.randint(0, 39, (3, 13))
    tokens[:, 0] = 40
    for line, length in enumerate((12, 7, 9)):
        tokens[line, length], tokens[line, length + 1 :] = 41, 42
    given = {
        "given": tokens,
        "given_boxes": rng.uniform(0, 1, (3, 13, 4)).astype(np.float32),
        "given_known": (rng.uniform(0, 1, (3, 13, 1)) < 0.5).astype(np.float32),
    }
    targets = [paddle.to_tensor(value) for value in given.values()]
    with paddle.no_grad():
        maps = model.backbone(paddle.to_tensor(images(row)))
        said = model.head([paddle.to_tensor(2 * _normal(5, 3, 512, 8, 8))])
        model.head.training = True
        after = model.head(maps, [targets[0]])
        losses = loss(after, [None, *targets])
    steps = _steps(said)
    return {
        "features": maps[-1].numpy().transpose(0, 2, 3, 1),
        **given,
        **_after(after),
        "losses": np.array([float(losses[name]) for name in ("structure_loss", "loss")]),
        "positions": model.head.positional_encoding.pe.numpy(),
        **steps,
        "boxes": steps["boxes"][:, ::4],
    }


def sharpened(drawn: Arrays, reference: Reference) -> Arrays:
    return sharpen(drawn)


def formula(reference: Reference, row: Row) -> Arrays:
    """The map and logits after given tokens; and of noise, what the head says itself."""
    model, paddle = reference.model, reference.library
    model.eval()
    given = np.random.RandomState(3).randint(3, 80, (3, 11))
    given[:, 0], given[1, 6:], given[2, 8:] = 0, 1, 1
    given[1, 5], given[2, 7], given[0, 10] = 2, 2, 2
    seen = (given != 1).astype(np.int64)
    with paddle.no_grad():
        encoded = model.backbone(paddle.to_tensor(images(row)))
        noise = type(encoded)(last_hidden_state=paddle.to_tensor(_normal(5, 3, 16, 2048)))
        told = model.head(noise).numpy()
        for layer in model.head.sublayers():
            layer.training = True
            if hasattr(layer, "dropout"):
                layer.dropout = 0.0
        model.head.training = True
        logits, labels = model.head([encoded, paddle.to_tensor(given), paddle.to_tensor(seen)])
    return {
        "features": encoded["last_hidden_state"].numpy(),
        "given": given.astype(np.uint8),
        "labels": labels.numpy().astype(np.int8),
        "logits": logits.numpy(),
        "tokens": told.astype(np.uint8),
    }


def nrtr(reference: None, row: Row) -> Arrays:
    """Logits of torch's decoder of post-norm blocks under a causal mask, on a given memory, as the decoder of NRTR,
    whose names are written out here."""
    import torch

    dims, depth, total = 64, 2, 14
    layer = torch.nn.TransformerDecoderLayer(dims, dims // 32, 4 * dims, 0.0, batch_first=True)
    stack = torch.nn.TransformerDecoder(layer, depth).eval()

    def made(name: str, *shape: int) -> Any:
        return torch.from_numpy(named_weights({name: shape})[name])

    linears = (
        ("self_attn.qkv", "self_attn.in_proj_", 3 * dims), ("self_attn.out_proj", "self_attn.out_proj.", dims),
        ("cross_attn.out_proj", "multihead_attn.out_proj.", dims), ("mlp.fc1", "linear1.", 4 * dims),
        ("mlp.fc2", "linear2.", dims),
    )  # fmt: skip
    state = {}
    for i in range(depth):
        ours, theirs = f"decoder.{i}", f"layers.{i}"
        cross = [
            [
                made(f"{ours}.cross_attn.{n}.{end}", *((dims, w) if end == "weight" else (w,)))
                for n, w in (("q", dims), ("kv", 2 * dims))
            ]
            for end in ("weight", "bias")
        ]
        state[f"{theirs}.multihead_attn.in_proj_weight"] = torch.cat(cross[0], 1).T
        state[f"{theirs}.multihead_attn.in_proj_bias"] = torch.cat(cross[1])
        for name, other, columns in linears:
            rows = 4 * dims if name == "mlp.fc2" else dims
            state[f"{theirs}.{other}weight"] = made(f"{ours}.{name}.weight", rows, columns).T
            state[f"{theirs}.{other}bias"] = made(f"{ours}.{name}.bias", columns)
        for norm in (
            "norm1.weight",
            "norm1.bias",
            "norm2.weight",
            "norm2.bias",
            "norm3.weight",
            "norm3.bias",
        ):
            state[f"{theirs}.{norm}"] = made(f"{ours}.{norm}", dims)
    stack.load_state_dict(state)
    tokens = torch.tensor([[2, 5, 9, 13, 3, 0], [2, 7, 3, 0, 0, 0]])
    memory = torch.from_numpy(_normal(6, 2, 9, dims))
    table = made("embedding.embedding.weight", total, dims)
    rows = torch.nn.functional.embedding(tokens[:, :-1], table) * (tokens[:, :-1, None] != 0) * dims**0.5
    angle = torch.arange(5)[:, None] / 10000 ** (torch.arange(0, dims, 2) / dims)
    rows[..., 0::2] += torch.sin(angle)
    rows[..., 1::2] += torch.cos(angle)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(5)
    with torch.no_grad():
        out = stack(rows, memory, tgt_mask=mask) @ made("tgt_word_prj.weight", dims, total)
    return {"tokens": tokens.int().numpy(), "memory": memory.numpy(), "logits": out.numpy()}


GLYPHS = {  # 5 x 7 pixels, a row a number
    "O": (14, 17, 17, 17, 17, 17, 14),
    "A": (14, 17, 17, 31, 17, 17, 17),
    "R": (30, 17, 17, 30, 20, 18, 17),
    "4": (2, 6, 10, 18, 31, 2, 2),
    "2": (14, 17, 1, 2, 4, 8, 31),
    " ": (0, 0, 0, 0, 0, 0, 0),
}


def page_of(text: str, scale: int, height: int, width: int) -> np.ndarray:
    """Dark text in the middle of a light image [height, width, 3] uint8."""
    rows = [[(GLYPHS[c][y] >> x) & 1 for c in text for x in (4, 3, 2, 1, 0)] for y in range(7)]
    cells = np.array(rows).reshape(7, len(text), 5)
    cells = np.pad(cells, ((0, 0), (0, 0), (0, 1))).reshape(7, -1)
    ink = np.kron(cells, np.ones((scale, scale), int))
    page = np.full((height, width, 3), 235, np.uint8)
    top, left = (height - ink.shape[0]) // 2, (width - ink.shape[1]) // 2
    page[top : top + ink.shape[0], left : left + ink.shape[1]][ink > 0] = 30
    return page


def official_small(reference: None, row: Row) -> Arrays:
    """The official small detector and recogniser as ONNX, run on a line of text drawn here."""
    import onnxruntime
    import rapidocr

    models = Path(rapidocr.__file__).parent / "models"

    def run(name: str, image: np.ndarray) -> np.ndarray:
        x = (image.astype(np.float32) / 127.5 - 1).transpose(2, 0, 1)[None]
        session = onnxruntime.InferenceSession(models / name, providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, {"x": x})[0])

    page, line = page_of("OAR 42", 3, 96, 192), page_of("OAR 42", 4, 48, 176)
    probability = run("PP-OCRv6_det_small.onnx", page)[0, 0]
    classes = run("PP-OCRv6_rec_small.onnx", line)[0]
    return {
        "page": page, "line": line, "probability": probability[::4, ::4],
        "classes": classes.argmax(-1), "peaks": classes.max(-1),
    }  # fmt: skip

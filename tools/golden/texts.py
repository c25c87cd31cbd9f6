"""Networks that read tokens, of transformers and PaddleNLP: sizes, tokens and weights, which the tests draw too, and
what is asked of each."""

from __future__ import annotations

import importlib
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests.golden.thinning import thin
from tools.golden.network import (
    Arrays,
    Reference,
    Row,
    find,
    import_paddle,
    import_torch,
    named_weights,
    spell,
)
from tools.golden.tables import network_table

Shapes = Mapping[str, tuple[int, ...]]


def shapes_of(model: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


# -- encoders and their heads ----------------------------------------------------------------------------------------

CLASSES, TOKENS, LENGTHS, KEPT = 5, 32, (32, 19, 6), 72
_WORDS = "embeddings.word_embeddings.weight"
_WITHOUT_TYPES = ("MPNet", "ModernBert")
HEADS = "Model ForSequenceClassification ForTokenClassification ForQuestionAnswering ForMaskedLM".split()  # noqa: SIM905


@dataclass(frozen=True)
class Case:
    """`library` is transformers or paddlenlp; `settings` are what its config.json says; `variant` is ours."""

    library: str
    family: str  # the prefix of the library's classes
    settings: Mapping[str, Any] = field(default_factory=dict)
    variant: str | None = None

    @property
    def model_type(self) -> str:
        return self.family.lower()

    @property
    def pad(self) -> int:
        return self.settings.get("pad_token_id", 0)


def encoder_case(row: Row) -> Case:
    return Case(**{key: row[key] for key in ("library", "family", "settings", "variant") if key in row})


CASES = {name: encoder_case(row) for name, row in network_table("text_encoders").items()}


class Inputs(NamedTuple):
    """[N, T] each: three texts of different lengths, padded; `holes` hides a fifth of the tokens as well."""

    ids: np.ndarray
    types: np.ndarray
    tasks: np.ndarray
    real: np.ndarray
    holes: np.ndarray


def inputs(case: Case) -> Inputs:
    rng = np.random.RandomState(5)
    shape = (len(LENGTHS), TOKENS)
    settings = {"vocab_size": 30522, "type_vocab_size": 2, **case.settings}
    real = np.arange(TOKENS) < np.array(LENGTHS)[:, None]
    ids = rng.randint(5, settings["vocab_size"], shape)
    types = rng.randint(0, settings["type_vocab_size"], shape)
    tasks = rng.randint(0, settings.get("task_type_vocab_size", 1), shape)
    holes = real & (rng.uniform(size=shape) < 0.8)
    holes[:, 0] = True
    return Inputs(np.where(real, ids, case.pad), types, tasks, real, holes)


def drawn(case: Case, shapes: Shapes) -> Arrays:
    """Values for a state dict of the library, from its names without the encoder's: the same under every head.

    Rows of embeddings are of about unit size, padding is zero where the family says so, and second names of the word
    embeddings and of the decoder's bias get the values of the first.
    """

    def source(name: str) -> str:
        name = re.sub(r"^(?:bert|ernie|roberta|albert|electra|mpnet|model|transformer)\.", "", name)
        words = "embeddings.tok_embeddings.weight" if case.family == "ModernBert" else _WORDS
        name = re.sub(r"^.*(?:decoder|lm_head)[._]weight$", words, name)
        return re.sub(r"^(.*?)\.(?:decoder[._])?bias$", r"\1.bias", name)

    values = named_weights({source(name): shape for name, shape in shapes.items()})
    for name, value in values.items():
        if re.search(r"embeddings\.\w+_embeddings\.weight$", name):
            value *= np.sqrt(len(value) / 2, dtype=np.float32)
        if name.endswith(("word_embeddings.weight", "tok_embeddings.weight")) and case.family != "Bert":
            value[case.pad] = 0
    return {name: values[source(name)] for name in shapes}


def _opened(case: Case, head: str) -> tuple[Shapes, Callable[..., Any]]:
    """Names and shapes of the model, and a function (ids, types, mask, tasks) -> arrays by name, or one of a head."""
    is_paddle, is_encoder = case.library == "paddlenlp", head == "Model"
    library = import_paddle() if is_paddle else import_torch()
    package = importlib.import_module("paddlenlp.transformers" if is_paddle else "transformers")
    config = getattr(package, f"{case.family}Config")(num_labels=CLASSES, **case.settings)
    if not is_paddle:
        config._attn_implementation = "eager"
        config.num_labels = 2 if head == "ForQuestionAnswering" else CLASSES
    model = getattr(package, case.family + head)(config)
    model.eval()
    shapes, tensor = shapes_of(model), library.to_tensor if is_paddle else library.from_numpy
    own = {name: shape for name, shape in shapes.items() if not (is_paddle and name.endswith("position_ids"))}
    state = {name: tensor(value) for name, value in drawn(case, own).items()}
    (model.set_state_dict if is_paddle else model.load_state_dict)(state)

    def run(ids: np.ndarray, types: np.ndarray, mask: np.ndarray, tasks: np.ndarray | None) -> Any:
        given = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
        given |= {} if case.family in _WITHOUT_TYPES else {"token_type_ids": types}
        given |= {} if tasks is None else {"task_type_ids": tasks}
        more = {"output_hidden_states": True, "return_dict": True} if is_encoder else {}
        with library.no_grad():
            out = model(**{name: tensor(value) for name, value in given.items()}, **more)
        if is_encoder:
            hidden = {f"hidden.{i}": h.numpy() for i, h in enumerate(out.hidden_states)}
            pooled = getattr(out, "pooler_output", None)
            return hidden if pooled is None else {"pooled": pooled.numpy(), **hidden}
        if is_paddle:
            return np.stack([part.numpy() for part in out], -1) if isinstance(out, tuple) else out.numpy()
        if head == "ForQuestionAnswering":
            return np.stack([out.start_logits.numpy(), out.end_logits.numpy()], -1)
        return out.logits.numpy()

    return shapes, run


def text_encoder(reference: None, row: Row) -> Arrays:
    """Hidden states behind the embeddings and every layer, the pooled output, the same of the last layer where more
    tokens are hidden, and what the heads give."""
    case = encoder_case(row)
    x, stored, keys = inputs(case), {}, {}
    tasks = x.tasks if case.settings.get("use_task_id") else None
    for head in HEADS:
        shapes, run = _opened(case, head)
        keys[f"keys.{head}"] = spell(shapes)
        if head != "Model":
            stored[head] = run(x.ids, x.types, x.real, None)
            continue
        stored |= run(x.ids, x.types, x.real, tasks)
        holes = run(x.ids, x.types, x.holes, tasks)
        last = max(int(key.partition(".")[2]) for key in holes if key.startswith("hidden."))
        asked = {"hidden": f"hidden.{last}", "pooled": "pooled"}
        stored |= {f"holes.{ours}": holes[key] for ours, key in asked.items() if key in holes}
    return keys | {name: thin(value, KEPT) for name, value in stored.items()}


# -- the Transformer of PaddleNLP ------------------------------------------------------------------------------------

# Arguments of TransformerModel. Its padding is token 0, which also begins a target.
TRANSFORMERS = {
    name: {key: value for key, value in row["options"].items() if key not in ("dropout", "bos_id", "eos_id")}
    for name, row in network_table("transformer").items()
}
SOURCES, TARGETS, TRANSFORMER_KEPT = (24, 15, 3), (20, 20, 20), 400


class Pair(NamedTuple):
    source: np.ndarray
    """[N, T] int64, padded with 0"""
    target: np.ndarray
    """[N, S] int64, begins with 0"""


def transformer_inputs(case: Mapping[str, Any]) -> Pair:
    rng = np.random.RandomState(6)
    source = rng.randint(2, case["src_vocab_size"], (len(SOURCES), max(SOURCES)))
    target = rng.randint(2, case["trg_vocab_size"], (len(TARGETS), max(TARGETS)))
    target[:, 0] = 0
    return Pair(np.where(np.arange(max(SOURCES)) < np.array(SOURCES)[:, None], source, 0), target)


def transformer_weights(shapes: Shapes) -> Arrays:
    """Values for a state dict but for the positions; shared tables have one value under both names."""
    shares = "linear.weight" not in shapes
    source = {n: n.replace("trg_", "src_") if shares else n for n in shapes if "pos_encoder" not in n}
    values = named_weights({source[name]: shapes[name] for name in source})
    for name, value in values.items():
        if name.endswith("word_embedding.weight"):
            value *= np.sqrt(len(value) / 2 / value.shape[1], dtype=np.float32)
            value[0] = 0
    return {name: values[first] for name, first in source.items()}


def transformer(reference: Reference, row: Row) -> Arrays:
    """The output of the encoder, where tokens are, and logits. The table of positions is the reference's own."""
    model, paddle, encoded = reference.model, reference.library, []
    model.eval()
    model.set_state_dict({k: paddle.to_tensor(v) for k, v in transformer_weights(reference.own).items()})
    model.transformer.encoder.register_forward_post_hook(lambda layer, args, out: encoded.append(out))
    x = transformer_inputs(row["options"])
    with paddle.no_grad():
        logits = model(paddle.to_tensor(x.source), paddle.to_tensor(x.target)).numpy()
    return {"memory": encoded[0].numpy() * (x.source != 0)[..., None], "logits": logits}


# -- PaddleNLP's tagger of Chinese texts -----------------------------------------------------------------------------

VOCABULARY, TAGS, EMBEDDING, HIDDEN, TAGGER_KEPT = 58224, 57, 128, 128, 512


def tagger_inputs() -> tuple[np.ndarray, np.ndarray]:
    """ids [N, T] and lengths [N]."""
    lengths = np.array((40, 23, 7, 1))
    ids = np.random.RandomState(7).randint(1, VOCABULARY, (len(lengths), 40))
    return np.where(np.arange(40) < lengths[:, None], ids, 0), lengths


def first_name(name: str) -> str:
    """The first name of an array that the tagger's state dict holds several times."""
    name = re.sub(r"^(?:crf_loss\.crf|viterbi_decoder)\.", "crf.", name)
    cell = re.fullmatch(r"gru\.(\d)\.cell_(fw|bw)\.(\w+)", name)
    return f"gru.{cell[3]}_l{cell[1]}{'_reverse' * (cell[2] == 'bw')}" if cell else name


def tagger_weights(shapes: Shapes) -> Arrays:
    """Values from the names. The two tags that only begin and end a text are unlikely, as in a trained model."""
    values = named_weights({first_name(name): shape for name, shape in shapes.items()})
    values["word_embedding.weight"] *= np.sqrt(VOCABULARY / 2, dtype=np.float32)
    values["fc.bias"][-2:] -= 20
    return {name: values[first_name(name)] for name in shapes}


def tagger(reference: Reference, row: Row) -> Arrays:
    """Emissions, and the tags of the decoder with their scores."""
    net, paddle = reference.model, reference.library
    net.eval()
    net.set_state_dict({k: paddle.to_tensor(v) for k, v in tagger_weights(shapes_of(net)).items()})
    ids, lengths = (paddle.to_tensor(value) for value in tagger_inputs())
    with paddle.no_grad():
        hidden, _ = net.gru(net.word_embedding(ids), sequence_length=lengths)
        emissions = net.fc(hidden)
        scores, tags = net.viterbi_decoder(emissions, lengths)
    keys = "\n".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in shapes_of(net).items())
    flat = emissions.numpy().reshape(-1)
    return {
        "keys": np.array(keys.encode()), "emissions": flat[:: -(-flat.size // TAGGER_KEPT)],
        "tags": tags.numpy().astype(np.int32), "scores": scores.numpy(),
    }  # fmt: skip


# -- LayoutXLM -------------------------------------------------------------------------------------------------------

FORM_CLASSES, FORM_KEPT = 7, 96
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}  # blocks a stage
# Upstream's models by what stands behind their names: SER and RE.
FORM_HEADS = ("ForTokenClassification", "ForRelationExtraction")


class FormCase(NamedTuple):
    """`settings` are upstream's names; `visual` the depth of its ResNet and the width of its stem, None without."""

    settings: Mapping[str, Any]
    visual: tuple[int, int] | None


FORMS = {n: FormCase(row["settings"], row["visual"]) for n, row in network_table("layoutxlm").items()}


class Form(NamedTuple):
    """ids, boxes and mask of two pages, their images NHWC as the network takes them, and their entities: first tokens
    and kinds [2, 6], -1 where a page has fewer."""

    ids: np.ndarray
    boxes: np.ndarray
    mask: np.ndarray
    image: np.ndarray
    starts: np.ndarray
    kinds: np.ndarray


def form_inputs(case: FormCase) -> Form:
    rng, tokens = np.random.RandomState(3), 30
    ids = rng.randint(4, case.settings["vocab_size"], (2, tokens))
    corners = rng.randint(0, 900, (2, tokens, 2))
    boxes = np.concatenate([corners, corners + rng.randint(1, 100, (2, tokens, 2))], axis=-1)
    mask = np.arange(tokens)[None] < np.array((30, 17))[:, None]
    ids[~mask], boxes[~mask] = 1, 0
    ids[0, 0] = 0  # the row of words that is zero
    side = 224 if case.visual is not None and case.visual[0] > 50 else 64
    image = rng.uniform(0, 255, (2, side, side, 3)) * np.array([0.3, 1.0]).reshape(2, 1, 1, 1)
    starts = np.array([[0, 4, 9, 15, 20, 26], [2, 6, 11, -1, -1, -1]])
    kinds = np.array([[1, 2, 0, 1, 2, 2], [2, 1, 1, -1, -1, -1]])
    return Form(ids, boxes, mask, image.astype(np.float32), starts, kinds)


def form_weights(shapes: Shapes) -> Arrays:
    """The weights of a state dict; kernels smaller, so that the many blocks of the visual branch do not grow."""
    values = named_weights(shapes)
    for name, value in values.items():
        if "embedding" in name and value.ndim == 2:
            value = value * 0.5 * np.sqrt(value.shape[0])
        values[name] = (0.6 * value if value.ndim == 4 else value).astype(np.float32)
    return values


def _layoutxlm(case: FormCase, head: str) -> Any:
    import_paddle()
    modeling = importlib.import_module("paddlenlp.transformers.layoutxlm.modeling")
    settings, original = dict(case.settings), modeling.read_config
    if "hidden_size" in settings:
        settings["coordinate_size"] = settings["shape_size"] = settings["hidden_size"] // 6

    def read_config(fp: Any = None) -> Any:
        cfg = original(fp)
        cfg.defrost()
        resnet, (depth, width) = cfg.MODEL.RESNETS, case.visual or (101, 64)
        resnet.DEPTH, resnet.STEM_OUT_CHANNELS = depth, width
        resnet.WIDTH_PER_GROUP, resnet.RES2_OUT_CHANNELS = width // 8, 4 * width
        cfg.freeze()
        return cfg

    modeling.read_config = read_config
    config = find("paddlenlp.transformers.LayoutXLMConfig")(
        num_labels=FORM_CLASSES, use_visual_backbone=case.visual is not None, **settings
    )
    model = getattr(modeling, f"LayoutXLM{head}")(config)
    modeling.read_config = original
    model.eval()
    return model


def layoutxlm(reference: None, row: Row) -> Arrays:
    """Logits of SER, states of the tokens, and of RE the logits of all pairs of a key and a value, and the loss.

    Upstream's `REDecoder.build_relation` cannot be run as published (`paddle.any(...) is False` is never true), so its
    layers are called here on the pairs, in its order.
    """
    paddle, case, stored = import_paddle(), FormCase(row["settings"], row["visual"]), {}
    x = form_inputs(case)
    for head in FORM_HEADS:
        model = _layoutxlm(case, head)
        shapes = shapes_of(model)
        stored[f"keys.{head}"] = np.array(zlib.compress(spell(shapes).item(), 9))
        constant = ("position_ids", "pixel_mean", "pixel_std")
        own = {name: shape for name, shape in shapes.items() if not name.endswith(constant)}
        model.set_state_dict({name: paddle.to_tensor(value) for name, value in form_weights(own).items()})
        named = {"input_ids": x.ids, "bbox": x.boxes, "attention_mask": x.mask}
        given = {name: paddle.to_tensor(value.astype(np.int64)) for name, value in named.items()}
        given["image"] = paddle.to_tensor(x.image.transpose(0, 3, 1, 2)) if case.visual else None
        with paddle.no_grad():
            if head == FORM_HEADS[0]:
                stored["logits"] = thin(model(**given)[0].numpy(), FORM_KEPT)
                continue
            hidden = model.layoutxlm(**given)[0][:, : x.ids.shape[1]]
            stored["hidden"] = thin(hidden.numpy(), FORM_KEPT)
            stored["pairs"], stored["loss"] = _relate(model.extractor, hidden, x)
    return stored


def _relate(extractor: Any, hidden: Any, x: Form) -> tuple[np.ndarray, np.ndarray]:
    """The logits of the pairs of a key (1) and a value (2), page after page, key by key, and the loss where the first
    pair of each page is related."""
    paddle, logits, loss = import_paddle(), [], 0.0
    for page in range(len(x.starts)):
        heads, tails = (np.flatnonzero(x.kinds[page] == kind) for kind in (1, 2))
        pairs = np.array([(head, tail) for head in heads for tail in tails])
        parts = []
        for column, ffn in ((0, extractor.ffnn_head), (1, extractor.ffnn_tail)):
            tokens = paddle.to_tensor(x.starts[page][pairs[:, column]])
            labels = paddle.to_tensor(x.kinds[page][pairs[:, column]])
            parts.append(ffn(paddle.concat([hidden[page][tokens], extractor.entity_emb(labels)], axis=-1)))
        out = extractor.rel_classifier(*parts)
        loss += float(extractor.loss_fct(out, paddle.to_tensor(np.arange(len(pairs)) == 0).astype("int64")))
        logits.append(out.numpy())
    return np.concatenate(logits), np.array(loss, np.float32)


def layoutxlm_counts(reference: None, row: Row) -> Arrays:
    """Values of the models in full size: of each head of either, all and those that are trained."""
    counts: Arrays = {}
    for name, visual in (("layoutxlm", (101, 64)), ("vi-layoutxlm", None)):
        for head in FORM_HEADS:
            values = list(_layoutxlm(FormCase({}, visual), head).parameters())
            sizes = [(int(np.prod(p.shape)), not p.stop_gradient) for p in values]
            counts[f"{name} {head}"] = np.array([sum(n for n, _ in sizes), sum(n for n, on in sizes if on)])
            print(
                f"{name}-base-uncased {head}: parameters, and those that are trained: {counts[f'{name} {head}']}"
            )
    return counts

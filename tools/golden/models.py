"""Networks of references that a call alone does not make: their builders are named by rows of references.yml."""

from __future__ import annotations

import copy
import importlib
import sys
import types
from pathlib import Path
from typing import Any

from tools.golden.network import import_paddle, load_file


def beside(file: str) -> Path:
    """A file of the folders that --path names."""
    found = next((Path(folder, file) for folder in sys.path if Path(folder, file).is_file()), None)
    if found is None:
        sys.exit(f"{file} stands in none of the folders of --path")
    return found


def lcnet_v3(size: str) -> Any:
    """A size of PaddleClas's file pp_lcnet_v3.py, as a module of the release, whose relative imports it has."""
    package = "paddleclas.ppcls.arch.backbone.legendary_models"
    saving = importlib.import_module("paddleclas.ppcls.utils.save_load")
    saving.load_dygraph_pretrain_from_url = None  # imported by the file, gone from the release
    importlib.import_module(package)
    return getattr(load_file(beside("pp_lcnet_v3.py"), f"{package}.pp_lcnet_v3"), size)()


def rapidocr_network(name: str, older: str = "") -> Any:
    """A network of the PyTorch port in rapidocr. `older` is a variant that the port has not as upstream: the v3
    recogniser has no MultiHead around its head, and the fusing convolution of the encoder of v4 and v5 is 1x3 (only so
    the exported v5 recogniser has its 4,113,181 parameters)."""
    import rapidocr
    import torch
    import yaml
    from rapidocr.inference_engine.pytorch.networks.architectures.base_model import BaseModel

    folder = Path(rapidocr.__file__).parent / "inference_engine" / "pytorch" / "networks"
    configs = yaml.safe_load((folder / "arch_config.yaml").read_text(encoding="utf-8"))
    config = copy.deepcopy(configs[name])
    if older == "v3":
        config["Backbone"] = configs["latin_PP-OCRv3_rec_mobile"]["Backbone"]
        config["Head"]["head_list"][0]["CTCHead"]["Neck"].update(dims=64, kernel_size=[3, 3])
    model = BaseModel(config).eval()
    if older == "fusing":
        fusing = model.get_submodule("head.ctc_encoder.encoder.conv4")
        fusing.conv = torch.nn.Conv2d(960, 60, (1, 3), padding=(0, 1), bias=False)
    return model


def svtr(
    widths: list[int],
    depths: list[int],
    heads: list[int],
    local: int,
    out: int,
    columns: int,
    size: list[int],
) -> Any:
    """The backbone of configs/rec/rec_svtrnet.yml; the paper's other sizes are of its table 1."""
    from ppocr.modeling.backbones.rec_svtrnet import SVTRNet

    return SVTRNet(
        img_size=size, out_char_num=columns, out_channels=out, embed_dim=widths, depth=depths, num_heads=heads,
        mixer=["Local"] * local + ["Global"] * (sum(depths) - local), local_mixer=[[7, 11]] * 3,
        patch_merging="Conv", last_stage=True, prenorm=False,
    )  # fmt: skip


def formula_head(width: int, hidden: int, vocabulary: int, tokens: int) -> Any:
    """PP-FormulaNet's decoder in a size of ours."""
    from ppocr.modeling.heads import rec_ppformulanet_head as heads

    import_paddle().jit.api.set_dynamic_shape = lambda *_: None  # of Paddle 3, for exported programs alone
    usual = heads.MBartConfig
    heads.MBartConfig = lambda **own: usual(**{**own, "vocab_size": vocabulary})
    head = heads.PPFormulaNet_Head(
        max_new_tokens=tokens, decoder_ffn_dim=hidden, decoder_hidden_size=width, decoder_layers=2,
        encoder_hidden_size=2048, use_parallel=True, parallel_step=3,
    )  # fmt: skip
    heads.MBartConfig = usual
    return head


def uvdoc() -> Any:
    """The network of PaddleX 3.7's file alone: its imports are of a package that needs a newer Paddle."""
    paddle = import_paddle()

    class Config:
        def __init__(self, **given: Any) -> None:
            pass

    class Model(paddle.nn.Layer):
        def __init__(self, config: Any) -> None:
            super().__init__()

    class Activations(dict):
        def __missing__(self, name: str) -> Any:
            return {"relu": paddle.nn.ReLU, "prelu": paddle.nn.PReLU}[name]()

    mixin = type("Mixin", (), {})
    contents = {
        "activations": {"ACT2FN": Activations()},
        "transformers": {
            "BatchNormHFStateDictMixin": mixin, "PretrainedModel": Model, "PretrainedConfig": Config
        },
    }  # fmt: skip
    for name in ("px", "px.common", "px.common.transformers", "px.unwarp", "px.unwarp.modeling"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []  # type: ignore[attr-defined]
    for name, values in contents.items():
        module = sys.modules[f"px.common.transformers.{name}"] = types.ModuleType(name)
        vars(module).update(values)
    folder = beside("paddlex/inference/models/image_unwarping/modeling/uvdoc.py").parent
    config = load_file(folder / "_config.py", "px.unwarp.modeling._config").UVDocConfig()
    return load_file(folder / "uvdoc.py", "px.unwarp.modeling.uvdoc").UVDocNet(config)

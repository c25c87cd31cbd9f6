"""A trained decoder as a folder of Hugging Face: what `oar export` writes, and transformers and `nlp.llm.load` open."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

from framework.config import build
from framework.core.disk import write_file
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.engine.experiment import Experiment
from framework.io.checkpoint import run_folder
from framework.nn.adapters import merge_adapters
from framework.text.subwords import Subwords
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import load_tokenizer
from framework.workflow.domain.weights import resolve_weights
from nlp.data.corpora import bos_ids, end_token
from nlp.llm import copy_tokenizer
from nlp.tasks.decoder_task import load_decoder_weights
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_config import DecoderConfig
from zoo.layers.decoder_weights import save_decoder

TOKENIZER, SETTINGS, TEMPLATE, GENERATION = (
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
)
_CHATML = """{%- for message in messages -%}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] + '<|im_end|>' -}}{%- endgeneration -%}
{%- else -%}
{{- message['content'] + '<|im_end|>' -}}
{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- endif -%}
"""
_PLAIN = """{%- for message in messages -%}
{%- if message['role'] == 'assistant' -%}
{%- generation -%}{{- message['content'] + eos_token -}}{%- endgeneration -%}
{%- else -%}
{{- message['content'] -}}
{%- endif -%}
{%- endfor -%}
"""
_BOS = "{{- bos_token -}}\n"
TEMPLATES = {"chatml": _CHATML, "plain": _PLAIN}
"""The built-in formats of `Chats` as templates of transformers"""
_ROLES = {"pad": "pad_token", "unk": "unk_token", "sep": "eos_token", "mask": "mask_token"}


def is_decoder(experiment: Experiment) -> bool:
    """Whether a configuration is one of a decoder, which is exported as a folder and not as a program."""
    return isinstance(experiment.model, DecoderConfig)


def export_decoder(experiment: Experiment, config: Path, folder: Path) -> Path:
    """Write config.json, model.safetensors with adapters merged into it, the tokenizer, the chat template and
    generation_config.json.

    Raises:
        ConfigError: there are no weights. FormatError, WeightError: they cannot be read, or do not fit.
    """
    model_config, task = experiment.model_and_task()
    spec = experiment.weights or str(run_folder(config))
    if experiment.weights is None and not Path(spec).is_dir():
        raise ConfigError(
            "there are no weights",
            where=config,
            received=f"no `weights`, and no training run in {spec}",
            allowed="a folder of a model, a file or a checkpoint",
            fix=f"-o weights=…, or train first: oar train -c {config.as_posix()}",
        )
    model = build(task.adapt_model(model_config))
    assert isinstance(model, Decoder)
    load_decoder_weights(model, resolve_weights(spec, experiment.domain))
    if model.config.adapter is not None:
        merge_adapters(model)
        model.config = dataclasses.replace(model.config, adapter=None)
    source = _setting(experiment, "tokenizer")
    tokenizer = None if source is None else load_tokenizer(source)
    if tokenizer is not None and not model.size.eos_ids and "sep" in tokenizer.roles:
        end = end_token(tokenizer, _setting(experiment, "end"))
        model.config = dataclasses.replace(model.config, eos_ids=(end,))
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    save_decoder(model, folder)
    if tokenizer is not None and source is not None:
        write_tokenizer(tokenizer, source, folder)
        write_template(_setting(experiment, "template"), tokenizer, folder)
    ends = model.config.size().eos_ids
    if ends and not (folder / GENERATION).is_file():
        settings: dict[str, JSON] = {"eos_token_id": ends[0] if len(ends) == 1 else list(ends)}
        write_file(folder / GENERATION, json.dumps(settings, indent=2).encode("utf-8"))
    return folder


def _setting(experiment: Experiment, name: str) -> str | None:
    """Of the data that the model was trained on, or of its task."""
    loaders = (experiment.data.train, experiment.data.eval)
    holders = (*(one.dataset for one in loaders if one is not None), experiment.task)
    candidates = (getattr(one, name, None) for one in holders)
    return next((one for one in candidates if isinstance(one, str)), None)


def write_tokenizer(tokenizer: Tokenizer, source: str, folder: Path) -> None:
    """The files of a tokenizer: those of its folder as they are, or a tokenizer.json that transformers opens where the
    library `tokenizers` divides the texts, or this toolkit's own."""
    origin = Path(source).expanduser()
    origin = origin if origin.is_dir() else origin.parent
    if (origin / SETTINGS).is_file():
        copy_tokenizer(origin, folder)
        return
    if not isinstance(tokenizer.segmenter, Subwords):
        # Decoders are trained without what it puts around texts, so that prompts have to come without it.
        Tokenizer(tokenizer.segmenter, tokenizer.roles, (("A", 0),), (("A", 0), ("B", 0))).save(folder)
        return
    write_file(folder / TOKENIZER, tokenizer.segmenter.core.to_str(pretty=True).encode("utf-8"))
    settings: dict[str, JSON] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        **{theirs: tokenizer.roles[ours] for ours, theirs in _ROLES.items() if ours in tokenizer.roles},
    }
    write_file(folder / SETTINGS, json.dumps(settings, indent=2, ensure_ascii=False).encode("utf-8"))


def write_template(template: str | None, tokenizer: Tokenizer, folder: Path) -> None:
    """The chat template that the data name."""
    if template in TEMPLATES:
        begin = _BOS if template == "plain" and bos_ids(tokenizer).size else ""
        write_file(folder / TEMPLATE, (begin + TEMPLATES[template]).encode("utf-8"))
    elif template is not None and (Path(template).expanduser() / TEMPLATE).is_file():
        shutil.copyfile(Path(template).expanduser() / TEMPLATE, folder / TEMPLATE)

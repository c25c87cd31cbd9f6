"""A model of this toolkit under lm-evaluation-harness, for all of its tasks: `--model oar`.

    python -m nlp.evaluation.lm_eval run --model oar --model_args pretrained=FOLDER --tasks hellaswag,wikitext

takes the arguments of the command `lm_eval`. In Python `import nlp.evaluation.lm_eval` makes the name known to
`lm_eval.simple_evaluate(model="oar", model_args="pretrained=FOLDER", …)`.

Reference: lm-evaluation-harness 0.4.13 (lm_eval/models/huggingface.py); numbers are those of its model `hf`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from framework.core.errors import MissingExtraError
from nlp import llm
from nlp.evaluation.likelihood import Continuation, Scorer, encode_text, first_token, model_parts
from nlp.evaluation.perplexity import rolling_windows
from nlp.evaluation.writing import write_until
from nlp.generation.engine import Engine
from nlp.generation.options import GenerationOptions

try:
    from lm_eval.api.model import TemplateLM
    from lm_eval.api.registry import register_model
except ImportError as error:
    raise MissingExtraError("lm-eval", "lm-eval", "the tasks of lm-evaluation-harness") from error

_NEW_TOKENS = 256  # lm-eval's, where a task says nothing


@register_model("oar")
class OarModel(TemplateLM):
    """See lm_eval.api.model.LM.

    Args:
        pretrained: A folder, as of `nlp.llm.load`.
        max_length: Tokens of a context and its continuation; None: the model's.
        dtype, weights: As of `nlp.llm.load`.
    """

    def __init__(
        self,
        pretrained: str,
        batch_size: int | str = 8,
        max_length: int | None = None,
        dtype: str | None = None,
        weights: str | None = None,
        max_batch_size: int | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        self.model = llm.load(pretrained, dtype, weights)
        decoder, self.tokenizer = model_parts(self.model)
        self.batch_size = batch_size if isinstance(batch_size, int) else 8
        self._scorer = Scorer(decoder, None if max_length is None else int(max_length), self.batch_size)
        self._engine: Engine | None = None

    @property
    def max_length(self) -> int:
        return self._scorer.max_length

    @property
    def eot_token_id(self) -> int:
        eos = self.tokenizer.eos_id
        return first_token(self.tokenizer) if eos is None else eos

    @property
    def prefix_token_id(self) -> int:
        return first_token(self.tokenizer)

    @property
    def tokenizer_name(self) -> str:
        return str(self.model.folder)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        return list(encode_text(self.tokenizer, string, add_special_tokens is not False))

    def tok_decode(self, tokens: Sequence[int], skip_special_tokens: bool = True) -> str:
        return self.tokenizer.decode(tokens, skip_special_tokens)

    def _loglikelihood_tokens(
        self, requests: list[tuple[Any, list[int], list[int]]], **kwargs: Any
    ) -> list[tuple[float, bool]]:
        pairs = [Continuation(tuple(context), tuple(ids)) for _, context, ids in requests]
        return [(one.log_likelihood, one.greedy) for one in self._scorer.score(pairs)]

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        totals = []
        for request in requests:
            ids = tuple(self.tok_encode(request.args[0]))
            windows = rolling_windows(ids, self.prefix_token_id, self.max_length)
            totals.append(sum(one.log_likelihood for one in self._scorer.score(windows)))
        return totals

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        if self._engine is None:
            self._engine = Engine(self.model.model, self.tokenizer, self.batch_size, self.max_length)
        prompts, settings = (
            zip(*(request.args for request in requests), strict=True) if requests else ((), ())
        )
        stops = [one.get("until") or () for one in settings]
        return write_until(
            self._engine,
            self.tokenizer,
            prompts,
            [(stop,) if isinstance(stop, str) else tuple(stop) for stop in stops],
            [int(one.get("max_gen_toks", _NEW_TOKENS)) for one in settings],
            [_options(one) for one in settings],
        )

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> str:
        from framework.text.chat_template import ChatTemplate

        template = None if self.model.folder is None else ChatTemplate.from_folder(self.model.folder)
        if template is None:
            raise ValueError("the model has no chat template")
        return template.render(chat_history, add_generation_prompt=add_generation_prompt)  # type: ignore[arg-type]


def _options(settings: dict[str, Any]) -> GenerationOptions:
    """lm-eval's: greedy, unless a task asks for sampling with a temperature."""
    temperature = float(settings.get("temperature") or 0.0)
    sample = bool(settings.get("do_sample", temperature > 0)) and temperature > 0
    known = {name: settings[name] for name in ("top_p", "top_k", "min_p") if name in settings and sample}
    return GenerationOptions(do_sample=sample, **({"temperature": temperature} if sample else {}), **known)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command `lm_eval`, which knows `--model oar`."""
    from lm_eval.__main__ import cli_evaluate

    if arguments is not None:
        sys.argv = ["lm_eval", *arguments]
    cli_evaluate()


if __name__ == "__main__":
    main()

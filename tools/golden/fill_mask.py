"""What transformers' FillMaskPipeline says of gaps, with a small BERT whose weights are drawn from their names.

    python tools/golden/fill_mask.py          needs: torch, transformers 5

Written to tests/golden/data/fill_mask.json: (token, token_str, score, sequence) for each gap of each text,
best first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from text_encoders_cases import CASES, drawn  # noqa: E402

DATA = ROOT / "tests" / "golden" / "data"
TEXTS = (
    "the cat sat on the [MASK]",
    "[MASK]",
    "A man is [MASK] the guitar, and nobody [MASK].",
    "[MASK] [MASK] in Straße and café",
)
TOP = 5


def main() -> None:
    import torch
    import transformers

    vocabulary = DATA / "tokenizers" / "bert" / "vocab.txt"
    tokenizer = transformers.BertTokenizer(vocab=str(vocabulary))
    case = CASES["bert_small"]
    config = transformers.BertConfig(**{**case.settings, "vocab_size": len(tokenizer)})
    model = transformers.BertForMaskedLM(config).eval()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    model.load_state_dict({name: torch.from_numpy(value) for name, value in drawn(case, shapes).items()})
    fill = transformers.FillMaskPipeline(model=model, tokenizer=tokenizer)
    found: dict[str, Any] = {"vocab_size": len(tokenizer), "texts": {}}
    for text in TEXTS:
        gaps: Any = fill(text, top_k=TOP)
        gaps = gaps if isinstance(gaps[0], list) else [gaps]
        found["texts"][text] = [
            [(one["token"], one["token_str"], one["score"], one["sequence"]) for one in gap] for gap in gaps
        ]
    found["shapes"] = shapes
    (DATA / "fill_mask.json").write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

"""What the pipelines of transformers answer with the folders of text_folders_cases.py.

    python tools/golden/text_folders.py [case …]          needs: torch, transformers 5

Stored are the names and shapes of each model's weights, and for each text the classes with their scores, or the
entities of `aggregation_strategy="first"` with the lowest probability of their words' first tokens.
Written to tests/golden/data/text_folders.json.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from text_folders_cases import CASES, Case, write_folder  # noqa: E402

OUT = ROOT / "tests" / "golden" / "data" / "text_folders.json"


def answers(case: Case, folder: Path) -> list[Any]:
    from transformers import pipeline

    if case.head == "ForSequenceClassification":
        ask: Any = pipeline("text-classification", model=str(folder), device="cpu")
        found = []
        for text in case.texts:
            given = text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]}
            rows = ask(given, top_k=None, truncation=True)
            found.append([[row["label"], round(row["score"], 6)] for row in rows])
        return found
    ask = pipeline("token-classification", model=str(folder), device="cpu")
    found = []
    for text in case.texts:
        tokens = ask(text, aggregation_strategy="none", ignore_labels=[])
        heads = [token for token in tokens if not token["word"].startswith("##")]
        groups = ask(text, aggregation_strategy="first")
        found.append(
            [
                [
                    group["entity_group"],
                    group["start"],
                    group["end"],
                    round(
                        min(float(t["score"]) for t in heads if group["start"] <= t["start"] < group["end"]),
                        6,
                    ),
                ]
                for group in groups
            ]
        )
    return found


def main() -> None:
    import transformers

    stored = json.loads(OUT.read_text(encoding="utf-8")) if OUT.is_file() else {}
    for name in sys.argv[1:] or CASES:
        case = CASES[name]
        with tempfile.TemporaryDirectory() as work:
            config = getattr(transformers, f"{case.family}Config")(**case.config())
            model = getattr(transformers, case.family + case.head)(config)
            shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
            folder = write_folder(Path(work) / name, case, shapes)
            stored[name] = {"shapes": shapes, "answers": answers(case, folder)}
        print(name, json.dumps(stored[name]["answers"], ensure_ascii=False)[:600])
    lines = ",\n".join(f'"{name}": {json.dumps(stored[name], ensure_ascii=False)}' for name in sorted(stored))
    OUT.write_text("{\n" + lines + "\n}\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

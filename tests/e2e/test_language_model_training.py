"""Small decoders reach on Shakespeare what is asked of them: minutes of training, so in the slow suite."""

from pathlib import Path

import pytest

from framework.text.lines import read_lines
from framework.text.tokenizer import Tokenizer
from framework.workflow.train.run import train

CONFIGS = Path(__file__).resolve().parents[2] / "configs" / "nlp" / "language_model"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "most"), [("llama_characters_shakespeare", 1.90), ("llama_characters_shakespeare_long", 1.60)]
)
def test_held_out_nats_of_shakespeare(shared: Path, tmp_path: Path, config: str, most: float) -> None:
    text = shared / "data" / "lm_text" / "tinyshakespeare.train.txt"
    words = Tokenizer.train("spaced_characters", read_lines(text), 128).save(tmp_path / "characters.json")
    changes = [
        f"data.{part}.dataset.{name}={value}"
        for part in ("train", "eval")
        for name, value in (("paths", f"[{text.as_posix()}]"), ("tokenizer", words.as_posix()))
    ]
    scores = train(CONFIGS / f"{config}.yml", tuple(changes), tmp_path / "run")
    assert scores["nats"] <= most

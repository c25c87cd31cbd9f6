"""tests/golden/data/tokenizers: small vocabularies, and what the reference tokenizers make of texts with them.

The recipe `tokenizers` trains the vocabularies, too; its case `ernie` adds ERNIE's. Both read the data in OAR_SHARED.
The references are the tokenizers written in Python (BertTokenizer, RobertaTokenizer and AlbertTokenizer of
transformers; ErnieTokenizer of PaddleNLP), not those of the library that this toolkit uses.
Vocabularies are trained on ud_en_ewt and ud_zh_gsdsimp (CC BY-SA 4.0) and snips_nlu (CC0). Letters with accents are
single characters in the texts: only the Python tokenizer of transformers 4 composes them, in cased text.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

SHARED = Path(os.environ.get("OAR_SHARED", "../shared")) / "data"
OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "data" / "tokenizers"
OWN = [
    "Hello, world!",
    "  two  spaces,\ttabs\u3000and\u00a0more \u200b",
    "don't won't it's I'm they'd",
    "Ünïcödé naïve café Straße İstanbul ΌΣΟΣ ǅ",
    "今天天气很好，我们去公园25℃吧。",
    "Mixed 中文 and English混排 のテスト 한국어 текст",
    "emoji 😀👍🏽👨‍👩‍👧 ok",
    "price: $3,000,000.00 or 9,5 €; 1/2 ½ ﬁne ①",
    "``quoted'' and ''other''",
    "[CLS] in the text [SEP] and a [MASK] here <mask> there </s>",
    "supercalifragilisticexpialidocious" * 4,
    "á é \ufffd \x07 control",
    "~～ ^ ` ™ © ° µ Ø ≠ ￥ ㎡",
    "x",
]


def read(name: str) -> list[str]:
    return [line for line in (SHARED / name).read_text(encoding="utf-8").split("\n") if line.strip()]


def sentences(name: str) -> list[str]:
    mark = "# text = "
    return [line[len(mark) :] for line in read(name) if line.startswith(mark)]


def committed() -> tuple[list[str], list[str]]:
    """English and Chinese texts whose licence allows to keep parts of them."""
    snips = [" ".join(json.loads(line)["tokens"]) for line in read("snips_nlu/train.jsonl")]
    return sentences("ud_en_ewt/train.conllu") + snips, sentences("ud_zh_gsdsimp/train.conllu")


def texts() -> list[str]:
    short = [[text for text in part if len(text) < 60] for part in committed()]
    return OWN + short[0][:18] + short[1][:18]


def real() -> list[str]:
    """10,000 lines in English, German and Chinese."""
    english = read("lm_text/wikitext2.test_a.txt") + read("lm_text/wikitext2.valid.txt")
    return english[:3500] + read("multi30k_en_de/train.de")[:2500] + read("chnsenticorp/train.tsv")[:4000]


def train() -> None:
    import sentencepiece
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    english, chinese = committed()
    for name in ("bert", "roberta", "albert", "albert_bpe"):
        (OUT / name).mkdir(parents=True, exist_ok=True)
    core = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=False)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=3200, special_tokens=special, show_progress=False)
    core.train_from_iterator(english + chinese, trainer)
    vocabulary = core.get_vocab()
    write(OUT / "bert" / "vocab.txt", "\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n")

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(english, trainer)
    core.model.save(str(OUT / "roberta"))

    for name, kind in (("albert", "unigram"), ("albert_bpe", "bpe")):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(english),
            model_prefix=str(OUT / name / "spiece"),
            model_type=kind,
            vocab_size=1000,
            normalization_rule_name="identity",  # the table of the usual rule alone is 240 KB
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            pad_piece="<pad>",
            control_symbols=["[CLS]", "[SEP]"],
            user_defined_symbols=["[MASK]"],
            num_threads=1,
            minloglevel=2,
        )
        (OUT / name / "spiece.vocab").unlink()


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def case(tokenizer) -> dict:
    """What a reference makes of the texts: the ids of 50, of pairs cut to 24 tokens, and the hash of 10,000 more."""
    found: dict = {"ids": [tokenizer(text)["input_ids"] for text in texts()], "pairs": []}
    for first, second in list(zip(texts(), texts()[1:]))[::5]:
        row = tokenizer(first, second, truncation="longest_first", max_length=24, return_token_type_ids=True)
        found["pairs"].append([row["input_ids"], row["token_type_ids"]])
    ids = [tokenizer(line)["input_ids"] for line in real()]
    found["real"] = hashlib.sha256(json.dumps(ids).encode()).hexdigest()
    found["real_tokens"] = sum(map(len, ids))
    return found


def files(name: str, cases: list[str]) -> Iterator[tuple[Path, str]]:
    target = OUT / "expected.json"
    if cases == ["ernie"]:
        from paddlenlp.transformers.ernie.tokenizer import ErnieTokenizer

        found = json.loads(target.read_text(encoding="utf-8"))
        tokenizer = ErnieTokenizer(str(OUT / "bert" / "vocab.txt"))
        tokenizer.sanitize_special_tokens()  # as from_pretrained does: [MASK] in a text is that token
        found["ernie"] = case(tokenizer)
    else:
        from transformers import AlbertTokenizer, BertTokenizer, RobertaTokenizer

        train()
        vocabulary = str(OUT / "bert" / "vocab.txt")
        found = {
            "texts": texts(),
            "bert": case(BertTokenizer(vocabulary)),
            "bert_cased": case(BertTokenizer(vocabulary, do_lower_case=False)),
            "roberta": case(RobertaTokenizer.from_pretrained(OUT / "roberta")),
            "albert": case(AlbertTokenizer(str(OUT / "albert" / "spiece.model"))),
            "albert_bpe": case(AlbertTokenizer(str(OUT / "albert_bpe" / "spiece.model"))),
        }
    yield target, json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n"

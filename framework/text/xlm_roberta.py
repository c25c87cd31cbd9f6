"""XLM-R's tokenizer: a SentencePiece model whose numbers are those of fairseq, one more than the model's own.

Paper: Conneau et al. 2020, https://arxiv.org/abs/1911.02116
Reference: PaddleNLP 2.6 paddlenlp/transformers/layoutxlm/tokenizer.py (`LayoutXLMTokenizer`), which reads the texts as
    they are: no case is changed, and special tokens that stand in a text are text.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from framework.core import bounded
from framework.core.errors import InputError
from framework.text.sentence_pieces import load_model

FILE = "sentencepiece.bpe.model"
BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3
_OFFSET = 1  # of the pieces' numbers


class XLMRobertaTokenizer:
    """Texts to numbers, without special tokens around them.

    Args:
        model: The bytes of a SentencePiece .model file.
        where: The file in messages.

    Raises:
        FormatError: the bytes are no such model. MissingExtraError: the library sentencepiece is not installed.
    """

    def __init__(self, model: bytes, where: object = FILE) -> None:
        self.core, self._size = load_model(model, where)
        self.model = model

    @classmethod
    def from_file(cls, path: str | Path) -> XLMRobertaTokenizer:
        """That of a file, or of a folder with sentencepiece.bpe.model in it; read again only where it has changed.

        Raises:
            InputError: there is no such file. Else as the class.
        """
        file = Path(path).expanduser()
        file = file / FILE if file.is_dir() else file
        if not file.is_file():
            raise InputError(
                "the tokenizer is missing",
                where=file,
                received="no such file",
                allowed=f"{FILE} of XLM-R, or a folder with it",
                fix="put the file of LayoutXLM's weights there; it comes with layoutxlm-base-uncased of PaddleNLP and "
                "with xlm-roberta-base",
            )
        about = file.stat()
        return _read(str(file), about.st_size, about.st_mtime_ns)

    @property
    def vocab_size(self) -> int:
        """Numbers that there are, with that of <mask>: 250,002 of XLM-R."""
        return self._size + _OFFSET + 1

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's pieces; [] of one of white space alone."""
        # The model's own 0 is its unknown piece; 1 and 2 are <s> and </s>, which never come of a text.
        return [piece + _OFFSET if piece else UNKNOWN for piece in self.core.EncodeAsIds(text)]


@lru_cache(maxsize=4)
def _read(path: str, size: int, changed: int) -> XLMRobertaTokenizer:
    data = bounded.read_bytes(path, bounded.VOCABULARY, "tokenizer", InputError)
    return XLMRobertaTokenizer(data, path)

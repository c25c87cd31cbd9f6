"""What only some domains can do: frozen dataclasses that a domain lists and that commands look up by their class; and
protocols that only some predictors keep to, which the routes of a server look for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from framework.core.errors import HubError
from framework.core.types import JSON
from framework.export import Artifact
from framework.workflow.domain.result import Result

if TYPE_CHECKING:  # what runs artifacts loads no training code
    from framework.engine.experiment import Experiment
    from framework.text.tokenizer import Tokenizer
    from framework.workflow.domain.domain import Model


class TaskAlias(NamedTuple):
    """What the name of a task stands for: a config's name, and options of the predictor that come with it."""

    config: str
    options: Mapping[str, object] = {}


@dataclass(frozen=True)
class TaskAliases:
    """Names of tasks that `predictor` takes in the place of a model's, such as "ner"."""

    names: Mapping[str, TaskAlias]


@dataclass(frozen=True)
class OptionModel:
    """An option of the predictor that stands for a model where none is named.

    Attributes:
        metavar: What its value is called in the usage of `oar infer`.
        purpose: What one gives it for, such as "to translate".
        model: The config's name.
    """

    option: str
    metavar: str
    purpose: str
    model: str


@dataclass(frozen=True)
class FallbackModel:
    """A model in the place of one whose weights cannot be had.

    Attributes:
        choose: The config's name, of which the log warns; None: there is none, and the error stands. Takes the model as
            it was asked for (a `DefaultName` where nobody named one), the overrides and the options of the call, and
            the error.
    """

    choose: Callable[[Model, Sequence[str], Mapping[str, object], HubError], str | None]


@dataclass(frozen=True)
class RuntimeSettings:
    """Overrides ("a.b=c") that change no program.

    Attributes:
        choose: More overrides of a configuration that options of the predictor ask for. Takes its file, what it says
            with the overrides of the call, and the options.
        split: Overrides that change the programs, and those that `apply` can change afterwards.
        apply: The artifact with overrides of the second kind. Raises: ConfigError.
    """

    choose: Callable[[Path, Mapping[str, Any], Mapping[str, object]], Sequence[str]]
    split: Callable[[Sequence[str]], tuple[tuple[str, ...], tuple[str, ...]]]
    apply: Callable[[Artifact, Sequence[str]], Artifact]


@dataclass(frozen=True)
class FolderImporter:
    """Models of other toolkits.

    Attributes:
        read: The artifact of a folder that another toolkit wrote, or None where this is no such folder.
    """

    read: Callable[[Path], Artifact | None]


@dataclass(frozen=True)
class FolderQuantization:
    """How the weights of a model are rounded.

    Attributes:
        bits: 4 or 8.
        method: One of FolderQuantizer.methods; None: the domain's choice.
        group: Inputs that share a scale, of 4 bits.
        data: A file of examples; None: there are none.
        examples, length: How many are taken, and of how many tokens each.
    """

    bits: int = 8
    method: str | None = None
    group: int = 128
    data: Path | None = None
    examples: int = 64
    length: int = 512


@dataclass(frozen=True)
class FolderQuantizer:
    """Models of other toolkits with weights of few bits, in a folder of the same form.

    Attributes:
        methods: Names of ways to round.
        accepts: Whether this is such a model. Opens little.
        write: Rounds the model of a source and writes the folder; lines that say what it cost. Raises: OarError.
    """

    methods: tuple[str, ...]
    accepts: Callable[[str], bool]
    write: Callable[[str, Path, FolderQuantization], Sequence[str]]


class FixedProgram(NamedTuple):
    """A program whose sizes are numbers.

    Attributes:
        sizes: Numbers for its symbolic sizes, one mapping for each combination that it takes.
        settings: Of the artifact's config, so that the predictor prepares its inputs in these sizes.
        vocabulary: What its outputs of whole numbers stand for, where they are no classes with labels.
    """

    sizes: tuple[Mapping[str, int], ...]
    settings: Mapping[str, JSON] = {}
    vocabulary: tuple[str, ...] = ()


@dataclass(frozen=True)
class FixedSizes:
    """Programs of fixed sizes, as phones run them.

    Attributes:
        choose: From the config of an artifact with one program, and the (height, width) that images should have, where
            that is asked for. None: its sizes follow from its inputs. Raises: ConfigError, where no program takes it.
    """

    choose: Callable[[Mapping[str, JSON], tuple[int, int] | None], FixedProgram | None]


@dataclass(frozen=True)
class ResultReader:
    """Results from their JSON, for clients of a server.

    Attributes:
        read: The result that `to_dict` of a predictor's result wrote, without its image. Raises: FormatError.
        format: The one of the domain's ResultFormats that `read` needs, a JSON object, where `to_dict` says too little.
    """

    read: Callable[[Mapping[str, JSON]], object]
    format: str | None = None


@dataclass(frozen=True)
class ExportExtras:
    """What an export does besides.

    Attributes:
        prepare: The experiment as its program is made; `predict.transforms` are settled then. Raises: ConfigError.
        files: Files that Paddle's toolkits write beside the program, by name, from the artifact's config.
    """

    prepare: Callable[[Experiment], Experiment]
    files: Callable[[Mapping[str, Any]], Mapping[str, bytes]]


@dataclass(frozen=True)
class FolderExport:
    """Models that are exported as the folder of another toolkit, and not as an artifact.

    Attributes:
        takes: Whether the model of an experiment is one.
        write: Writes the folder of an experiment, whose configuration is at the path, and returns it. Raises: OarError.
    """

    takes: Callable[[Experiment], bool]
    write: Callable[[Experiment, Path, Path], Path]


@dataclass(frozen=True)
class WebExport:
    """How a page in a browser runs models of the domain.

    Attributes:
        module: Of the page's modules (tools/web/src) the one that reads what the programs give, such as "boxes".
        describe: What that module needs, from an artifact. Raises: ConfigError, where the page cannot run it.
    """

    module: str
    describe: Callable[[Artifact], Mapping[str, JSON]]


class ResultFormat(NamedTuple):
    """A file that results are written as besides JSON and drawings.

    Attributes:
        media_type: As HTTP names it.
        suffix: Of the file, with its dot.
        write: Writes the file. Takes the results of one source, page by page, what the source is called, and the path.
            Raises: OarError.
        names: Other names of the format.
        media_types: Other names of its media type.
    """

    media_type: str
    suffix: str
    write: Callable[[Sequence[Result], str, Path], object]
    names: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultFormats:
    """Formats of results, by name, such as "md"."""

    formats: Mapping[str, ResultFormat]


class EmbeddingBatch(NamedTuple):
    """Embeddings of N texts.

    Attributes:
        vectors: [N, D] float32.
        token_counts: [N] int32: tokens of each text as the model read it, those of its prompt included.
    """

    vectors: np.ndarray
    token_counts: np.ndarray


class PairScores(NamedTuple):
    """How well each of N documents answers a query.

    Attributes:
        scores: [N] float32, the larger the better.
        token_counts: [N] int32: tokens of each pair as the model read it.
        are_probabilities: Whether the scores are in [0, 1], and not numbers of which a sigmoid makes such.
    """

    scores: np.ndarray
    token_counts: np.ndarray
    are_probabilities: bool = True


@runtime_checkable
class TextEmbedding(Protocol):
    """A predictor that gives texts embeddings. Whether its model does says `embedding_size`."""

    @property
    def embedding_size(self) -> int | None:
        """D; None: this model gives no embeddings."""
        ...

    @property
    def pooling(self) -> str:
        """How vectors of tokens become one, such as "cls" or "mean"; empty: it is not known."""
        ...

    def embed(
        self,
        texts: Sequence[str],
        prompt: str | None = None,
        prompt_name: str | None = None,
        dimensions: int | None = None,
    ) -> EmbeddingBatch:
        """The embeddings of texts.

        Args:
            prompt: Stands before each text, such as "query: "; "" is none.
            prompt_name: One of the model's own prompts, such as "query" or "document"; without it and `prompt` the
                model's default one, if any.
            dimensions: Only the first of D, at length 1 where the model's are.

        Raises:
            InputError: a text is none, there is no such prompt or not so many dimensions, or the model gives no
                embeddings.
        """
        ...


@runtime_checkable
class TextReranking(Protocol):
    """A predictor that says how well documents answer a query. Whether its model does says `reranks`."""

    @property
    def reranks(self) -> bool: ...

    def rerank(self, query: str, documents: Sequence[str], instruction: str | None = None) -> PairScores:
        """Scores in the order of the documents.

        Args:
            instruction: What the query asks for, of models that read one; None: the model's own.

        Raises:
            InputError: a text is none, the model reads no instruction, or it does not rank.
        """
        ...


@runtime_checkable
class TextTokenization(Protocol):
    """A predictor that says which tokens its model reads. Whether it can says `tokenizer`."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """What divides its texts; None: there is none, or texts are divided into words before."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a text, with those around it, at most."""
        ...

    def add_prompt(self, text: str, prompt_name: str | None = None) -> str:
        """The text behind a prompt of the model; None: its default one, if any. Raises: InputError: there is none of
        this name."""
        ...

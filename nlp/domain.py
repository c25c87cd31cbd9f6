"""Language as a domain: classes, tags, entities, similarity, masked tokens, answers and translations of texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from framework.config import Kind
from framework.core.errors import FormatError, InputError
from framework.export import Artifact
from framework.inference import Runtime
from framework.interop.weights.model_folder import CONFIG
from framework.io.data_check import Observe, Report
from framework.io.dataset import Dataset
from framework.text.transforms import Tokenize
from framework.workflow import Domain, option
from framework.workflow.domain.capabilities import (
    FolderExport,
    FolderImporter,
    ResultReader,
    TaskAlias,
    TaskAliases,
)
from framework.workflow.open.predict import make_predictor_function
from framework.workflow.runners.image_runner import load_transforms
from framework.workflow.runners.text_predictor import TextPredictor
from nlp.analyzer import EmbeddingSettings, TextAnalyzer
from nlp.contracts import TextTask
from nlp.json_results import result_from_dict
from nlp.language_models import TEXT_GENERATION
from nlp.processors import ProcessorContext
from nlp.quantize_folder import FOLDER_QUANTIZER

MODULES = "modules.json"  # of folders of sentence-transformers
if TYPE_CHECKING:  # what runs artifacts loads no training code
    from framework.engine.experiment import Experiment

# Names of PaddleNLP's Taskflow, and what they answer here.
TASKS = {
    "lexical_analysis": TaskAlias("bigru_crf_words_zh"),
    "word_segmentation": TaskAlias("bigru_crf_words_zh", {"view": "words"}),
    "pos_tagging": TaskAlias("bigru_crf_words_zh", {"view": "pairs"}),
    "pos_tagging_en": TaskAlias("bigru_crf_pos_en", {"view": "pairs"}),
    "intent": TaskAlias("text_cnn_snips"),
    # No weights of these come with the package: their data are for research only.
    "sentiment_analysis": TaskAlias("text_cnn_chnsenticorp"),
    "text_similarity": TaskAlias("simnet_bow_lcqmc"),
    "ner": TaskAlias("bigru_crf_ner_resume", {"view": "pairs"}),
}


@dataclass(frozen=True)
class TextOptions:
    """Options of `nlp.predictor`. Raises: InputError, where one is out of range."""

    top: int = option(5, "classes, or candidates, that a result holds", aliases=("topk",))
    batch_size: int | None = option(None, "how many run together", request=False)
    view: Literal["words", "pairs"] | None = option(
        None, "of tagged texts: their words, or pairs of words and tags", flag=False
    )
    prompt: str | None = option(
        None, "of models that embed texts: stands before each; or the name of one of the model's prompts"
    )

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError("a result holds a class", where="top", received=self.top, allowed="1 or more")


def import_folder(folder: Path) -> Artifact | None:
    """A folder of a fine-tuned model of transformers or PaddleNLP; None where it is none."""
    if not (folder / CONFIG).is_file() and not (folder / MODULES).is_file():
        return None
    from nlp import pretrained_artifact  # which loads model code

    return pretrained_artifact.import_folder(folder)


def is_decoder(experiment: Experiment) -> bool:
    """Whether a configuration is one of a model that writes."""
    from nlp import decoder_export  # which loads model code

    return decoder_export.is_decoder(experiment)


def export_decoder(experiment: Experiment, config: Path, folder: Path) -> Path:
    """Write the folder of a model that writes."""
    from nlp import decoder_export

    return decoder_export.export_decoder(experiment, config, folder)


class LanguageDomain(Domain[TextOptions]):
    """Texts."""

    name = "nlp"
    options = TextOptions
    suite = "paddlenlp"
    capabilities = (
        TaskAliases(TASKS),
        FolderImporter(import_folder),
        FolderExport(is_decoder, export_decoder),
        ResultReader(result_from_dict),
        TEXT_GENERATION,
        FOLDER_QUANTIZER,
    )

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        from nlp.data.check import validate_dataset  # what runs artifacts loads no data sets

        return validate_dataset(dataset, observe)

    def open(self, artifact: Artifact, options: TextOptions, runtime: Runtime) -> TextAnalyzer:
        config = artifact.config
        if "task" not in config or "buckets" not in config:
            raise FormatError(
                "the artifact does not hold a model of texts",
                where=str(config.get("name")),
                received="no task, or no buckets",
                allowed="one that `oar export` wrote from a configuration of configs/nlp",
            )
        task: TextTask = artifact.setting("task", Annotated[TextTask, Kind("task")], packages=self.packages)
        transforms = load_transforms(artifact, self.packages)
        labels, buckets = artifact.setting("labels"), artifact.setting("buckets", tuple[int, ...])
        context = ProcessorContext(transforms, labels, max(buckets), options.top)
        batch_size = artifact.setting("batch_size", int) if options.batch_size is None else options.batch_size
        texts = TextPredictor(
            runtime.open(artifact), task.processor(context), task.padding or {}, buckets, batch_size
        )
        embedding = artifact.setting("embedding", EmbeddingSettings, None)
        kind = str(artifact.config["task"].get("type", ""))  # type: ignore[union-attr]
        reranks = kind == "CrossEncoding" or (kind == "SequenceClassification" and len(labels) == 1)
        are_probabilities = getattr(task, "activation", "sigmoid") == "sigmoid"
        first = transforms[0] if transforms else None
        tokenize = first if isinstance(first, Tokenize) and first.unit in ("text", "subwords") else None
        return TextAnalyzer(
            texts, options.view, embedding, options.prompt, reranks, are_probabilities, tokenize
        )


DOMAIN = LanguageDomain()
predictor = make_predictor_function(DOMAIN.name, TextOptions, TextAnalyzer)

"""What every command calls, for all domains alike: models, artifacts, predictors, training, evaluation, export."""

from framework.workflow.domain.domain import Domain as Domain
from framework.workflow.domain.domain import find_domain as find_domain
from framework.workflow.domain.options import option as option
from framework.workflow.domain.predictor import ImageItem as ImageItem
from framework.workflow.domain.predictor import ImagePredictor as ImagePredictor
from framework.workflow.domain.predictor import LanguagePredictor as LanguagePredictor
from framework.workflow.domain.predictor import Predictor as Predictor
from framework.workflow.domain.predictor import RowPredictor as RowPredictor
from framework.workflow.domain.predictor import VisionPredictor as VisionPredictor
from framework.workflow.domain.result import ImageResult as ImageResult
from framework.workflow.domain.result import Result as Result
from framework.workflow.domain.result import TextResult as TextResult
from framework.workflow.open.artifacts import find_artifact as find_artifact
from framework.workflow.open.predict import open_predictor as open_predictor
from framework.workflow.open.predict import predictor as predictor

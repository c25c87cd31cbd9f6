"""What every command calls, for all domains alike: models, artifacts, predictors, training, evaluation, export."""

from framework.workflow.artifacts import find_artifact as find_artifact
from framework.workflow.domain import Domain as Domain
from framework.workflow.domain import find_domain as find_domain
from framework.workflow.options import option as option
from framework.workflow.predict import open_predictor as open_predictor
from framework.workflow.predict import predictor as predictor
from framework.workflow.predictor import ImageItem as ImageItem
from framework.workflow.predictor import LanguagePredictor as LanguagePredictor
from framework.workflow.predictor import Predictor as Predictor
from framework.workflow.predictor import VisionPredictor as VisionPredictor
from framework.workflow.result import ImageResult as ImageResult
from framework.workflow.result import Result as Result
from framework.workflow.result import TextResult as TextResult

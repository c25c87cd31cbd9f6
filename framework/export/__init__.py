"""Artifacts: a program, its weights and everything that inference needs to know, in one folder."""

from framework.export.artifact import CONFIG as CONFIG
from framework.export.artifact import Artifact as Artifact
from framework.export.artifact import load_artifact as load_artifact
from framework.export.program import PLATFORMS as PLATFORMS
from framework.export.program import TensorSpec as TensorSpec
from framework.export.program import lower_layer as lower_layer
from framework.export.program import lower_program as lower_program
from framework.export.program import size_fits as size_fits

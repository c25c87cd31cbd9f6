"""paddle.jit.translated_layer: the endings of the files of a saved model, beside its class."""

from framework.paddle._kernel.modules import complete as _complete

INFER_MODEL_SUFFIX, INFER_PARAMS_SUFFIX, INFER_PARAMS_INFO_SUFFIX = (
    ".pdmodel",
    ".pdiparams",
    ".pdiparams.info",
)
INFER_PROPERTY_SUFFIX = ".meta"

_complete(__name__)

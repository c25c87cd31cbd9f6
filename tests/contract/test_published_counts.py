"""Every size table says how many parameters a row has when published, `params`, and the model of that row has them.

A model of one size may say so in its module's PARAMS.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np
import pytest

from framework.config import available, build
from framework.config.registry import find
from tests.contract.cases import CASES

PACKAGES = ("ocr", "detection", "segmentation", "nlp", "zoo.classification", "zoo", "framework")
# Those whose table has no `params`: counts of text models stand below, by variant; nobody publishes those of these
# backbones without the detector on them, nor of translation models, which have the vocabulary of their data.
WITHOUT_PARAMS = {"CSPDarkNet", "DBNet", "ESNet", "TextClassifier", "TextRecognizer", "Transformer"}
# Values in the state dict at the published size, by variant, or by name where a model has none; of the form that
# upstream publishes. PP-OCRv6 and the classifiers: counted in the official programs; DBNet on ResNet: in upstream's
# code; other detectors and recognisers: upstream's own exports keep some normalisations, so the deploy form has these
# values after folding them (tests/golden).
PUBLISHED: dict[str, tuple[bool, int]] = {
    "PP-OCRv3_mobile_det": (True, 573_905),
    "PP-OCRv4_mobile_det": (True, 1_171_505),
    "PP-OCRv4_server_det": (True, 28_288_258),
    "PP-OCRv5_mobile_det": (True, 1_171_505),
    "PP-OCRv5_server_det": (True, 21_909_474),
    "PP-OCRv6_tiny_det": (True, 428_405),
    "PP-OCRv6_small_det": (True, 2_453_353),
    "PP-OCRv6_medium_det": (True, 15_487_329),
    "PP-OCRv3_mobile_rec": (True, 2_633_369),
    "PP-OCRv4_mobile_rec": (True, 2_687_653),
    "PP-OCRv4_server_rec": (True, 22_575_177),
    "PP-OCRv4_server_rec_doc": (True, 23_664_903),
    "PP-OCRv5_mobile_rec": (True, 4_110_613),
    "PP-OCRv5_server_rec": (True, 21_017_465),
    "PP-OCRv6_tiny_rec": (True, 1_103_318),
    "PP-OCRv6_small_rec": (True, 5_266_550),
    "PP-OCRv6_medium_rec": (True, 19_113_430),
    "DB_R50_vd": (False, 25_482_722),
    "DB++_R50": (False, 26_482_411),
    "ch_ppocr_mobile_v2.0_cls": (False, 133_628),
    "PP-LCNet_x0_25_textline_ori": (False, 79_354),
    "PP-LCNet_x1_0_textline_ori": (False, 1_685_026),
    "PP-LCNet_x1_0_doc_ori": (False, 1_687_588),
    "CRNN": (False, 454_321),  # en_number_mobile_v2.0_rec
}
MODELS = sorted(
    {
        (kind, module, name)
        for packages in (("ocr", "zoo", "framework"), ("detection",), ("segmentation",), ("nlp",))
        for kind in ("model", "backbone")
        for name, module in available(kind, packages).items()
    }
)


def counts(config: Any) -> set[int]:
    """Parameters of the model, of it without its classifier, and of its deploy form."""
    fields = {field.name for field in dataclasses.fields(config)}
    forms = [config]
    if "num_classes" in fields:
        forms.append(dataclasses.replace(config, num_classes=0))
    if "deploy" in fields:
        forms += [dataclasses.replace(form, deploy=True) for form in forms]
    return {sum(parameter.size for parameter in build(form).parameters()) for form in forms}


@pytest.mark.parametrize(
    ("kind", "module", "name"), MODELS, ids=[f"{kind}-{name}" for kind, _, name in MODELS]
)
def test_published_parameters(kind: str, module: str, name: str) -> None:
    entry = find(kind, name, (module.partition(".")[0],))
    if kind == "backbone" and name in available("model", (module,)):
        return  # a classifier: counted as a model
    source = sys.modules[entry.module]
    table = getattr(entry.config, "variants", None) or getattr(source, "VARIANTS", None)
    if table is None:
        if "PARAMS" in vars(source):
            assert source.PARAMS in counts(entry.config())
        return
    missing = [variant for variant, row in table.items() if not hasattr(row, "params")]
    assert bool(missing) == (name in WITHOUT_PARAMS), f"{name}: rows without `params`: {missing}"
    for variant, row in table.items():
        if variant not in missing:
            found = counts(entry.config(variant=variant))
            assert row.params in found, f"{name} {variant}: {row.params:,} are published, ours has {found}"


@pytest.mark.parametrize("variant", PUBLISHED)
def test_values_of_ocr_models(variant: str) -> None:
    """With the running statistics, as the files of weights have them."""
    (case,) = [case for case in CASES if (case.variant or case.name) == variant]
    deploy, values = PUBLISHED[variant]
    if variant == "CRNN":
        case = dataclasses.replace(case, full=dataclasses.replace(case.full, num_classes=97))
    shapes = case.build(deploy=deploy, full=True).state_shapes()
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == values

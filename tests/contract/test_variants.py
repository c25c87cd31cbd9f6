"""A variant that the table does not have is refused, with the known ones and the nearest, by all that have a table."""

from __future__ import annotations

import pytest

from framework.config import available
from framework.config.registry import Entry, find
from framework.core.errors import ConfigError, nearest
from tests.contract.cases import sized, variants_of

DOMAINS = ("ocr", "detection", "segmentation", "nlp")
ENTRIES = {
    (kind, name): entry
    for domain in DOMAINS
    for kind in ("model", "backbone")
    for name in available(kind, (domain, "zoo"))
    if "" not in variants_of(entry := find(kind, name, (domain, "zoo")))
    and "variant" in entry.config.__dataclass_fields__
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=["-".join(key) for key in ENTRIES])
def test_an_unknown_variant_is_refused(entry: Entry) -> None:
    known = list(variants_of(entry))
    assert entry.layer is not None
    for wrong in (known[0][:-1] + "?", "no such variant"):
        with pytest.raises(ConfigError) as error:
            entry.layer(sized(entry, wrong, vocab_size=20))
        message = str(error.value)
        assert "unknown variant" in message and repr(wrong) in message
        assert all(variant in message for variant in known)
        near = nearest(wrong, known)
        assert near is None or f"did you mean {near!r}?" in message

from __future__ import annotations

import pytest

from framework.core import errors


def test_the_message_lists_its_parts_one_a_line():
    error = errors.InputError(
        "is broken", where="a.jpg", received="1 byte", allowed="a JPEG", fix="copy it again"
    )
    assert str(error).splitlines() == [
        "a.jpg: is broken",
        "  received: 1 byte",
        "  allowed: a JPEG",
        "  what to do: copy it again",
    ]


def test_parts_that_are_not_given_are_left_out():
    assert str(errors.ShapeError("axes differ")) == "axes differ"
    error = errors.ShapeError("axes differ", received=0)
    assert str(error) == "axes differ\n  received: 0"
    assert (error.problem, error.received, error.where, error.fix) == ("axes differ", 0, None, None)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ConfigError", ValueError),
        ("FormatError", ValueError),
        ("WeightError", ValueError),
        ("InputError", ValueError),
        ("ShapeError", ValueError),
        ("DeviceError", RuntimeError),
        ("HubError", RuntimeError),
        ("TraceError", RuntimeError),
        ("MissingExtraError", ImportError),
    ],
)
def test_each_error_is_also_its_builtin(name, builtin):
    cls = getattr(errors, name)
    assert issubclass(cls, errors.OarError) and issubclass(cls, builtin)


def test_a_missing_extra_names_the_command_that_installs_it():
    text = str(errors.MissingExtraError("pyclipper", "ocr", "text detection"))
    assert "'pyclipper' is not installed" in text and 'pip install "oar-toolkit[ocr]"' in text


def test_nearest_finds_a_typo_and_nothing_far_away():
    assert errors.nearest("backbnoe", ["backbone", "neck"]) == "backbone"
    assert errors.nearest("zzz", ["backbone", "neck"]) is None

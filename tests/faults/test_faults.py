"""The lines that `python -m tests.faults` changes stand in the sources: a rename has to change faults.yml too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.__main__ import Fault, find_tests, read_faults

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("fault", read_faults(), ids=lambda fault: fault.why)
def test_its_line_stands_once_and_its_tests_are_there(fault: Fault) -> None:
    fault.locate(REPO)
    assert find_tests(REPO, fault.tests)

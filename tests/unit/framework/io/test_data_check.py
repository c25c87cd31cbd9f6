from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from framework.core.errors import InputError
from framework.io.data_check import Report, format_table, print_reports, read_samples


@dataclass(frozen=True)
class Lines(Report):
    broken: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    def summary(self) -> list[str]:
        return ["2 lines"]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {"broken": self.broken, "empty": self.empty}


def test_a_report_lists_its_faults() -> None:
    assert str(Lines(("a", "b"))).splitlines() == ["2 lines", "2 broken", "  a", "  b", "0 empty"]
    assert Lines().is_clean and not Lines(empty=("a",)).is_clean


def test_long_lists_are_cut() -> None:
    lines = str(Lines(tuple(map(str, range(12))))).splitlines()
    assert lines[1:3] == ["12 broken", "  0"] and lines[-3:] == ["  9", "  ... and 2 more", "0 empty"]
    assert "more" not in str(Lines(tuple(map(str, range(10)))))


def test_a_table() -> None:
    table = format_table({"count": 7, "share": 5}, [("cat", "3", "75.0%"), ("elephant", "1", "25.0%")])
    assert table == [
        "class       count  share",
        "cat             3  75.0%",
        "elephant        1  25.0%",
    ]
    assert format_table({"count": 5}, []) == ["class  count"]


def test_samples_that_cannot_be_read() -> None:
    class Samples:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> str:
            if index < 2:
                raise InputError(
                    "no image", where=f"{index}.png", received="text" if index else None, fix="save it again"
                )
            return "c"

    broken: list[str] = []
    assert list(read_samples(Samples(), broken)) == ["c"]
    assert broken == ["0.png: no image; what to do: save it again", "1.png: no image (text)"]


def test_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Iterator[tuple[str, Report]]:
        yield "", Lines()
        raise InputError("there is no such folder")

    assert print_reports([("train", Lines()), ("eval", Lines())]) == 0
    assert capsys.readouterr().out.startswith("== train\n2 lines\n")
    assert print_reports([("", Lines(("a",))), ("", Lines())]) == 1
    assert capsys.readouterr().out.startswith("2 lines\n")
    assert print_reports(fails()) == 2
    assert "there is no such folder" in capsys.readouterr().err

"""Which ids of a table get a row: the core's settings (framework/nn/table_options.py) under Paddle's names."""

from __future__ import annotations

from framework.nn import table_options


class CountFilterEntry(table_options.CountFilterEntry):
    """Ids that were met `count_filter` times."""

    def _to_attr(self) -> str:
        return self.to_attr()


class ProbabilityEntry(table_options.ProbabilityEntry):
    """Ids by chance, each time that they are met."""

    def _to_attr(self) -> str:
        return self.to_attr()


class ShowClickEntry(table_options.ShowClickEntry):
    """Ids by scores of shows and clicks, which these inputs hold."""

    def _to_attr(self) -> str:
        return self.to_attr()

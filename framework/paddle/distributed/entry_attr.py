"""Which ids of a table get a row: the core's settings (framework/nn/table_options.py) under Paddle's names."""

from __future__ import annotations

from framework.nn import table_options


class EntryAttr:
    """The base of Paddle's rules of this kind; those below are complete."""

    def _to_attr(self) -> str:
        """Raises: NotImplementedError: a rule says what it is."""
        raise NotImplementedError("EntryAttr is base class")


class CountFilterEntry(table_options.CountFilterEntry, EntryAttr):
    """Ids that were met `count_filter` times."""

    def _to_attr(self) -> str:
        return self.to_attr()


class ProbabilityEntry(table_options.ProbabilityEntry, EntryAttr):
    """Ids by chance, each time that they are met."""

    def _to_attr(self) -> str:
        return self.to_attr()


class ShowClickEntry(table_options.ShowClickEntry, EntryAttr):
    """Ids by scores of shows and clicks, which these inputs hold."""

    def _to_attr(self) -> str:
        return self.to_attr()

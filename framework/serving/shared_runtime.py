"""A Runtime that opens each artifact once: predictors that differ in their options alone share their engines."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping

from framework.export import Artifact
from framework.export.program_bytes import Program
from framework.inference import Runtime
from framework.inference.engine import Engine


class SharedRuntime(Runtime):
    """As `Runtime`; an engine lives as long as a predictor holds it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_cache", _EngineCache())

    _cache: _EngineCache

    def open(self, artifact: Artifact) -> Engine:
        with self._cache.lock:
            engine = self._cache.find(artifact.programs)
            if engine is None:
                engine = self.open_engine(artifact)
                self._cache.add(artifact.programs, engine)
            return engine

    def open_engine(self, artifact: Artifact) -> Engine:
        """An engine that no predictor holds yet."""
        return super().open(artifact)

    @property
    def engines(self) -> tuple[Engine, ...]:
        """Those that are open, in the order in which they were opened."""
        return self._cache.engines


class _EngineCache:
    """Engines by the programs that they run. The programs are held, so that no other gets their identity."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._entries: dict[int, tuple[Mapping[str, Program], weakref.ref[Engine]]] = {}

    def find(self, programs: Mapping[str, Program]) -> Engine | None:
        entry = self._entries.get(id(programs))
        return None if entry is None else entry[1]()

    def add(self, programs: Mapping[str, Program], engine: Engine) -> None:
        self._entries[id(programs)] = (programs, weakref.ref(engine))
        weakref.finalize(engine, self._entries.pop, id(programs), None).atexit = False

    @property
    def engines(self) -> tuple[Engine, ...]:
        references = [reference for _, reference in list(self._entries.values())]
        return tuple(engine for one in references if (engine := one()) is not None)

"""What /metrics says, for Prometheus."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import choose_encoder
from prometheus_client.multiprocess import MultiProcessCollector

from framework.serving.models import ModelStore

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable of the folder where the processes of one server write what they count."""


class Metrics:
    """Counters of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._of_requests: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.requests = Counter(
            "oar_requests",
            "Requests that were answered",
            ["route", "model", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "oar_request_seconds", "From the first byte of a request to the last of its answer", ["route", "model"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.batch_items = Histogram(
            "oar_batch_items", "Items that ran together", ["model"], buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self.registry,
        )  # fmt: skip
        self.batch_seconds = Histogram(
            "oar_batch_seconds", "Of one batch", ["model"], buckets=_SECONDS, registry=self.registry
        )
        self.under_way = Gauge(
            "oar_requests_under_way", "Requests that were taken and not yet answered", ["model"],
            registry=self.registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self.texts = Gauge(
            "oar_texts", "Texts that are written, and that wait for a slot", ["model", "state"],
            registry=self.registry, multiprocess_mode="livesum",
        )  # fmt: skip
        self.tokens = Counter(
            "oar_tokens", "Tokens of prompts, and of texts that were written", ["model", "kind"],
            registry=self.registry,
        )  # fmt: skip
        self.first_token_seconds = Histogram(
            "oar_first_token_seconds", "From a request to the first token of its text", ["model"],
            buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.ready = Gauge(
            "oar_model_ready", "1 where a model takes requests", ["model"], registry=self.registry,
            multiprocess_mode="livemin",
        )  # fmt: skip

    def observe_batch(self, model: str, count: int, seconds: float) -> None:
        """A batch has run."""
        self.batch_items.labels(model).observe(count)
        self.batch_seconds.labels(model).observe(seconds)

    def count_tokens(self, model: str, prompt: int, generated: int) -> None:
        """A text was written."""
        self.tokens.labels(model, "prompt").inc(prompt)
        self.tokens.labels(model, "generated").inc(generated)

    def observe_request(self, route: str, model: str, status: int, seconds: float) -> None:
        """A request was answered. `route` is the pattern of its address, so that no client makes new labels."""
        key = route, model, status
        if (series := self._of_requests.get(key)) is None:
            series = self.requests.labels(*key), self.seconds.labels(route, model)
            self._of_requests[key] = series
        counter, histogram = series
        counter.inc()
        histogram.observe(seconds)

    def text(self, store: ModelStore, accept: str | None = None) -> tuple[bytes, str]:
        """What is counted, of several processes all together, and its media type: Prometheus' text, or OpenMetrics
        where `accept`, the header of a request, names it."""
        for model in store.sources:
            self.under_way.labels(model.name).set(model.admitted)
            self.ready.labels(model.name).set(model.ready)
        for model in store.generators.values():
            running, waiting = model.load
            self.texts.labels(model.name, "running").set(running)
            self.texts.labels(model.name, "waiting").set(waiting)
        registry = self.registry
        if SHARED in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        write, media_type = choose_encoder(accept or "")
        return write(registry), media_type

"""Paddle's metrics: `compute` on a batch, `update` with its result, `accumulate` over all, `reset`."""

from framework.metric.classification import Accuracy as Accuracy
from framework.metric.classification import Auc as Auc
from framework.metric.classification import Metric as Metric
from framework.metric.classification import Precision as Precision
from framework.metric.classification import Recall as Recall
from framework.metric.classification import accuracy as accuracy
from framework.metric.classification import top_k_correct as top_k_correct

"""Image classification: data sets, the task and its results."""

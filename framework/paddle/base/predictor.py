"""Predictors by the names that they had before paddle.inference."""

from __future__ import annotations

from framework.inference.paddle_api import Config, Handle, Predictor


class PaddlePredictor(Predictor):
    """A predictor whose inputs and outputs are called tensors, and that runs by `zero_copy_run`."""

    def get_input_tensor(self, name: str) -> Handle:
        """As `get_input_handle`."""
        return self.get_input_handle(name)

    def get_output_tensor(self, name: str) -> Handle:
        """As `get_output_handle`."""
        return self.get_output_handle(name)

    def get_input_tensor_shape(self) -> dict[str, list[int]]:
        """The shapes of the inputs; -1 for a size that may change."""
        shapes = {name: self._engine.inputs[name].shape for name in self.get_input_names()}
        return {name: [s if isinstance(s, int) else -1 for s in shape] for name, shape in shapes.items()}

    def zero_copy_run(self) -> bool:
        """As `run` without arguments."""
        return bool(self.run())


def create_paddle_predictor(config: Config) -> PaddlePredictor:
    """A predictor for the model of `config`. Raises: what `paddle.inference.create_predictor` raises."""
    return PaddlePredictor(config)

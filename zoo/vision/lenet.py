"""LeNet: the first convolutional network for digits, in the form that Paddle ships.

Paper: LeCun et al. 1998, http://yann.lecun.com/exdb/publis/pdf/lecun-98.pdf, figure 2
Reference: python/paddle/vision/models/lenet.py
Differs: images of three equal channels, as data sets give them, are averaged to the one that the network takes.
Weights: none published; 61,610 parameters at 10 classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax

from framework import nn
from framework.config import register
from zoo.contracts import Contract


@dataclass(frozen=True)
class LeNetConfig:
    """The network for 28x28 images of one channel."""

    num_classes: int = 10


@register("model", config=LeNetConfig)
class LeNet(nn.Model[LeNetConfig]):
    """[N, 28, 28, 1 or 3] float32 to logits [N, num_classes]."""

    contract = Contract(inputs=("n", 28, 28, 3))

    def __init__(self, config: LeNetConfig) -> None:
        super().__init__(config)
        self.features = nn.Sequential(
            nn.Conv2D(1, 6, 3, stride=1, padding=1),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
            nn.Conv2D(6, 16, 5, stride=1, padding=0),
            nn.ReLU(),
            nn.MaxPool2D(2, 2),
        )
        self.fc = nn.Sequential(nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, config.num_classes))

    def forward(self, x: jax.Array) -> jax.Array:
        x = self.features(x.mean(axis=-1, keepdims=True))  # [N, 5, 5, 16]
        x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)  # weights expect channels first: [N, 400]
        return self.fc(x)

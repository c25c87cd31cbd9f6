"""paddle.incubate: what programs written for Paddle use of it."""

from __future__ import annotations

from framework.paddle.incubate import autograd as autograd

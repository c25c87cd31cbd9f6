"""paddle.hapi: Model, callbacks, summary and flops."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.hapi import callbacks as callbacks
from framework.paddle.hapi.model import Model
from framework.paddle.hapi.summary import flops, summary

__all__ = ["Model", "flops", "summary"]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)

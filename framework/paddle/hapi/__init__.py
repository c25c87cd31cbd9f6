"""paddle.hapi: Model, callbacks, summary and flops."""

from framework.paddle.hapi import callbacks as callbacks
from framework.paddle.hapi.model import Model
from framework.paddle.hapi.summary import flops, summary

__all__ = ["Model", "flops", "summary"]

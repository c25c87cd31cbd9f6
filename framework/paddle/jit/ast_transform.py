from __future__ import annotations


def transformed(f):
    return f

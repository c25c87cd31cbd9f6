"""Measurements against peers: `python -m tools.bench`, see __main__.py."""

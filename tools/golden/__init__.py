"""Reference outputs that tests/golden compares with: `python -m tools.golden`, see __main__.py."""

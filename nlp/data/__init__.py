"""Data sets of texts. `python -m nlp.data check <file>` checks one."""

"""Scores of documents: text, tables and order against a truth, and OmniDocBench."""

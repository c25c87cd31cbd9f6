"""Formulas: recognition, LaTeX, scores."""

"""Weights and graphs of other frameworks, from one form to another."""

"""Formats in which a program leaves: one package a format."""

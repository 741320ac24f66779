"""Statements, carried out: a file for each kind."""

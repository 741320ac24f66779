"""Clauses that are rewritten into others before anything is bound."""

"""Syntax trees of statements: frozen values that say what is to be done."""

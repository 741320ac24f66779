"""Syntax trees to plans: names are looked up, types are found, and clauses become nodes."""

"""Expressions: what each name, call and literal means."""

"""Rows: hashing, numbering, sorting, grouping and joining."""

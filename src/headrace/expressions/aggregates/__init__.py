"""Aggregate functions: what they take, keep and give, and their order."""

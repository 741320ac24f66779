"""Queries that may be behind others: which of them takes rows next, and how many."""

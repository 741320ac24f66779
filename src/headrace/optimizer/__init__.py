"""Rewrite rules on logical plans, one per file."""

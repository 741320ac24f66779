"""Queries WITHIN MEMORY: how much of their rows joins remember, so that what they keep is within a limit."""

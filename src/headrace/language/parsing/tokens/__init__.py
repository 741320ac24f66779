"""Tokens one by one, and what a slip of the pen may have meant."""

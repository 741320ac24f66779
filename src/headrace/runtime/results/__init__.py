"""Committed results, read in the views that people ask for."""

"""Experiments of the papers, run again: what they print, and what is measured here."""

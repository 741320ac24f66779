"""Texts: CSV, JSON and change records, cut into blocks of whole lines."""

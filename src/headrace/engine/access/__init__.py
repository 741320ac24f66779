"""Policies: the files, formats and functions that a piece of SQL may reach, and secret options."""

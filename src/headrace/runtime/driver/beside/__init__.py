"""Queries that are brought to the present beside a run, over rows from before they were added."""

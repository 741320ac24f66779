"""Queries of which rows are left out: estimates of the answer, and bounds."""

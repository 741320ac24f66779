"""Aggregation: sums that elements add to, and the values that are live where sums do not do."""

"""The values of groups: extremes, ranks, multisets, the first k."""

"""Plan migration: a query that runs is exchanged for an equal plan, by itself or when asked."""

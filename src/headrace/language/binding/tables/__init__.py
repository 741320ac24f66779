"""FROM: joins, relations, functions that yield tables, and their columns."""

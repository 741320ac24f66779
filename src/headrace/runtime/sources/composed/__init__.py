"""Sources made of others, of rows that are there, or of a generator."""

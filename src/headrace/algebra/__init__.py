"""The logical algebra: plan nodes, their properties, and their explanation."""

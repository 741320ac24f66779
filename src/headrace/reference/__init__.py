"""The definitions: a slow, obvious evaluator on contents, in plain Python. For tests alone."""

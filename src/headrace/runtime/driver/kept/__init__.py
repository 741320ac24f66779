"""The things that a run keeps between epochs: results, dead letters and rows of streams."""

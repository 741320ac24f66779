"""What a run keeps between epochs: results, dead letters and rows of streams."""

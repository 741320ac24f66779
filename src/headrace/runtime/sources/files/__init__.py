"""Files and addresses: where they are, and which a pattern names."""

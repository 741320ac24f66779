"""Rules about joins: their order, what is done before them, and which kind they are."""

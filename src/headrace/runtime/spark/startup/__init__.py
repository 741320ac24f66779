"""The start of Spark and its workers, made quick: ahead of need, mapped, kept waiting, kept running."""

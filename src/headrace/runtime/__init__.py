"""The runtime: query graph, epochs, store, sources and sinks, in this process or on Spark."""

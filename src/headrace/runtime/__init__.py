"""The runtime, as the data flows: sources, tasks, journal, intake and results, driver and delivery, Spark."""

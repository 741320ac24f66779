"""Who has the processor next: policies as functions of what waits, and a simulator that they drive."""

"""Changes of the plan between two epochs, a file for each statement that asks for one."""

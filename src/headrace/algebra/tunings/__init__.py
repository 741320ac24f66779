"""Parameters of operators that change over application time, within bounds."""

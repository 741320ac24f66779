"""`python -m headrace`: the command `headrace`."""

from headrace_command import main

main()

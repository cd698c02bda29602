"""`python -m lupi` is the `lupi` command."""

from lupi.cli import main

main()

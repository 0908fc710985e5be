"""`python -m igcd`."""

from igcd.cli import main

main()

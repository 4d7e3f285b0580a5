"""python -m kvbench.cli: the kvbench program where no script of that name is installed."""

from kvbench.cli import main

main()

"""python -m kvbench.cli: run the kvbench program if no script of that name is installed."""

from kvbench.cli import main

main()

"""Commands that show what is here: machine, kernels, suites, plans."""

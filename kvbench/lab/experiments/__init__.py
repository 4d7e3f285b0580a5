"""One module for each experiment."""

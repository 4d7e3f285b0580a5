"""What was measured: launches, their medians and intervals, ceilings, and the tables of them."""

"""What was measured: launches with their medians and intervals, ceilings, and tables."""

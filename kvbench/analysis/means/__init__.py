"""What the numbers mean: for published models, for other engines, and for several machines."""

"""What it means: for published models, for storing, for other engines, and for the first screen."""

"""Find out what limits a point."""

"""What limits a point."""

"""What samples say. Pure functions: nothing here measures, reads files or prints."""

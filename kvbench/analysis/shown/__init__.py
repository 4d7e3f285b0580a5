"""Which rows each figure shows, with every number that it draws: one file for each."""

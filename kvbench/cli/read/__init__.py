"""Commands that read runs which were measured before."""

"""Commands that judge a difference."""

"""Sentences, by topic: analysis hands over numbers and words, and here they are put."""

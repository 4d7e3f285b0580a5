"""Experiments that explain a cache: each prints a table and ends with one sentence."""

"""Experiments that explain a cache: each prints a table, draws a figure and ends with one sentence."""

from kvbench.lab.experiment import Outcome, Setup, about, find, names

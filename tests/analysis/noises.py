"""Noise of made-up launches, [suites, points, launches], without any change."""

import numpy as np
from scipy.stats import binom

DICE = np.random.default_rng(20261121)


def most(trials, chance):
    """The most successes that this chance plausibly gives: more of them show that the chance is
    larger.
    """
    return int(binom.ppf(0.9999, trials, chance))


def lognormal(shape):
    return DICE.normal(0, 0.03, shape)


def bimodal(shape):
    """A third of the launches are 25 % slower: another state."""
    return DICE.normal(0, 0.02, shape) + 0.22 * (DICE.random(shape) < 1 / 3)


def spiked(shape):
    return DICE.normal(0, 0.02, shape) + DICE.exponential(1.0, shape) * (DICE.random(shape) < 0.05)


def heavy(shape):
    return 0.02 * DICE.standard_t(2, shape)


def shared(shape):
    """All points of a launch share most of their noise."""
    suites, _, launches = shape
    return DICE.normal(0, 0.05, (suites, 1, launches)) + DICE.normal(0, 0.02, shape)


def unequal(shape):
    """Points differ in noise, but each is equally noisy in all launches."""
    return DICE.normal(0, 0.1, shape) * np.random.default_rng(1).lognormal(-1, 1, (*shape[:2], 1))


def autocorrelated(shape):
    """A part of the noise of one launch remains in the next."""
    noise = lognormal(shape)
    for launch in range(1, shape[-1]):
        noise[..., launch] += 0.5 * noise[..., launch - 1]
    return noise


def drift(shape):
    """The second of each pair is always slower, and more so in later launches."""
    return np.linspace(0, 0.2, shape[-1]) + DICE.normal(0, 0.01, shape)


EXCHANGEABLE = (lognormal, bimodal, spiked, heavy, shared, unequal)


def tossed(noise):
    """A coin decides in each launch which side came first, so that either sign is equally
    likely.
    """
    return lambda shape: noise(shape) * DICE.choice((-1.0, 1.0), shape)


PAIRED = [*map(tossed, (lognormal, bimodal, spiked, heavy, unequal, autocorrelated, drift)), shared]

"""Suites of a few axes, expanded on a made-up machine."""

from kvbench.plan import Site, expand
from kvbench.suite import load
from tests.plan.test_plan import GIB, TWO

GEOMETRY = 'q_heads = 32\nkv_heads = 8\nhead_dim = 128\nisa = "scalar"\npages = "base"\n'


def site(machine=TWO, memory=64 * GIB, **facts):
    return Site(machine, memory, **{"pages": ("base", "thp", "huge")} | facts)


def expanded(folder, axes, machine=TWO, memory=64 * GIB, **facts):
    """A suite with these axes, and with further tables if given."""
    path = folder / "x.toml"
    path.write_text(f'question = "?"\n[axes]\n{GEOMETRY}{axes}')
    return expand(load(path), site(machine, memory, **facts))

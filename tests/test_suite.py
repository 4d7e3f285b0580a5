"""The list of models."""

import pytest

from kvbench.errors import BadArgument
from kvbench.suite import model, models


def test_every_model_is_whole():
    for name, shape in models().items():
        assert shape.q_heads % shape.kv_heads == 0, name
        assert min(shape.layers, shape.head_dim, shape.max_context) > 0, name
        assert shape.source.endswith("config.json"), name
        assert bool(shape.window_every) <= bool(shape.window), name


def test_a_model_that_was_checked_by_hand():
    llama = model("llama-3-8b")
    assert (llama.layers, llama.q_heads, llama.kv_heads, llama.head_dim) == (32, 32, 8, 128)


def test_an_unknown_model_lists_the_known():
    with pytest.raises(BadArgument) as caught:
        model("llama-9")
    assert "llama-9" in caught.value.args[0]
    assert "llama-3-8b" in caught.value.hint

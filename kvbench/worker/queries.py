"""The queries to a decode's layers, room for their answers, and the check of these."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from kvbench.errors import WrongAnswer
from kvbench.model import Point, Shape
from kvbench.model.masks import TREE, tokens_seen
from kvbench.oracle import PLAIN
from kvbench.worker.answers import Answer, Answers, scores_of
from kvbench.worker.content import SEED
from kvbench.worker.room import Room


def asked_of(shape: Shape) -> dict[str, Any]:
    """Arguments of decode_task: the mask, and what changes scores, if anything."""
    words = np.array(tokens_seen(TREE, shape.q_len), dtype=np.uint32)
    tree = np.tile(words, (shape.batch, 1)) if shape.mask == TREE else None
    usual, own = PLAIN._asdict(), scores_of(shape)._asdict()
    given = {name: own[name] for name in own if own[name] != usual[name]}
    return {"mask": shape.mask, "tree": tree} | {
        name: np.array(value, dtype=np.float32) if isinstance(value, tuple) else value
        for name, value in given.items()
    }


class Queries:
    """The queries and answers of a decode's layers. `asked`: [batch][q_heads][head_dim], with
    several queries [batch][q_len][q_heads][head_dim]. `q`: the same for each layer. `out`: the same
    with the width of V. `wrong`: makes an error from a text.
    """

    def __init__(
        self, point: Point, room: Room, answers: Answers, wrong: Callable[[str], WrongAnswer]
    ) -> None:
        self._point, self._room, self._answers, self._wrong = point, room, answers, wrong
        shape = point.shape
        several = (shape.q_len,) if shape.q_len > 1 else ()
        dims = (room.slices, shape.batch, *several, shape.q_heads)
        self.q, self.out = (
            np.empty((*dims, dim), dtype=np.float32) for dim in (shape.head_dim, shape.width_of_v)
        )
        self.ask(SEED)

    def ask(self, seed: int) -> None:
        """Draw queries from `seed`. Each layer's have the signs of its K, so that one answer serves
        all.
        """
        self.asked = np.random.default_rng(seed).standard_normal(self.q.shape[1:], dtype=np.float32)
        np.copyto(self.q, self.of(self._room.signs))
        self._answer: Answer | None = None

    def of(self, signs: np.ndarray) -> np.ndarray:
        """The queries of layers with these signs."""
        ones = (1,) * (self.asked.ndim - 1)
        own = signs[:, 0, : self.asked.shape[-1]]
        return self.asked * own.reshape(len(signs), *ones, -1)

    def right(self) -> Answer:
        """The answer to the first slice's queries, without the signs of V."""
        self._answer = self._answer or self._answers.of(
            self._point, self._room.caches[0], self.asked, self._room.signs[0]
        )
        return self._answer

    def answer(self) -> None:
        """Compute the answer here: no other process has the same tokens or queries."""
        own = self._room.caches[0], self.asked, self._room.signs[0]
        self._answer = Answers().of(self._point, *own)

    def error(self, least: int) -> float:
        """The largest error of the layers' answers; at least `least` layers must have answered."""
        return self.error_of(self.out, self._room.signs, least)

    def error_of(self, out: Iterable[np.ndarray], signs: np.ndarray, least: int) -> float:
        """The largest error of outputs, of which at least `least` must be written. An output that
        no pass reached is NaN.
        """
        answer = self.right()
        written = [
            (own, sign)
            for own, sign in zip(out, signs[:, 1, : answer.out.shape[-1]], strict=True)
            if not np.isnan(own).all()
        ]
        if len(written) < least:
            raise self._wrong("leaves its output as it was")
        errors = reduce(np.maximum, (np.abs(own * sign - answer.out) for own, sign in written))
        if not (errors <= answer.limit).all():
            raise self._wrong(f"is off by {errors.max():.3g}")
        return float(errors.max())

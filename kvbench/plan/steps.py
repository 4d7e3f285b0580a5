"""The parts of a whole step: layers that attend to all tokens, and layers with a window. The cache
of a layer with a window is a ring of that length.
"""

from dataclasses import dataclass, replace

from kvbench.model import Point


@dataclass(frozen=True, slots=True)
class Part:
    """Layers of a step that are alike.

    point: a decode of them, in rotation. layers: their positions among all layers of the step.
    """

    point: Point
    layers: tuple[int, ...]


def parts(step: Point) -> tuple[Part, ...]:
    """The parts of a step, layers that attend to all tokens first. A kind without layers has no
    part.
    """
    shape = step.shape
    slides = [_slides(step, layer) for layer in range(shape.layers)]
    found = []
    for sliding in (False, True):
        layers = tuple(layer for layer, slid in enumerate(slides) if slid == sliding)
        if layers:
            found.append(Part(_part(step, len(layers), sliding), layers))
    return tuple(found)


def _slides(step: Point, layer: int) -> bool:
    """Whether the layer attends only to a part of the tokens."""
    shape = step.shape
    if not 0 < shape.window < shape.context:
        return False
    return not shape.full_every or (layer + 1) % shape.full_every != 0


def _part(step: Point, layers: int, sliding: bool) -> Point:
    shape = step.shape
    window = shape.window if sliding else 0
    own = replace(
        shape,
        layers=layers,
        full_every=0,
        window=window,
        capacity=window or shape.capacity,
    )
    return replace(step, op="decode", between=0, shape=own)

"""What a whole step is made of: layers that attend to all tokens, and layers with a window, whose
caches are rings of that length.
"""

from dataclasses import dataclass, replace

from kvbench.model import Point


@dataclass(frozen=True, slots=True)
class Part:
    """Layers of a step that are alike. `point`: a decode of them, in rotation. `layers`: their
    places among all layers of the step.
    """

    point: Point
    layers: tuple[int, ...]


def parts(step: Point) -> tuple[Part, ...]:
    """Layers that attend to all tokens first. Of no kind there are none."""
    shape = step.shape
    slides = [_slides(step, layer) for layer in range(shape.layers)]
    found = []
    for sliding in (False, True):
        layers = tuple(layer for layer, slid in enumerate(slides) if slid == sliding)
        if layers:
            found.append(Part(_part(step, len(layers), sliding), layers))
    return tuple(found)


def _slides(step: Point, layer: int) -> bool:
    """Whether it leaves some of the tokens out."""
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

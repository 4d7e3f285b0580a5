"""What a visit times: the point, and what stands beside it."""

from typing import NamedTuple, Self

NEIGHBOUR = "neighbour"  # the point while others stream memory
# its kernel on data that stays in a private cache; on slices in memory
CORE, ROTATED = "core", "rotated"
SLICE, MEMORY = "slice", "memory"  # plain reads of its slice in L3; of memory
ALONE = "alone"  # the point with nothing read between its passes
# all layers' parts of a step, each kind by itself
DECODES, APPENDS, WEIGHTS = "decodes", "appends", "weights"
PARTS = (APPENDS, DECODES, WEIGHTS)  # in the order of a layer
AGAIN = "again"  # the point once more, after the peers of its round, or of a step that grows
LAST = "last"  # the last step of one that grows, of which it has the traffic alone
PACE = "fma"  # tells how fast the cores are
SIDES = ("base", "head")  # of a duel
PLAIN = "plain"  # the form of a probe that leaves all to the hardware


class Role(NamedTuple):
    """A program's kind, such as a twin, and which form of it. Files have it under a name that only
    this file knows to make and to read; that of a PLAIN form is the kind.
    """

    kind: str
    form: str = PLAIN

    @classmethod
    def of(cls, name: str) -> Self:
        kind, _, form = name.partition("_")
        return cls(kind, form or PLAIN)

    @property
    def name(self) -> str:
        return self.kind if self.form == PLAIN else f"{self.kind}_{self.form}"


AHEAD = Role("twin", "ahead")  # the twin in the point's own schedule
CORE_OFF = Role(CORE, "off")  # core speed where nothing is asked for: what is asked for is there
COPY_NT = Role("copy", "nt")
BESIDE = {side: Role("beside", side).name for side in SIDES}  # the witness of either side

# ---- of a contrast: a program for each of its points, named by its value -------------------------

SHARED = (MEMORY, PACE)  # by all of them


def beside(kind: str, value: str) -> str:
    """A program that stands beside the one of that value."""
    return f"{kind}/{value}"


def parted(name: str) -> tuple[str, str]:
    """The kind, "point" where it is the value's own, and the value. What all share has no value."""
    kind, _, value = name.rpartition("/")
    return (kind, value) if kind else (name, "") if name in SHARED else ("point", name)

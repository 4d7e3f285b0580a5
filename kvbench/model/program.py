"""The programs that a visit times: the point, and its witnesses beside it."""

from typing import NamedTuple, Self

NEIGHBOUR = "neighbour"  # the point while others stream memory
# the point's kernel on data in a private cache; on slices in memory
CORE, ROTATED = "core", "rotated"
SLICE, MEMORY = "slice", "memory"  # plain reads of the slice in L3; of memory
ALONE = "alone"  # the point with nothing read between its passes
# the parts of a step, each of all layers
DECODES, APPENDS, WEIGHTS = "decodes", "appends", "weights"
PARTS = (APPENDS, DECODES, WEIGHTS)  # in the order of a layer
AGAIN = "again"  # the point once more: after the peers of its round, or in a step that grows
LAST = "last"  # the last step of a step that grows; only its traffic is recorded
PACE = "fma"  # multiply-adds, which show how fast the cores are
SIDES = ("base", "head")  # the two sides of a duel
PLAIN = "plain"  # the form of a probe that leaves all to the hardware


class Role(NamedTuple):
    """The kind of a program, such as a twin, and its form. Only this file makes and reads the names
    that files have for them. A PLAIN form is named by its kind alone.
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
CORE_OFF = Role(CORE, "off")  # core speed without prefetches, which data in a cache do not need
COPY_NT = Role("copy", "nt")
BESIDE = {side: Role("beside", side).name for side in SIDES}  # the witness of each side

# ---- contrasts: a program for each point, named by its value -------------------------------------

SHARED = (MEMORY, PACE)  # programs that all points of a contrast share


def beside(kind: str, value: str) -> str:
    """The name of a witness that is timed beside the program of that value."""
    return f"{kind}/{value}"


def parted(name: str) -> tuple[str, str]:
    """Split a name into kind and value. The kind is "point" for the program of the value itself;
    shared programs have no value.
    """
    kind, _, value = name.rpartition("/")
    return (kind, value) if kind else (name, "") if name in SHARED else ("point", name)

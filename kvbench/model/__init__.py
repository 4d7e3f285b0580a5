"""The frozen values that pass between the parts. Their methods only compute from their own
fields.
"""

from kvbench.model.contrast import Contrast
from kvbench.model.engine import Engine
from kvbench.model.hardware import (
    PLACES,
    Check,
    Cpu,
    DataCache,
    Fact,
    Kernel,
    Machine,
    Node,
    Times,
    Traffic,
)
from kvbench.model.job import Job, Needs, Plan, Skip, several
from kvbench.model.point import (
    AUTO,
    COMPUTE,
    DEFAULTS,
    FIELDS,
    MODEL_SAYS,
    OURS,
    OWN,
    POINT,
    Point,
    Probe,
)
from kvbench.model.program import (
    AGAIN,
    BESIDE,
    COPY_NT,
    CORE,
    MEMORY,
    NEIGHBOUR,
    PACE,
    PLAIN,
    ROTATED,
    SIDES,
    Role,
)
from kvbench.model.record import (
    MANY,
    STEP,
    Ceiling,
    Member,
    Record,
    Sample,
    Tail,
    alike,
    comparable,
    most,
    quotients,
    tails,
)
from kvbench.model.shape import HEADS, Shape
from kvbench.model.tuning import TUNER, Choice, Tuned, choose, pooled
from kvbench.model.verdict import Comparison, Judged

"""Access to the C library; no other package touches C. A library is opened by path, so two builds
can be used in one process.
"""

from kvbench.native import numa
from kvbench.native.arena import Arena, Part, pages_given
from kvbench.native.blocks import Blocks
from kvbench.native.cache import Cache, described
from kvbench.native.channels import channel_of, times_channel, usual_channel
from kvbench.native.library import Library, default_library, library_of, library_path
from kvbench.native.ops import (
    chain,
    decode_task,
    forms,
    logits_task,
    probe_task,
    repack_task,
    rewrite,
    store_task,
    transpose_task,
    unpack_task,
)
from kvbench.native.plugin import Asked, Plugin, is_plugin
from kvbench.native.queries import attended
from kvbench.native.rows import (
    LANES,
    SCALE,
    block_of,
    block_places,
    packed,
    plane_bytes,
    token_bytes,
)
from kvbench.native.team import Load, Series, Task, Team

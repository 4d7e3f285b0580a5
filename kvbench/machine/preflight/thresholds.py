"""Where a check begins to warn, and why there."""

from kvbench.units import MIB

# Load. A pass ends with its slowest thread, so that little work by others shows in every sample.
QUIET_SECONDS = 0.2  # of looking on while this process sleeps: 20 of the kernel's usual ticks on each CPU
LOOKS = 5  # in that time, at how many tasks could run
BUSY_SHARE = 0.05  # of the CPUs' time; one tick of 20 is 0.05
OTHER_TASKS = 0.5  # runnable on average; what wakes now and then stays below
STEAL_SHARE = 0.02  # of the CPUs' time under load; samples differ by about as much anyway

# Clock.
WARM_SECONDS = 0.05  # a governor that follows the load has gone up by then
CLOCK_ROUNDS = 12
CLOCK_SECONDS = 0.02  # of a round: two of the kernel's ticks
CLOCK_SWING = 0.05  # from the best round to the median; a steady core stays within 0.01
CLOCK_APART = 0.10  # between threads: neighbouring cores of one kind differ by 0.05 at the most
CLOCK_SHORT = 0.80  # of the nominal clock; wide vectors alone may cost 0.15, plain additions nothing

# Memory.
BUFFERS = 3  # of a footprint that no cache helps with: what triad walks, and a store with what it is compared to
ARENA_BYTES = 64 * MIB  # of the arena that is tried: enough pages for a share, touched in some 20 ms
ARENA_SHARE = 0.25  # of the available memory at the most
HUGE_SHARE = 0.95  # of the arena; below it base pages are walked often enough to cost bandwidth
STRAY_SHARE = 0.05  # of the pages, on another node than the threads that read them

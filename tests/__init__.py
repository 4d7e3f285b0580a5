"""Tests, in folders named like the modules that they test. Modules that several folders share:

Oracles, which ask the library nothing:
    oracle      rows, addresses and attention, restated in NumPy from the bytes of a cache
    formats     number formats: what a value becomes when it is stored
    narrow      the rounding of `dot`
    scores      cap, slopes and sinks
    queries     which tokens each query attends to
    twin        what a twin loads
    trace       bytes and FLOPs, counted address by address

Cases and how they run:
    cases       random cases: a cache, one decode and one store
    trial       one case through one tier of the library
    fuzz        many cases; a command
    casefile    cases as files for the C checker in tests/check
    raw         the library through cffi alone

Made-up data, with planted truths:
    made_run    records of points, probes and sets
    made_steps  records of whole steps
    chased      visits with a chase
    made_job    jobs and benches for worker tests

Tools:
    outputs     what commands print, on pages; a command
    likwid      our probes beside likwid-bench; a command
    spills      registers that the compiler spills; a command
    limits      time limits, and why one was hit
    processes   programs that tests run
"""

"""Measuring: memory, programs, and the loop that times them. Each launch is a process of its
own.
"""

from kvbench.worker.growing import visit_growing
from kvbench.worker.rest import visit_rest
from kvbench.worker.visit import visit, visit_plugin

"""Other engines' decode attention, as peers of our kernels. Each is a class behind an entry point
of the group `kvbench.peers`; interface.py says what it has. Its engine is imported in a process of
its own alone.
"""

from kvbench.peers.host import Failed, Host
from kvbench.peers.interface import Peer
from kvbench.peers.known import Known, digest, known

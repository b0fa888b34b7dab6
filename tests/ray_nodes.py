"""A Ray cluster of two nodes on this machine, on the loopback alone, until standard input closes.

Run as a program: it prints the cluster's address, and starts nothing that outlives it.
"""

from __future__ import annotations

import sys
from typing import Any

CPUS = 2
STORE_BYTES = 80 * 2**20


def main() -> None:
    from ray.cluster_utils import Cluster

    node: Any = {
        "num_cpus": CPUS,
        "object_store_memory": STORE_BYTES,
        "node_ip_address": "127.0.0.1",
        "include_dashboard": False,
    }
    cluster: Any = Cluster(initialize_head=True, head_node_args=node, shutdown_at_exit=True)
    cluster.add_node(**node)
    print(f"ready {cluster.address}", flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares placements of the same graphs with the same support tables.

Side by side, for each model: torch.fx's CapabilityBasedPartitioner, pytorch-ir's grouping (the
strategy `contiguous`), `convex` and `mincut`. The graphs are the IR documents of testdata/models; what
the NPU runs is what npu-tag says; times are predicted by the target's rates for all of them.

torch.fx gets the graph node by node, the support table as its OperatorSupport, and single-node
partitions allowed, as the others are. It groups supported nodes only; the other nodes are grouped here,
by waves, from whichever end gives fewer, and each tensor is counted once for each device, which is in
its favour. Its predicted time is that of the same devices with its number of partitions.

Started by placement_vs_peers.sh, which installs what is missing.
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [
    ("resnet18", []),
    ("resnet50", []),
    ("resnet50", ["cpu=aten.add_.*"]),
    ("mobilenet_v2", []),
    ("inception_v3", []),
    ("inception_v3", ["cpu=aten.cat.*"]),
    ("vit_b_16", []),
    ("bert_base", []),
]


def tool(name, *arguments, stdin=None):
    result = subprocess.run([ROOT / "build/bin" / name, *arguments], input=stdin, capture_output=True)
    if result.returncode != 0:
        sys.exit(result.stderr.decode())
    return result.stdout


def tagged_document(model, force, target):
    options = [option for rule in force for option in ("--force", rule)]
    path = ROOT / "testdata/models" / f"{model}.json"
    return tool("npu-tag", "--quiet", "--target", target, *options, path)


def strategy_row(document, strategy):
    began = time.perf_counter()
    text = tool("npu-partition", "--strategy", strategy, stdin=document)
    elapsed = time.perf_counter() - began
    metrics = json.loads(text)["npu"]["partition"]["metrics"]
    return metrics, 1000 * elapsed


def fx_partitions(document):
    """For each node its partition, or None if torch.fx leaves it out; and the time it took in ms."""
    import torch
    from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from torch.fx.passes.operator_support import OperatorSupportBase

    graph = torch.fx.Graph()
    values = {tensor["name"]: graph.placeholder(f"in_{i}") for i, tensor in enumerate(document["graph_inputs"])}
    supported = set()
    mine = {}

    def operator_of_the_ir(*operands):
        return operands

    for index, node in enumerate(document["nodes"]):
        operands = tuple(values[tensor["name"]] for tensor in node["inputs"] if tensor["name"] in values)
        call = graph.call_function(operator_of_the_ir, operands)
        mine[call] = index
        if node["device"] == "npu":
            supported.add(call)
        names = [tensor.get("name") for tensor in node["outputs"]]
        for i, name in enumerate(names):
            default = node["name"] if len(names) == 1 else f"{node['name']}_{i}"
            values[name or default] = call
    graph.output(tuple(values[tensor["name"]] for tensor in document["graph_outputs"] if tensor["name"] in values))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)

    class Support(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return node in supported

    began = time.perf_counter()
    found = CapabilityBasedPartitioner(module, Support(), allows_single_node_partition=True).propose_partitions()
    elapsed = time.perf_counter() - began
    partition_of = [None] * len(document["nodes"])
    for number, partition in enumerate(found):
        for call in partition.nodes:
            partition_of[mine[call]] = number
    return partition_of, 1000 * elapsed


def quotient(document, partition_of):
    """Units (torch.fx's partitions, single nodes) with what each waits for."""
    nodes = document["nodes"]
    unit_of = [("npu", p) if p is not None else ("cpu", i) for i, p in enumerate(partition_of)]
    producer = {}
    for i, node in enumerate(nodes):
        names = [tensor.get("name") for tensor in node["outputs"]]
        for k, name in enumerate(names):
            producer[name or (node["name"] if len(names) == 1 else f"{node['name']}_{k}")] = i
    needs = {unit: set() for unit in unit_of}
    for i, node in enumerate(nodes):
        for tensor in node["inputs"]:
            source = producer.get(tensor["name"])
            if source is not None and unit_of[source] != unit_of[i]:
                needs[unit_of[i]].add(unit_of[source])
    return needs


def schedule(needs, first):
    """Waves of cpu nodes between torch.fx's partitions; returns the number of partitions."""
    waiting = {unit: len(sources) for unit, sources in needs.items()}
    readers = {unit: [] for unit in needs}
    for unit, sources in needs.items():
        for source in sources:
            readers[source].append(unit)
    ready = {"npu": [], "cpu": []}
    for unit, count in waiting.items():
        if count == 0:
            ready[unit[0]].append(unit)
    partitions, transfers, device, last = 0, 0, first, None
    while ready["npu"] or ready["cpu"]:
        if not ready[device]:
            device = "cpu" if device == "npu" else "npu"
        batch = 0
        while ready[device]:
            unit = ready[device].pop()
            batch += 1
            for reader in readers[unit]:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    ready[reader[0]].append(reader)
        partitions += batch if device == "npu" else 1
        transfers += last is not None and last != device
        last = device
        device = "cpu" if device == "npu" else "npu"
    if any(waiting.values()):
        return None  # its partitions depend on each other in a cycle
    return partitions, transfers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="pytorch-apple", help="built-in target or file (default: %(default)s)")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        sys.exit("placement_vs_peers: no torch here; scripts/bench/placement_vs_peers.sh installs it")
    print(f"{'model':34} {'by':11} {'parts':>6} {'steps':>6} {'listed':>7} {'copied':>7} {'MB':>8} "
          f"{'predicted ms':>13} {'of all-cpu':>10}")
    worse = []
    for model, force in CASES:
        text = tagged_document(model, force, options.target)
        document = json.loads(text)
        launches = {d["name"]: d.get("launch_overhead_us", 0) for d in document["npu"]["target"]["devices"]}
        launch = launches["npu"]
        rows = {}
        for strategy in ("contiguous", "convex", "mincut"):
            rows[strategy], _ = strategy_row(text, strategy)
        partition_of, _ = fx_partitions(document)
        needs = quotient(document, partition_of)
        plans = [plan for plan in (schedule(needs, first) for first in ("npu", "cpu")) if plan]
        if plans:
            parts, transfers = min(plans)
            convex = rows["convex"]
            rows["torch.fx"] = {
                **convex, "partitions": parts, "transfers": transfers,
                "predicted_us": convex["predicted_us"] + launch * (parts - convex["partitions"]),
            }
        name = model + "".join(f", {rule.split('=')[1]} off" for rule in force)
        for by in ("torch.fx", "contiguous", "convex", "mincut"):
            row = rows.get(by)
            if row is None:
                print(f"{name:34} {by:11} partitions that wait for each other in a circle")
                continue
            print(f"{name:34} {by:11} {row['partitions']:6} {row['transfers']:6} {row['transferred_tensors']:7} "
                  f"{row['copied_tensors']:7} {row['copied_bytes'] / 1e6:8.2f} {row['predicted_us'] / 1e3:13.3f} "
                  f"{row['predicted_us'] / row['all_cpu_us']:10.3f}")
        others = [rows[by] for by in ("torch.fx", "contiguous") if by in rows]
        if any(rows["convex"]["partitions"] > other["partitions"] for other in others):
            worse.append(f"{name}: convex has more partitions")
        for other in others + [rows["convex"]]:
            if rows["mincut"]["predicted_us"] > other["predicted_us"] + 1e-3:
                worse.append(f"{name}: mincut takes longer")
        if rows["mincut"]["predicted_us"] > rows["mincut"]["all_cpu_us"] + 1e-3:
            worse.append(f"{name}: mincut takes longer than all-CPU")
    for line in worse:
        print("WORSE:", line)
    print("never worse on what is optimised" if not worse else f"{len(worse)} columns are worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())

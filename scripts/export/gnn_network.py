# SPDX-License-Identifier: Apache-2.0
"""The layers of a network of PyTorch Geometric, with its weights.

Input:  a module whose forward() takes features of nodes and edge_index, and calls SAGEConv, GCNConv or GATConv.
Output: layers as gnn_stages.py has them, and weights by their state-dict keys.

Nothing is concluded from names of options. The network runs on two graphs that are made for this, with loops, repeated
edges and a node without any, one with features a hundred times as large; what each convolution returns has to be what
some layer of gnn_stages.py does, and what comes between two of them has to be one of its functions. Anything else is
refused with the module.
"""

import copy

import torch

from export.errors import UserError, first_line
from export.gnn_reference import activate, layer_result, with_remaining_loops
from export.gnn_stages import ACTIVATIONS, Layer
from export.places import module_text, place_of_error, with_place

KINDS = {"SAGEConv": "graphsage", "GCNConv": "gcn", "GATConv": "gat"}
NODES = 24


def kind_of(module):
    return next((KINDS[base.__name__] for base in type(module).__mro__ if base.__name__ in KINDS), None)


def probe(width, scale):
    """Features, and edges with a loop, a repeated loop, a repeated edge, and a node (the last) without an edge."""
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(NODES, width, generator=generator) * scale
    edges = torch.randint(0, NODES - 1, (2, 4 * NODES), generator=generator)
    more = torch.tensor([[0, 1, 1, 2, 2, 5], [0, 1, 1, 3, 3, 4]])
    return x, torch.cat([edges, more], dim=1)


class Call:
    """One call of a convolution."""

    def __init__(self, module, args, kwargs, result):
        self.module, self.args, self.kwargs, self.result = module, args, kwargs, result


def record(model, x, edges):
    """The calls of convolutions while the network runs, and its result."""
    calls = []
    modules = [module for module in model.modules() if kind_of(module)]

    def recorder(module, forward):
        def call(*args, **kwargs):
            result = forward(*args, **kwargs)
            calls.append(Call(module, args, kwargs, result))
            return result

        return call

    for module in modules:
        module.forward = recorder(module, module.forward)
    try:
        with torch.no_grad():
            result = model(x.clone(), edges.clone())
    except Exception as error:
        what = f"forward(x, edge_index) failed: {first_line(error)}"
        raise UserError(with_place(what, place_of_error(model, error))) from None
    finally:
        for module in modules:
            del module.forward
    return calls, result


def same(one, other):
    """Equal up to the roundings of another order of operations."""
    if not isinstance(one, torch.Tensor) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    largest = float(other.abs().max()) if other.numel() else 0.0
    return torch.allclose(one, other, rtol=1e-4, atol=1e-5 * largest, equal_nan=True)


def read_network(model, inputs):
    """(layers, weights by key, whether each node gets exactly one loop)."""
    tensors = inputs.tensors
    if len(tensors) != 2 or tensors[0].dim() != 2 or not tensors[0].is_floating_point() or tensors[1].dtype != torch.int64:
        raise UserError("the example inputs must be features of nodes [n, f] and edge_index, int64 [2, m]")
    model = copy.deepcopy(model).eval().float()  # a convolution may keep what it computed of its first graph
    probes = [probe(inputs.tensors[0].shape[1], scale) for scale in (1.0, 100.0)]
    runs = [record(model, *graph) for graph in probes]
    calls, other_calls = (calls for calls, _ in runs)
    if not calls:
        raise UserError(f"{type(model).__name__} calls no {', '.join(KINDS)}")
    if [call.module for call in calls] != [call.module for call in other_calls]:
        raise UserError("the values of features decide which layers run")
    names = {module: name for name, module in model.named_modules()}
    layers, weights, loops = [], {}, {}
    for index, call in enumerate(calls):
        here, is_last = module_text(model, call.module), index + 1 == len(calls)
        both = [run_calls[index] for run_calls, _ in runs]
        for one, (x, edges) in zip(both, probes):
            check_call(one, x if index == 0 else None, edges, here)
        own = weights_of(call.module, names[call.module], here)
        layer, loops[here] = recognise(both, probes, names[call.module], own, here)
        followers = [result if is_last else run_calls[index + 1].args[0] for run_calls, result in runs]
        where = f"{here} and " + ("the result" if is_last else module_text(model, calls[index + 1].module))
        layer.activation = function_between([one.result for one in both], followers, where)
        layers.append(layer)
        weights.update(own)
    with_one, without = ([place for place, one in loops.items() if one == wanted] for wanted in (True, False))
    if with_one and without:
        raise UserError(f"{with_one[0]} wants one loop at each node and {without[0]} the graph's own; a document has one graph")
    return layers, weights, bool(with_one)


def check_call(call, x, edges, here):
    """Refuses what a layer of a staged document does not get. x: what the first layer has to read."""
    given = [*call.args, *call.kwargs.values()]
    if len(call.args) < 1 or not isinstance(call.args[0], torch.Tensor):
        raise UserError(f"{here} gets other features than one tensor")
    edge_index = call.args[1] if len(call.args) > 1 else call.kwargs.get("edge_index")
    if not isinstance(edge_index, torch.Tensor) or not torch.equal(edge_index, edges):
        raise UserError(f"{here} gets other edges than edge_index")
    if sum(item is not None for item in given) > 2:
        raise UserError(f"{here} gets more than features and edge_index, which a staged document lacks")
    if x is not None and not torch.equal(call.args[0], x):
        raise UserError(f"{here} does not read the features that forward() gets, but something computed from them")


def weights_of(module, key, here):
    """Weights as gnn_stages.py names them; one that the module leaves out is zero."""
    state = {name: tensor.detach().float() for name, tensor in module.state_dict().items()}
    kind = kind_of(module)
    if kind == "graphsage":
        rows, columns = state["lin_l.weight"].shape
        zeros = {"lin_l.bias": [rows], "lin_r.weight": [rows, columns]}
    else:
        if "lin.weight" not in state and "lin_src.weight" in state:  # GATConv before 2.5
            state["lin.weight"] = state["lin_src.weight"]
        if "lin.weight" not in state:
            raise UserError(f"{here} has no weight 'lin.weight'")
        zeros = {"bias": [state["lin.weight"].shape[0]]}
    names = {"graphsage": ["lin_l.weight"], "gcn": ["lin.weight"], "gat": ["lin.weight", "att_src", "att_dst"]}[kind]
    found = {name: state[name] for name in names}
    for name, shape in zeros.items():
        found[name] = state.get(name, torch.zeros(shape))
    return {f"{key}.{name}": tensor for name, tensor in found.items()}


def recognise(calls, probes, key, weights, here):
    """The layer that does what the convolution did in all runs, and whether each node has one loop in it."""
    kind = kind_of(calls[0].module)
    first = weights[f"{key}.{'lin_l' if kind == 'graphsage' else 'lin'}.weight"]
    heads = weights[f"{key}.att_src"].shape[-2] if kind == "gat" else 1
    ways = {"graphsage": [("mean", False), ("max", False)], "gcn": [("mean", True)], "gat": [("mean", True), ("mean", False)]}
    for aggregate, one_loop in ways[kind]:
        layer = Layer(kind, key, first.shape[1], first.shape[0], "none", heads, aggregate, adds_loops=False)
        if all(does_the_same(layer, call, edges, weights, one_loop) for call, (_, edges) in zip(calls, probes)):
            return layer, one_loop
    raise UserError(f"{here} computes something else than {kind} of a staged document does: npu-gnn(5) has its options")


def does_the_same(layer, call, edges, weights, one_loop):
    x = call.args[0]
    if x.shape[1] != layer.inputs or call.result.shape != (len(x), layer.outputs):
        return False
    source, target = with_remaining_loops(*edges, len(x)) if one_loop else edges
    return same(call.result, layer_result(layer, x, source, target, weights))


def function_between(results, followers, where):
    """The name of the function that turns each result into what follows."""
    names = [
        name for name in ACTIVATIONS
        if all(same(follower, activate(name, result)) for result, follower in zip(results, followers))
    ]
    if len(names) != 1:
        known = ", ".join(name for name in ACTIVATIONS if name != "none")
        what = f"it could be {' or '.join(names)}" if names else f"it is neither nothing nor one of {known}"
        raise UserError(f"between {where} is something that a staged document cannot say: {what}")
    return names[0]

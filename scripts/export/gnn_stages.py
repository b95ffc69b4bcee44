# SPDX-License-Identifier: Apache-2.0
"""Layers of graph neural networks, stage by stage, with random weights: GraphSAGE, GCN and GAT."""

import dataclasses
import math
import random

# What can follow a layer: an op of a document, and its attributes.
ACTIVATIONS = {
    "none": ("aten.alias.default", {}),
    "relu": ("aten.relu.default", {}),
    "elu": ("aten.elu.default", {}),
    "leaky_relu": ("aten.leaky_relu.default", {}),
    "gelu": ("aten.gelu.default", {}),
    "silu": ("aten.silu.default", {}),
    "tanh": ("aten.tanh.default", {}),
    "sigmoid": ("aten.sigmoid.default", {}),
    "softmax": ("aten.softmax.int", {"dim": -1}),
    "log_softmax": ("aten.log_softmax.int", {"dim": -1}),
}


@dataclasses.dataclass
class Layer:
    kind: str  # graphsage, gcn, gat
    key: str  # what the keys of its weights begin with
    inputs: int  # features of a node
    outputs: int
    activation: str  # of ACTIVATIONS
    heads: int = 1  # of GAT
    aggregate: str = "mean"  # of GraphSAGE
    adds_loops: bool = True  # of GCN: to each node, or the graph has them

    @property
    def options(self):
        """What the functions of its kind take besides widths."""
        return {"graphsage": (self.aggregate,), "gcn": (self.adds_loops,), "gat": (self.heads,)}[self.kind]


def tensor(name, *shape, dtype="float32"):
    return {"name": name, "shape": list(shape), "dtype": dtype}


class Stage:
    """Collects the nodes of one stage."""

    def __init__(self, layer, number, name, of_next=False):
        """of_next: it computes for the layer behind its own, whose weights would have the names of the own layer's."""
        self.prefix = f"s{number}_"
        self.weights_prefix = "p_next_" if of_next else "p_"
        self.entry = {"id": number, "layer": layer, "name": name}
        self.inputs, self.nodes, self.weights, self.mapping = [], [], [], {}

    def read(self, value):
        if value["name"] not in [known["name"] for known in self.inputs]:
            self.inputs.append(value)
        return value

    def weight(self, name, key, *shape):
        name = self.weights_prefix + name.removeprefix("p_")
        value = tensor(name, *shape)
        self.weights.append(dict(value, name=key))
        self.mapping[name] = key
        return value

    def op(self, op_type, inputs, shape, dtype="float32", name=None, **attrs):
        name = name or f"{self.prefix}{len(self.nodes)}"
        result = tensor(name, *shape, dtype=dtype)
        self.nodes.append({"name": name, "op_type": op_type, "inputs": inputs, "outputs": [result], "attrs": attrs})
        return result

    def finish(self, outputs):
        self.entry["ir"] = {
            "model_name": self.entry["name"], "graph_inputs": self.inputs, "graph_outputs": outputs,
            "weights": self.weights, "weight_name_mapping": self.mapping, "nodes": self.nodes}
        return self.entry


class Model:
    """Collects stages and their weights, which are drawn at random or, by their keys, given."""

    def __init__(self, seed, given=None):
        self.seed, self.given = seed, given
        self.stages, self.weights = [], []

    def matrix(self, key, rows, columns):
        self.weight(key, [rows, columns], 1 / math.sqrt(columns))

    def vector(self, key, *shape):
        self.weight(key, list(shape), 0.1)

    def weight(self, key, shape, bound):
        if any(key == known for known, _, _ in self.weights):  # a layer that is used twice
            return
        if self.given is not None:
            values = self.given[key]
        else:
            generator = random.Random(f"{self.seed}/{key}")
            values = [generator.uniform(-bound, bound) for _ in range(math.prod(shape))]
        self.weights.append((key, shape, values))

    def add(self, stage, *outputs):
        self.stages.append(stage.finish(list(outputs)))


def ends(stage, which):
    edges = stage.read(tensor("edge_index", 2, "m", dtype="int64"))
    return stage.op("aten.select.int", [edges], ["m"], "int64", dim=0, index=which)


def scatter_sum(stage, source, shape, name=None):
    zeros = stage.op("aten.zeros.default", [], shape, size=shape, dtype="torch.float32")
    return stage.op("aten.index_add.default", [zeros, ends(stage, 1), source], shape, name=name, dim=0)


def largest_by_target(stage, rows, shape, name=None):
    """The largest of each column of an earlier stage's rows over the edges into a node; 0 for a node without edges."""
    zeros = stage.op("aten.zeros.default", [], shape, size=shape, dtype="torch.float32")
    targets = ends(stage, 1)
    for dim in range(1, len(shape)):
        targets = stage.op("aten.unsqueeze.default", [targets], ["m"] + [1] * dim, "int64", dim=dim)
    shape_of_rows = ["m", *shape[1:]]
    targets = stage.op("aten.expand.default", [targets], shape_of_rows, "int64", size=shape_of_rows)
    return stage.op("aten.scatter_reduce.two", [zeros, targets, stage.read(rows)], shape, name=name, dim=0,
                    reduce="amax", include_self=False)


def activation(model, layer, number, value, width, function, name="out"):
    stage = Stage(layer, number, "activate")
    stage.read(value)
    op_type, attrs = ACTIVATIONS[function]
    result = stage.op(op_type, [value], ["n", width], name=name, **attrs)
    model.add(stage, result)
    return result


# Every model is two functions: the product of a layer's input with its weights, and all that follows. With the product
# first, it is the last stage of the layer before, whose output then is as wide as the product, and the rest gets that.

def graphsage_product(s, model, key, x, fin, fout):
    """What is added up over edges and what is the node's own, side by side."""
    graphsage_weights(model, key, fin, fout)
    sides = [s.op("aten.linear.default", [x, s.weight(f"p_lin_{side}_weight", f"{key}.lin_{side}.weight", fout, fin)],
                  ["n", fout]) for side in "lr"]
    return s.op("aten.cat.default", sides, ["n", 2 * fout], name="out", dim=1)


def graphsage_weights(model, key, fin, fout):
    model.matrix(f"{key}.lin_l.weight", fout, fin)
    model.vector(f"{key}.lin_l.bias", fout)
    model.matrix(f"{key}.lin_r.weight", fout, fin)


def graphsage_mean(model, layer, message, width):
    s = Stage(layer, 3, "reduce_sum")
    total = scatter_sum(s, s.read(message), ["n", width], "sum")
    model.add(s, total)
    s = Stage(layer, 4, "reduce_count")
    ones = s.op("aten.ones.default", [], ["m"], size=["m"], dtype="torch.float32")
    count = scatter_sum(s, ones, ["n"], "count")
    model.add(s, count)
    s = Stage(layer, 5, "normalize")
    s.read(total)
    least = s.op("aten.clamp.default", [s.read(count)], ["n"], min=1.0)
    column = s.op("aten.unsqueeze.default", [least], ["n", 1], dim=1)
    mean = s.op("aten.div.Tensor", [total, column], ["n", width], name="mean")
    model.add(s, mean)
    return mean


def graphsage_max(model, layer, message, width):
    s = Stage(layer, 3, "reduce_max")
    largest = largest_by_target(s, message, ["n", width], "max")
    model.add(s, largest)
    return largest


def graphsage(model, layer, key, fin, fout, product_first, aggregate):
    width = fout if product_first else fin
    x = tensor("x", "n", 2 * fout if product_first else fin)
    s = Stage(layer, 1, "gather")
    s.read(x)
    rows = s.op("aten.slice.Tensor", [x], ["n", fout], dim=1, start=0, end=fout) if product_first else x
    gathered = s.op("aten.embedding.default", [rows, ends(s, 0)], ["m", width], name="gathered")
    model.add(s, gathered)
    s = Stage(layer, 2, "message")
    message = s.op("aten.alias.default", [s.read(gathered)], ["m", width], name="message")
    model.add(s, message)
    mean = (graphsage_max if aggregate == "max" else graphsage_mean)(model, layer, message, width)
    s = Stage(layer, model.stages[-1]["id"] + 1, "transform")
    s.read(mean)
    s.read(x)
    if product_first:
        left = s.op("aten.add.Tensor", [mean, s.weight("p_lin_l_bias", f"{key}.lin_l.bias", fout)], ["n", fout])
        right = s.op("aten.slice.Tensor", [x], ["n", fout], dim=1, start=fout, end=2 * fout)
    else:
        graphsage_weights(model, key, fin, fout)
        left = s.op("aten.linear.default", [mean, s.weight("p_lin_l_weight", f"{key}.lin_l.weight", fout, fin),
                                            s.weight("p_lin_l_bias", f"{key}.lin_l.bias", fout)], ["n", fout])
        right = s.op("aten.linear.default", [x, s.weight("p_lin_r_weight", f"{key}.lin_r.weight", fout, fin)], ["n", fout])
    hidden = s.op("aten.add.Tensor", [left, right], ["n", fout], name="hidden")
    model.add(s, hidden)
    return hidden


def gcn_product(s, model, key, x, fin, fout):
    gcn_weights(model, key, fin, fout)
    return s.op("aten.linear.default", [x, s.weight("p_lin_weight", f"{key}.lin.weight", fout, fin)], ["n", fout], name="out")


def gcn_weights(model, key, fin, fout):
    model.matrix(f"{key}.lin.weight", fout, fin)
    model.vector(f"{key}.bias", fout)


def gcn(model, layer, key, fin, fout, product_first, adds_loops):
    """Normalised sums with a loop at each node: one that is added to the edges, or one of the graph."""
    width = fout if product_first else fin
    x = tensor("x", "n", width)
    s = Stage(layer, 1, "compute_norm")
    degree = s.read(tensor("degree", "n"))
    if adds_loops:
        degree = s.op("aten.add.Tensor", [degree], ["n"], other=1.0)
    inverse = s.op("aten.rsqrt.default", [degree], ["n"], name="inverse")
    a = s.op("aten.index_select.default", [inverse, ends(s, 0)], ["m"], dim=0)
    b = s.op("aten.index_select.default", [inverse, ends(s, 1)], ["m"], dim=0)
    norm = s.op("aten.mul.Tensor", [a, b], ["m"], name="norm")
    model.add(s, *([inverse] if adds_loops else []), norm)
    s = Stage(layer, 2, "gather")
    s.read(x)
    gathered = s.op("aten.embedding.default", [x, ends(s, 0)], ["m", width], name="gathered")
    model.add(s, gathered)
    s = Stage(layer, 3, "message")
    column = s.op("aten.unsqueeze.default", [s.read(norm)], ["m", 1], dim=1)
    message = s.op("aten.mul.Tensor", [s.read(gathered), column], ["m", width], name="message")
    model.add(s, message)
    s = Stage(layer, 4, "reduce_sum")
    summed = scatter_sum(s, s.read(message), ["n", width], None if adds_loops else "sum")
    if adds_loops:
        square = s.op("aten.mul.Tensor", [s.read(inverse), inverse], ["n"])
        column = s.op("aten.unsqueeze.default", [square], ["n", 1], dim=1)
        own = s.op("aten.mul.Tensor", [s.read(x), column], ["n", width])
        summed = s.op("aten.add.Tensor", [summed, own], ["n", width], name="sum")
    model.add(s, summed)
    s = Stage(layer, 5, "transform")
    if product_first:
        hidden = s.op("aten.add.Tensor", [s.read(summed), s.weight("p_bias", f"{key}.bias", fout)], ["n", fout], name="hidden")
    else:
        gcn_weights(model, key, fin, fout)
        hidden = s.op("aten.linear.default", [s.read(summed), s.weight("p_lin_weight", f"{key}.lin.weight", fout, fin),
                                              s.weight("p_bias", f"{key}.bias", fout)], ["n", fout], name="hidden")
    model.add(s, hidden)
    return hidden


def gat_weights(model, key, fin, fout, heads):
    model.matrix(f"{key}.lin.weight", fout, fin)
    model.vector(f"{key}.att_src", heads, fout // heads)
    model.vector(f"{key}.att_dst", heads, fout // heads)
    model.vector(f"{key}.bias", fout)


def gat_product(s, model, key, x, fin, fout, heads):
    gat_weights(model, key, fin, fout, heads)
    return s.op("aten.linear.default", [x, s.weight("p_lin_weight", f"{key}.lin.weight", fout, fin)], ["n", fout], name="out")


def gat(model, layer, key, fin, fout, product_first, heads):
    width = fout // heads
    s = Stage(layer, 1, "linear")
    if product_first:
        flat = s.read(tensor("x", "n", fout))
    else:
        gat_weights(model, key, fin, fout, heads)
        flat = s.op("aten.linear.default", [s.read(tensor("x", "n", fin)),
                                            s.weight("p_lin_weight", f"{key}.lin.weight", fout, fin)], ["n", fout])
    h = s.op("aten.view.default", [flat], ["n", heads, width], name="h", size=["n", heads, width])
    model.add(s, h)
    s = Stage(layer, 2, "gather_both")
    s.read(h)
    source = s.op("aten.index_select.default", [h, ends(s, 0)], ["m", heads, width], name="h_src", dim=0)
    scores = []
    for side, which in (("src", 0), ("dst", 1)):
        weight = s.weight(f"p_att_{side}", f"{key}.att_{side}", heads, width)
        product = s.op("aten.mul.Tensor", [h, weight], ["n", heads, width])
        score = s.op("aten.sum.dim_IntList", [product], ["n", heads], dim=[-1])
        scores.append(s.op("aten.index_select.default", [score, ends(s, which)], ["m", heads], name=f"score_{side}", dim=0))
    model.add(s, source, *scores)
    s = Stage(layer, 3, "attention_score")
    both = s.op("aten.add.Tensor", [s.read(scores[0]), s.read(scores[1])], ["m", heads])
    score = s.op("aten.leaky_relu.default", [both], ["m", heads], name="score", negative_slope=0.2)
    model.add(s, score)
    s = Stage(layer, 4, "attention_softmax")
    s.read(score)
    # A softmax does not change if a target's scores are shifted; by their largest, exp does not overflow.
    most = largest_by_target(s, score, ["n", heads])
    most = s.op("aten.index_select.default", [most, ends(s, 1)], ["m", heads], dim=0)
    shifted = s.op("aten.sub.Tensor", [score, most], ["m", heads])
    power = s.op("aten.exp.default", [shifted], ["m", heads])
    total = scatter_sum(s, power, ["n", heads])
    back = s.op("aten.index_select.default", [total, ends(s, 1)], ["m", heads], dim=0)
    alpha = s.op("aten.div.Tensor", [power, back], ["m", heads], name="alpha")
    model.add(s, alpha)
    s = Stage(layer, 5, "message_weighted")
    s.read(source)
    column = s.op("aten.unsqueeze.default", [s.read(alpha)], ["m", heads, 1], dim=2)
    message = s.op("aten.mul.Tensor", [source, column], ["m", heads, width], name="message")
    model.add(s, message)
    s = Stage(layer, 6, "reduce_sum")
    total = scatter_sum(s, s.read(message), ["n", heads, width])
    flat = s.op("aten.view.default", [total], ["n", fout], size=["n", fout])
    bias = s.weight("p_bias", f"{key}.bias", fout)
    hidden = s.op("aten.add.Tensor", [flat, bias], ["n", fout], name="hidden")
    model.add(s, hidden)
    return hidden


KINDS = {"graphsage": (graphsage_product, graphsage), "gcn": (gcn_product, gcn), "gat": (gat_product, gat)}


def add_layers(model, layers, products_first):
    """Adds all stages and returns the number of layers, of which the first has a product alone if that comes first."""
    # A product comes first only where rows become shorter, each of which is read once for every edge, or sent to other
    # ranks. GraphSAGE has two, which both have to reach the next layer, and the largest of products is another one.
    sides = {"graphsage": 2}
    first = [products_first and layer.aggregate != "max" and sides.get(layer.kind, 1) * layer.outputs < layer.inputs
             for layer in layers] + [False]

    def add_product(number, stage, layer, x):
        s = Stage(number, stage, "product", of_next=stage > 1)
        more = layer.options if layer.kind == "gat" else ()
        model.add(s, KINDS[layer.kind][0](s, model, layer.key, s.read(x), layer.inputs, layer.outputs, *more))

    number = 1
    if first[0]:
        add_product(1, 1, layers[0], tensor("x", "n", layers[0].inputs))
        number += 1
    for i, layer in enumerate(layers):
        hidden = KINDS[layer.kind][1](model, number, layer.key, layer.inputs, layer.outputs, first[i], *layer.options)
        stage = model.stages[-1]["id"] + 1
        name = "active" if first[i + 1] else "out"
        active = activation(model, number, stage, hidden, layer.outputs, layer.activation, name)
        if first[i + 1]:
            add_product(number, stage + 1, layers[i + 1], active)
        number += 1
    return number - 1

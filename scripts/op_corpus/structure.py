# SPDX-License-Identifier: Apache-2.0
"""Cases: graphs of unusual structure."""

from export.document import describe
from op_corpus.specs import DTYPES, INF, NAN, Spec, boolean, f32, i64, values, weight


def structure(c):
    """Requirements of the document's format, independent of the op."""

    def readers(b):
        y = b.op("mul.Tensor", b.input(f32(3, 4)), 2.0)
        before = b.op("sub.Tensor", y, 1.0)
        changed = b.op("relu_", y)
        after = b.op("add.Tensor", y, 1.0)
        return [before, changed, after]

    c.graph("in_place_with_other_readers", readers)

    def chain(b):
        y = b.op("add.Tensor", b.input(f32(4)), 0.5)
        first = b.op("mul_.Tensor", y, 3.0)
        second = b.op("add_.Tensor", first, y)
        third = b.op("clamp_", second, 0.0)
        return [y, first, second, third]

    c.graph("in_place_chain", chain)

    def on_input(b):
        x = b.input(f32(5))
        y = b.op("neg_", x)
        return [y, x, b.op("exp", x)]

    c.graph("in_place_on_an_input", on_input)

    def on_weight(b):
        w = b.weight(f32(3, 4), "layer.weight")
        y = b.op("mul_.Tensor", w, 0.5)
        return [y, b.op("linear", b.input(f32(2, 4)), w)]

    c.graph("in_place_on_a_weight", on_weight)

    def on_view(name, view):
        def build(b):
            y = b.op("mul.Tensor", b.input(f32(4, 6)), 1.5)
            part = view(b, y)
            changed = b.op("add_.Tensor", part, 10.0)
            return [changed, y, part, b.op("sum", y)]

        c.graph(f"in_place_on_a_{name}", build, atol=1e-5)

    on_view("transpose", lambda b, y: b.op("t", y))
    on_view("slice", lambda b, y: b.op("slice.Tensor", y, 1, 1, 4, 2))
    on_view("select", lambda b, y: b.op("select.int", y, 0, 2))
    on_view("reshape", lambda b, y: b.op("view", y, [2, 12]))
    on_view("chunk", lambda b, y: b.op("chunk", y, 2, 1)[1])
    on_view("unbind", lambda b, y: b.op("unbind.int", y)[3])
    on_view("detach", lambda b, y: b.op("detach", y))
    on_view("dropout", lambda b, y: b.op("dropout", y, 0.5, False))
    on_view("contiguous", lambda b, y: b.op("contiguous", y))

    def on_expanded(b):
        y = b.op("expand", b.input(f32(3, 1)), [3, 4])
        return [b.op("relu_", y), y]

    c.graph("in_place_on_an_expand", on_expanded)

    def list_member(b):
        parts = b.op("split.Tensor", b.input(f32(6)), 2)
        changed = b.op("mul_.Tensor", parts[1], 2.0)
        return [b.op("cat", [parts[0], changed, parts[1], parts[2]])]

    c.graph("in_place_on_a_list_member", list_member)

    def repeated(b):
        x = b.input(f32(3))
        y = b.op("mul.Tensor", x, x)
        return [y, b.op("cat", [x, y, x]), b.op("add.Tensor", y, y)]

    c.graph("operands_twice", repeated)

    def pass_through(b):
        x, w = b.input(f32(3)), b.weight(f32(3), "scale")
        return [x, b.op("mul.Tensor", x, w), w]

    c.graph("inputs_and_weights_as_outputs", pass_through)
    c.graph("no_node", lambda b: [b.input(i64(4))])

    def unused(b):
        b.input(f32(2), "unused")
        return [b.op("relu", b.input(f32(3), "used"))]

    c.graph("unused_input", unused)

    def same_output_twice(b):
        y = b.op("relu", b.input(f32(3)))
        return [y, b.op("neg", y), y]

    c.graph("one_output_twice", same_output_twice)

    def last(b):
        return [b.op("chunk", b.input(f32(6)), 3)[2]]

    def negative(document, builder):
        document["nodes"][-1]["attrs"] = {"index": -1}

    c.graph("getitem_negative", last, negative)

    def list_name(document, builder):
        # torch.export's names for a list of one tensor.
        for node in document["nodes"]:
            for entry in node["inputs"] + node["outputs"]:
                if entry["name"] == "chunk":
                    entry["name"] = "chunk_0"

    c.graph("list_of_one", lambda b: [b.op("chunk", b.input(f32(4)), 1)[0]], list_name)

    def bare(document, builder):
        for node in document["nodes"]:
            for entry in node["inputs"]:
                entry.pop("producer_node", None)
                entry.pop("producer_output_idx", None)
                entry.pop("dtype", None)
        for entry in document["graph_outputs"]:
            entry.pop("producer_node", None)
            entry.pop("producer_output_idx", None)

    c.graph("mentions_without_producers_and_dtypes", readers, bare)

    def set_grad(b):
        x, y = b.input(f32(3, 4), "x"), b.input(f32(4), "y")
        return [b.op("relu", b.op("add.Tensor", x, y))]

    def wrap(document, builder):
        body = {k: v for k, v in document.items() if k not in ("weights", "weight_name_mapping")}
        document["nodes"] = [
            {
                "name": "relu",
                "op_type": "wrap_with_set_grad_enabled",
                "inputs": [describe(value, True) for value in builder.inputs],
                "outputs": [dict(document["graph_outputs"][0])],
                "attrs": {"enabled": False, "body": body},
            }
        ]

    c.graph("set_grad_enabled", set_grad, wrap)
    c.op("null_attrs", "conv2d", f32(1, 2, 4, 4), weight(f32(3, 2, 3, 3)), attrs={"bias": None})
    c.op("attrs_for_newer_keywords", "argsort", f32(5), attrs={"_metadata": {"seq": 1}})

    for kind in DTYPES.split():
        data = [True, False, True] if kind == "bool" else [1, 2, 3]
        data = [0.5, 0.1, -3.25] if kind.startswith(("float", "bfloat")) else data

        def constant(b, kind=kind, data=data):
            held = b.constant(values(data, kind))
            x = b.input(
                Spec(kind, (3,), 0, 2) if "float" not in kind else Spec(kind, (3,), -2.0, 2.0)
            )
            return [b.op("where.self", b.input(boolean(3), "choice"), x, held), held]

        c.graph(f"constant_{kind}", constant, constants_in_file=False, exact=True)
        c.graph(f"constant_{kind}_in_file", constant, lambda d, b: d.pop("constants"), exact=True)
    c.graph(
        "constant_not_finite",
        lambda b: [b.op("mul.Tensor", b.input(f32(4)), b.constant(values([INF, -INF, NAN, 1.0])))],
        constants_in_file=False,
    )
    c.graph(
        "constant_0d",
        lambda b: [b.op("add.Tensor", b.input(i64(4)), b.constant(values(2**53 + 1, "int64")))],
        constants_in_file=False,
    )
    c.graph(
        "constant_empty",
        lambda b: [b.op("cat", [b.input(f32(2)), b.constant(f32(0))])],
        constants_in_file=False,
    )

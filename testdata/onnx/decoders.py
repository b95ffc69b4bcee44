# SPDX-License-Identifier: Apache-2.0
"""Writes small decoders whose caches are inputs and, by concatenation, outputs, in the forms that exporters give them.

decoder_masked.onnx   opset 18: a mask of ones, positions, a batch; attention written out, with a guard against no numbers
decoder_window.onnx   opset 23: neither mask nor positions; Attention with a window of 3, heads that are shared
decoder_buffer.onnx   opset 21: GroupQueryAttention with a buffer for past and present, and a mask of ones
decoder_scatter.onnx  opset 24: TensorScatter into a buffer at an index that is an input
decoder_hybrid.onnx   opset 18: in front of the attention a convolution over the tokens, whose last two inputs are kept
decoder_slopes.onnx   opset 18: scores fall with the distance, by a slope for each head
decoder_buckets.onnx  opset 18: a bias by the distance, of a table, computed for all rows, and the mask in it; a batch
decoder_ends.onnx     opset 18: a table of biases by the distance from the last key, of which the end is used
decoder_reads.onnx    refused: the sum of a cache is an output

python3 testdata/onnx/decoders.py        from the top of the repository; needs NumPy
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../scripts/check")

import numpy as np  # noqa: E402
from onnx_writer import graph, model, node, tensor, value  # noqa: E402

HEADS, SHARED, WIDTH, WORDS, PLACES = 4, 2, 4, 24, 512
HIDDEN = HEADS * WIDTH


class Decoder:
    def __init__(self, batch, has_mask, has_positions, masked, rows=None):
        self.batch = batch
        self.rows = rows  # of a buffer
        self.rng = np.random.default_rng(11)
        self.nodes, self.constants, self.outputs = [], [], []
        self.inputs = [value("input_ids", [batch, "new"], "int64")]
        if has_mask:
            self.inputs.append(value("attention_mask", [batch, "total"], "int64"))
        if has_positions:
            self.inputs.append(value("position_ids", [batch, "new"], "int64"))
        for name, content in {"zero": 0, "one": 1, "two": 2}.items():
            self.constant(name, np.array(content, np.int64))
            self.constant(f"{name}s", np.array([content], np.int64))
        # Sizes, positions and what follows from them.
        self.add("Shape", ["input_ids"], "ids_shape")
        self.add("Gather", ["ids_shape", "one"], "new_count")
        if rows and has_mask:
            self.add("Shape", ["attention_mask"], "mask_shape")
            self.add("Gather", ["mask_shape", "one"], "mask_count")
            self.add("Sub", ["mask_count", "new_count"], "past_count")
        elif rows:
            self.inputs.append(value("write_indices", [1], "int64"))
            self.add("Squeeze", ["write_indices", "zeros"], "past_count")
        else:
            self.add("Shape", ["past_key_values.0.key"], "past_shape")
            self.add("Gather", ["past_shape", "two"], "past_count")
        self.add("Add", ["past_count", "new_count"], "all_count")
        self.add("Range", ["past_count", "all_count", "one"], "places")
        keys = self.constant("rows", np.array(rows, np.int64)) if rows else "all_count"
        self.add("Range", ["zero", keys, "one"], "keys")
        self.add("Unsqueeze", ["places", "ones"], "column")
        self.add("LessOrEqual", ["keys", "column"], "causal")
        masked(self)

    def constant(self, name, array):
        self.constants.append(tensor(name, array))
        return name

    def weight(self, name, rows, columns):
        return self.constant(name, ((self.rng.random((rows, columns)) - 0.5) * 1.2).astype(np.float32))

    def add(self, op, operands, result, **attributes):
        self.nodes.append(node(op, operands, [result], **attributes))
        return result

    def heads(self, name, count):
        """[batch, heads, new, width] of a projection."""
        self.add("MatMul", ["hidden", self.weight(f"w_{name}", HIDDEN, count * WIDTH)], f"{name}_flat")
        shape = self.constant(f"{name}_shape", np.array([0, 0, count, WIDTH], np.int64))
        self.add("Reshape", [f"{name}_flat", shape], f"{name}_split")
        return self.add("Transpose", [f"{name}_split"], name, perm=[0, 2, 1, 3])

    def cache(self, kind):
        past, present = f"past_key_values.0.{kind}", f"present.0.{kind}"
        self.inputs.append(value(past, [self.batch, SHARED, self.rows or "past", WIDTH]))
        self.outputs.append(value(present, [self.batch, SHARED, self.rows or "past + new", WIDTH]))
        return past, present

    def caches(self):
        for kind in ("key", "value"):
            self.heads(kind, SHARED)
            past, present = self.cache(kind)
            if self.rows:
                self.add("TensorScatter", [past, kind, "write_indices"], present, axis=-2)
            else:
                self.add("Concat", [past, kind], present, axis=2)

    def repeated(self, kind):
        """Each head twice, by unsqueeze, expand and reshape."""
        self.add("Unsqueeze", [f"present.0.{kind}", "twos"], f"{kind}_apart")
        group = self.constant(f"{kind}_group", np.array([1, 1, HEADS // SHARED, 1, 1], np.int64))
        self.add("Expand", [f"{kind}_apart", group], f"{kind}_spread")
        shape = self.constant(f"{kind}_all", np.array([0, HEADS, -1, WIDTH], np.int64))
        return self.add("Reshape", [f"{kind}_spread", shape], f"{kind}_heads")

    def embed(self, positions, result="hidden"):
        self.add("Gather", [self.weight("words", WORDS, HIDDEN), "input_ids"], "embedded")
        self.add("Gather", [self.weight("table", PLACES, HIDDEN), positions], "placed")
        self.add("Add", ["embedded", "placed"], result)

    def finish(self, attended, name, opset, domains=()):
        if attended != "flat":
            self.add("Transpose", [attended], "turned", perm=[0, 2, 1, 3])
            shape = self.constant("joined", np.array([0, 0, HIDDEN], np.int64))
            self.add("Reshape", ["turned", shape], "flat")
        self.add("MatMul", ["flat", self.weight("w_out", HIDDEN, HIDDEN)], "mixed")
        self.add("Add", ["hidden", "mixed"], "sum")
        self.add("MatMul", ["sum", self.weight("head", HIDDEN, WORDS)], "logits")
        self.outputs.insert(0, value("logits", [self.batch, "new", WORDS]))
        with open(f"{HERE}/{name}.onnx", "wb") as file:
            file.write(model(graph(self.nodes, self.inputs, self.outputs, self.constants), opset, domains))


def written_out(d, extra=None, mask="mask"):
    """Attention as products and a softmax. `extra` names the scores with what it adds to them."""
    d.add("Transpose", [d.repeated("key")], "key_turned", perm=[0, 1, 3, 2])
    root = d.constant("root", np.array(WIDTH**-0.25, np.float32))
    d.add("Mul", ["query", root], "query_scaled")
    d.add("Mul", ["key_turned", root], "key_scaled")
    d.add("MatMul", ["query_scaled", "key_scaled"], "scores")
    scores = extra(d) if extra else "scores"
    d.add("Add", [scores, mask], "masked")
    d.add("Softmax", ["masked"], "shares", axis=-1)
    d.add("IsNaN", ["shares"], "is_none")
    nothing = d.constant("nothing", np.array(0, np.float32))
    d.add("Where", ["is_none", nothing, "shares"], "weights")
    return d.add("MatMul", ["weights", d.repeated("value")], "attended")


def hiding_mask(d):
    """Causal and, of a mask of ones, in float: 0 or the lowest number."""
    d.add("Cast", ["attention_mask"], "counts", to=9)
    d.add("Unsqueeze", ["counts", d.constant("middle", np.array([1, 2], np.int64))], "counts_all")
    d.add("And", ["causal", "counts_all"], "shown")
    low = d.constant("low", np.array(np.finfo(np.float32).min, np.float32))
    d.add("Where", ["shown", d.constant("seen", np.array(0, np.float32)), low], "mask")


def plain_mask(d):
    low = d.constant("low", np.array(-np.inf, np.float32))
    d.add("Where", ["causal", d.constant("seen", np.array(0, np.float32)), low], "mask")


def window_mask(d):
    d.add("Sub", ["column", d.constant("window", np.array(3, np.int64))], "begin")
    d.add("Greater", ["keys", "begin"], "near")
    d.add("And", ["causal", "near"], "mask")


def masked():
    d = Decoder("batch", True, True, hiding_mask)
    d.embed("position_ids")
    d.heads("query", HEADS)
    d.caches()
    d.finish(written_out(d), "decoder_masked", 18)


def window():
    d = Decoder(1, False, False, window_mask)
    d.embed("places")
    d.heads("query", HEADS)
    d.caches()
    d.add("Attention", ["query", "present.0.key", "present.0.value", "mask"], "attended")
    d.finish("attended", "decoder_window", 23)


def buffer():
    d = Decoder(1, True, False, lambda d: None, 16)
    d.embed("places")
    widths = {"query": HEADS, "key": SHARED, "value": SHARED}
    operands = [d.add("MatMul", ["hidden", d.weight(f"w_{n}", HIDDEN, c * WIDTH)], f"{n}_flat") for n, c in widths.items()]
    names = [d.cache(kind) for kind in ("key", "value")]
    d.add("ReduceSum", ["attention_mask", "ones"], "counted", keepdims=0)
    d.add("Sub", ["counted", "ones"], "last")
    d.add("Cast", ["last"], "seqlens", to=6)
    d.add("Cast", ["mask_count"], "total", to=6)
    operands += [names[0][0], names[1][0], "seqlens", "total"]
    results = ["flat", names[0][1], names[1][1]]
    attributes = {"num_heads": HEADS, "kv_num_heads": SHARED, "local_window_size": 5}
    d.nodes.append(node("GroupQueryAttention", operands, results, "com.microsoft", **attributes))
    d.finish("flat", "decoder_buffer", 21, ("com.microsoft",))


def scatter():
    d = Decoder(1, False, False, lambda d: d.add("Identity", ["causal"], "mask"), 16)
    d.embed("places")
    d.heads("query", HEADS)
    d.caches()
    d.add("Attention", ["query", "present.0.key", "present.0.value", "mask"], "attended")
    d.finish("attended", "decoder_scatter", 24)


def hybrid():
    d = Decoder(1, False, False, plain_mask)
    d.embed("places", "entered")
    d.add("Transpose", ["entered"], "channels", perm=[0, 2, 1])
    d.inputs.append(value("past_conv.0", [1, HIDDEN, 2]))
    d.add("Concat", ["past_conv.0", "channels"], "stream", axis=2)
    d.constant("kept", np.array([-2], np.int64))
    d.constant("end", np.array([2**31], np.int64))
    d.add("Slice", ["stream", "kept", "end", "twos"], "present_conv.0")
    d.outputs.append(value("present_conv.0", [1, HIDDEN, 2]))
    filters = d.constant("filters", (d.rng.random((HIDDEN, 1, 3)) - 0.5).astype(np.float32))
    d.add("Conv", ["stream", filters], "convolved", group=HIDDEN)
    d.add("Transpose", ["convolved"], "turned_back", perm=[0, 2, 1])
    d.add("Add", ["entered", "turned_back"], "hidden")
    d.heads("query", HEADS)
    d.caches()
    d.finish(written_out(d), "decoder_hybrid", 18)


def reads():
    d = Decoder(1, False, False, plain_mask)
    d.embed("places")
    d.heads("query", HEADS)
    d.caches()
    d.add("ReduceSum", ["present.0.value", "twos"], "value_sum", keepdims=0)
    d.outputs.append(value("value_sum", [1, SHARED, WIDTH]))
    d.finish(written_out(d), "decoder_reads", 18)


def slopes():
    def sloped(d):
        d.add("Sub", ["keys", "column"], "apart")
        d.add("Cast", ["apart"], "distance", to=1)
        slope = d.constant("slope", np.array([0.5, 0.25, 0.125, 0.0625], np.float32).reshape(HEADS, 1, 1))
        d.add("Mul", ["distance", slope], "bias")
        return d.add("Add", ["scores", "bias"], "biased")

    d = Decoder(1, False, False, plain_mask)
    d.embed("places")
    d.heads("query", HEADS)
    d.caches()
    d.finish(written_out(d, sloped), "decoder_slopes", 18)


def buckets():
    """A bias as T5 has it."""
    d = Decoder("batch", True, False, hiding_mask)
    d.embed("places")
    d.heads("query", HEADS)
    d.caches()
    exact, count, most = 4, 8, 12
    d.add("Unsqueeze", ["keys", "ones"], "context")
    d.add("Unsqueeze", ["keys", "zeros"], "memory")
    d.add("Sub", ["memory", "context"], "apart")
    d.add("Shape", ["apart"], "apart_shape")
    d.add("ConstantOfShape", ["apart_shape"], "nothing_apart", value=np.zeros(1, np.int64))
    d.add("Min", ["apart", "nothing_apart"], "before")
    d.add("Neg", ["before"], "distance")
    d.add("Less", ["distance", d.constant("exact", np.array(exact, np.int64))], "is_small")
    d.add("Cast", ["distance"], "distance_float", to=1)
    d.add("Div", ["distance_float", d.constant("exact_float", np.array(exact, np.float32))], "ratio")
    d.add("Log", ["ratio"], "logarithm")
    d.add("Div", ["logarithm", d.constant("range", np.array(np.log(most / exact), np.float32))], "share")
    d.add("Mul", ["share", d.constant("rest", np.array(count - exact, np.float32))], "step")
    d.add("Cast", ["step"], "step_whole", to=7)
    d.add("Add", ["step_whole", "exact"], "large")
    d.add("ConstantOfShape", ["apart_shape"], "last_bucket", value=np.array([count - 1], np.int64))
    d.add("Min", ["large", "last_bucket"], "large_bucket")
    d.add("Where", ["is_small", "distance", "large_bucket"], "bucket")
    d.add("Gather", [d.weight("biases", count, HEADS), "bucket"], "bias_last", axis=0)
    d.add("Transpose", ["bias_last"], "bias_first", perm=[2, 0, 1])
    d.add("Unsqueeze", ["bias_first", "zeros"], "bias_all")
    d.add("Neg", ["new_count"], "from_end")
    d.add("Unsqueeze", ["from_end", "zeros"], "begin_new")
    d.constant("end", np.array([2**62], np.int64))
    d.add("Slice", ["bias_all", "begin_new", "end", "twos"], "bias_new")
    d.add("Add", ["bias_new", "mask"], "bias")
    d.finish(written_out(d, mask="bias"), "decoder_buckets", 18)


def ends():
    """A bias as MPT has it."""

    def from_table(d):
        slopes = 2.0 ** -np.arange(1, HEADS + 1, dtype=np.float32)
        table = d.constant("biases", slopes.reshape(1, HEADS, 1, 1) * np.arange(1 - 64, 1, dtype=np.float32))
        d.add("Neg", ["all_count"], "from_end")
        d.add("Unsqueeze", ["from_end", "zeros"], "begin")
        d.constant("end", np.array([2**62], np.int64))
        d.constant("threes", np.array([3], np.int64))
        d.add("Slice", [table, "begin", "end", "threes"], "bias")
        return d.add("Add", ["scores", "bias"], "biased")

    d = Decoder(1, False, False, plain_mask)
    d.embed("places")
    d.heads("query", HEADS)
    d.caches()
    d.finish(written_out(d, from_table), "decoder_ends", 18)


for write in (masked, window, buffer, scatter, hybrid, slopes, buckets, ends, reads):
    write()

# SPDX-License-Identifier: Apache-2.0
"""Decoders as ONNX files, of random weights: configurations in which today's families differ, in the forms that exporters
write them.

FORMS    concat      opset 18: keys and values behind those of the past, attention of MatMul and Softmax
         gqa         com.microsoft.GroupQueryAttention, which puts them there; rotation and masks are its own
         gqa-shared  the same with a buffer of fixed size for past and present
         attention   opset 23: Attention with past and present, RotaryEmbedding, RMSNormalization
         scatter     opset 24: TensorScatter into a buffer of fixed size, Attention on it
CONFIGS  see there. A form that has no word for a part of a configuration writes it out where it can.

All forms of a configuration have the same weights and give the same logits.
"""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../check"))
from onnx_writer import graph, model, node, tensor, value  # noqa: E402

CAPACITY = 64
PLACES = 256  # rows of tables by position
WORDS = 96
FORMS = ("concat", "gqa", "gqa-shared", "attention", "scatter")
OPSETS = {"concat": 18, "gqa": 21, "gqa-shared": 21, "attention": 23, "scatter": 24}
BASE = {
    "layers": 2, "width": 64, "heads": 4, "kv_heads": 4, "size": 16, "inner": 96, "rotary": 16, "interleaved": False,
    "bias": False, "norms": False, "softcap": 0.0, "window": 0, "packed": False, "learned": False, "mask": True, "positions": True,
}  # fmt: skip
# Whether a file has attention_mask and position_ids as inputs differs, too: what is not given is computed from sizes.
CONFIGS = {
    "llama": {},
    "smollm": {"heads": 6, "kv_heads": 2, "positions": False},
    "qwen2": {"kv_heads": 1, "bias": True, "mask": False},
    "qwen3": {"kv_heads": 2, "size": 32, "rotary": 32, "norms": True},
    "mistral": {"kv_heads": 2, "window": 8, "positions": False},
    "gemma2": {"kv_heads": 2, "softcap": 5.0, "window": 12},
    "phi3": {"packed": True, "mask": False, "positions": False},
    "glm": {"kv_heads": 2, "size": 32, "rotary": 16, "interleaved": True, "bias": True},
    "gpt2": {"rotary": 0, "learned": True, "bias": True, "packed": True},
}


class Writer:
    """Nodes with a result each, and the constants that they read."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.known, self.count = [], [], {}, 0

    def op(self, kind, *inputs, outputs=1, domain="", **attributes):
        names = [f"{kind}_{self.count}_{i}" if outputs > 1 else f"{kind}_{self.count}" for i in range(outputs)]
        self.count += 1
        self.nodes.append(node(kind, inputs, names, domain, **attributes))
        return names if outputs > 1 else names[0]

    def constant(self, content, dtype):
        array = np.array(content, dtype)
        key = (array.tobytes(), array.shape, array.dtype.name)
        if key not in self.known:
            self.known[key] = f"c_{len(self.known)}"
            self.constants.append(tensor(self.known[key], array))
        return self.known[key]

    def integers(self, content):
        return self.constant(content, np.int64)

    def number(self, content):
        return self.constant(content, np.float32)

    def weight(self, name, *shape, scale=None, base=0.0):
        # By name, so that every form has the same.
        scale = 1.3 / np.sqrt(shape[0]) if scale is None else scale
        generator = np.random.default_rng([ord(c) for c in name])
        self.constants.append(tensor(name, (base + scale * generator.standard_normal(shape)).astype(np.float32)))
        return name

    def size(self, of, dim):
        return self.op("Gather", self.op("Shape", of), self.integers(dim))


class Decoder(Writer):
    def __init__(self, shape, form):
        super().__init__(0)
        self.shape, self.form = {**BASE, **shape}, form
        self.inputs = [value("input_ids", [1, "sequence_length"], "int64")]
        self.outputs = [value("logits", [1, "sequence_length", WORDS])]
        self.states = []  # (input, output)
        self.is_fixed = form in ("gqa-shared", "scatter")

    def __getattr__(self, key):
        if key in ("shape",):
            raise AttributeError(key)
        try:
            return self.shape[key]
        except KeyError:
            raise AttributeError(key) from None

    # -- inputs

    def prepare(self):
        """What all layers read: sizes, positions, and what says which keys count."""
        fused = self.form.startswith("gqa")
        self.new = self.size("input_ids", 1)
        if self.form == "scatter":
            self.inputs.append(value("write_indices", [1], "int64"))
            self.past = self.op("Squeeze", "write_indices", self.integers([0]))
        elif self.shape["mask"] or fused:
            self.inputs.append(value("attention_mask", [1, "total_sequence_length"], "int64"))
            self.past = self.op("Sub", self.size("attention_mask", 1), self.new)
        else:
            self.past = self.size("past_key_values.0.key", 2)
        self.total = self.op("Add", self.past, self.new)
        if fused:
            counted = self.op("ReduceSum", "attention_mask", self.integers([1]), keepdims=0)
            self.seqlens = self.op("Cast", self.op("Sub", counted, self.integers([1])), to=6)
            self.total32 = self.op("Cast", self.size("attention_mask", 1), to=6)
        if self.form != "scatter" and self.shape["positions"] and (self.rotary or self.learned) and not (fused and self.rotary):
            self.inputs.append(value("position_ids", [1, "sequence_length"], "int64"))
            self.places = "position_ids"
        else:
            self.places = self.op("Unsqueeze", self.op("Range", self.past, self.total, self.integers(1)), self.integers([0]))
        if self.rotary:
            angles = np.arange(PLACES)[:, None] * 10000.0 ** (-np.arange(0, self.rotary, 2) / self.rotary)
            self.cos, self.sin = (self.number(function(angles)) for function in (np.cos, np.sin))
        # The op's own causal mask where nothing else is asked for.
        self.is_causal = self.form in ("attention", "scatter") and not self.shape["mask"] and not self.window
        if not fused:
            self.seen = "" if self.is_causal else self.mask_of_keys()
        if self.is_causal and self.form == "scatter":
            self.counted = self.op("Unsqueeze", self.total, self.integers([0]))

    def mask_of_keys(self):
        """bool [1, 1, new, keys]"""
        keys = self.integers(CAPACITY) if self.form == "scatter" else self.total
        columns = self.op("Range", self.integers(0), keys, self.integers(1))
        rows = self.op("Range", self.past, self.total, self.integers(1))
        rows = self.op("Unsqueeze", rows, self.integers([1]))
        seen = self.op("LessOrEqual", columns, rows)
        if self.window:
            seen = self.op("And", seen, self.op("Greater", columns, self.op("Sub", rows, self.integers(self.window))))
        seen = self.op("Unsqueeze", seen, self.integers([0, 1]))
        if self.shape["mask"] and self.form in ("concat", "attention"):
            given = self.op("Unsqueeze", self.op("Cast", "attention_mask", to=9), self.integers([1, 2]))
            seen = self.op("And", seen, given)
        return seen

    # -- parts

    def rms_norm(self, x, name, width):
        weight = self.weight(name, width, scale=0.1, base=1.0)
        if OPSETS[self.form] >= 23:
            return self.op("RMSNormalization", x, weight, axis=-1, epsilon=1e-6)
        if self.form.startswith("gqa"):
            return self.op("SimplifiedLayerNormalization", x, weight, axis=-1, epsilon=1e-6)
        squares = self.op("ReduceMean", self.op("Pow", x, self.number(2)), self.integers([-1]), keepdims=1)
        root = self.op("Sqrt", self.op("Add", squares, self.number(1e-6)))
        return self.op("Mul", self.op("Div", x, root), weight)

    def norm(self, x, name):
        if not self.learned:
            return self.rms_norm(x, name, self.width)
        weight, bias = self.weight(name, self.width, scale=0.1, base=1.0), self.weight(f"{name}.bias", self.width, scale=0.1)
        return self.op("LayerNormalization", x, weight, bias, axis=-1, epsilon=1e-5)

    def linear(self, x, name, width, inner, bias=False):
        y = self.op("MatMul", x, self.weight(name, inner, width))
        return self.op("Add", y, self.weight(f"{name}.bias", width, scale=0.1)) if bias else y

    def parted(self, x, heads):
        """[1, heads, new, size]"""
        x = self.op("Reshape", x, self.integers([1, -1, heads, self.size_of_head]))
        return self.op("Transpose", x, perm=[0, 2, 1, 3])

    @property
    def size_of_head(self):
        return self.shape["size"]

    def joined(self, x):
        x = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.op("Reshape", x, self.integers([1, -1, self.heads * self.size_of_head]))

    def rotated(self, x):
        """x is [1, heads, new, size]."""
        if not self.rotary:
            return x
        if OPSETS[self.form] >= 23:
            return self.op(
                "RotaryEmbedding", x, self.cos, self.sin, self.places,
                interleaved=int(self.interleaved), rotary_embedding_dim=self.rotary if self.rotary < self.size_of_head else 0,
            )  # fmt: skip
        cos, sin = (self.op("Unsqueeze", self.op("Gather", table, self.places), self.integers([1])) for table in (self.cos, self.sin))
        rest = None
        if self.rotary < self.size_of_head:
            rest = self.op("Slice", x, self.integers([self.rotary]), self.integers([2**62]), self.integers([3]))
            x = self.op("Slice", x, self.integers([0]), self.integers([self.rotary]), self.integers([3]))
        if self.interleaved:
            step = self.integers([2])
            one = self.op("Slice", x, self.integers([0]), self.integers([2**62]), self.integers([3]), step)
            other = self.op("Slice", x, self.integers([1]), self.integers([2**62]), self.integers([3]), step)
        else:
            half = self.rotary // 2
            one = self.op("Slice", x, self.integers([0]), self.integers([half]), self.integers([3]))
            other = self.op("Slice", x, self.integers([half]), self.integers([2**62]), self.integers([3]))
        first = self.op("Sub", self.op("Mul", one, cos), self.op("Mul", other, sin))
        second = self.op("Add", self.op("Mul", other, cos), self.op("Mul", one, sin))
        if self.interleaved:
            last = self.integers([-1])
            pairs = self.op("Concat", self.op("Unsqueeze", first, last), self.op("Unsqueeze", second, last), axis=-1)
            x = self.op("Reshape", pairs, self.integers([0, 0, 0, self.rotary]))
        else:
            x = self.op("Concat", first, second, axis=-1)
        return x if rest is None else self.op("Concat", x, rest, axis=-1)

    # -- attention

    def cache(self, layer):
        past, present = [], []
        for what in ("key", "value"):
            names = f"past_key_values.{layer}.{what}", f"present.{layer}.{what}"
            extents = [CAPACITY] * 2 if self.is_fixed else ["past_sequence_length", "total_sequence_length"]
            self.inputs.append(value(names[0], [1, self.kv_heads, extents[0], self.size_of_head]))
            self.outputs.append(value(names[1], [1, self.kv_heads, extents[1], self.size_of_head]))
            self.states.append(names)
            past.append(names[0])
            present.append(names[1])
        return past, present

    def attend(self, x, layer):
        size, name = self.size_of_head, f"layers.{layer}"
        widths = [self.heads * size, self.kv_heads * size, self.kv_heads * size]
        past, present = self.cache(layer)
        if self.packed:
            packed = self.linear(x, f"{name}.qkv", sum(widths), self.width, self.bias)
            if self.form.startswith("gqa") and not self.norms:
                return self.grouped(packed, "", "", past, present)
            query, key, val = self.op("Split", packed, self.integers(widths), outputs=3, axis=2)
        else:
            query, key, val = (self.linear(x, f"{name}.{w}", n, self.width, self.bias) for w, n in zip("qkv", widths))
        if self.norms:
            shaped = [self.op("Reshape", t, self.integers([1, -1, h, size])) for t, h in ((query, self.heads), (key, self.kv_heads))]
            query, key = (self.rms_norm(t, f"{name}.{w}.head_norm", size) for t, w in zip(shaped, "qk"))
            if self.form.startswith("gqa"):
                query, key = (self.op("Reshape", t, self.integers([1, -1, n])) for t, n in zip((query, key), widths))
            else:
                query, key = (self.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (query, key))
        if self.form.startswith("gqa"):
            return self.grouped(query, key, val, past, present)
        if not self.norms:
            query, key = self.parted(query, self.heads), self.parted(key, self.kv_heads)
        query, key, val = self.rotated(query), self.rotated(key), self.parted(val, self.kv_heads)
        if self.form == "concat":
            return self.written_out(query, key, val, past, present)
        attributes = {"softcap": self.softcap} if self.softcap else {}
        seen = self.seen
        if self.is_causal:
            attributes["is_causal"], seen = 1, ""
        if self.form == "attention":
            self.nodes.append(node("Attention", [query, key, val, seen, *past], [f"{name}.context", *present], **attributes))
            return self.joined(f"{name}.context")
        for new, old, kept in zip((key, val), past, present):
            self.nodes.append(node("TensorScatter", [old, new, "write_indices"], [kept], axis=-2))
        counted = ["", "", self.counted] if self.is_causal else []
        return self.joined(self.op("Attention", query, *present, seen, *counted, **attributes))

    def grouped(self, query, key, val, past, present):
        attributes = {"num_heads": self.heads, "kv_num_heads": self.kv_heads}
        tables = ["", ""]
        if self.rotary:
            attributes.update(do_rotary=1, rotary_interleaved=int(self.interleaved))
            tables = [self.cos, self.sin]
        if self.softcap:
            attributes["softcap"] = self.softcap
        if self.window:
            attributes["local_window_size"] = self.window
        inputs = [query, key, val, *past, self.seqlens, self.total32, *tables]
        name = f"context_{len(self.states)}"
        self.nodes.append(node("GroupQueryAttention", inputs, [name, *present], "com.microsoft", **attributes))
        return name

    def written_out(self, query, key, val, past, present):
        for new, old, kept in zip((key, val), past, present):
            self.nodes.append(node("Concat", [old, new], [kept], axis=2))
        key, val = present
        repeats = self.heads // self.kv_heads
        if repeats > 1:
            key, val = (self.repeated(t, repeats) for t in (key, val))
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.number(1 / np.sqrt(self.size_of_head)))
        if self.softcap:
            scores = self.op("Tanh", self.op("Div", scores, self.number(self.softcap)))
            scores = self.op("Mul", scores, self.number(self.softcap))
        scores = self.op("Where", self.seen, scores, self.number(-3.4028235e38))
        return self.joined(self.op("MatMul", self.op("Softmax", scores, axis=-1), val))

    def repeated(self, x, repeats):
        x = self.op("Unsqueeze", x, self.integers([2]))
        shape = self.op("Concat", self.integers([1, self.kv_heads, repeats]), self.op("Unsqueeze", self.total, self.integers([0])),
                        self.integers([self.size_of_head]), axis=0)  # fmt: skip
        x = self.op("Expand", x, shape)
        return self.op("Reshape", x, self.integers([1, self.heads, -1, self.size_of_head]))

    # -- the whole

    def write(self):
        """The model's bytes."""
        self.prepare()
        x = self.op("Gather", self.weight("words", WORDS, self.width, scale=0.3), "input_ids")
        if self.learned:
            x = self.op("Add", x, self.op("Gather", self.weight("places", PLACES, self.width, scale=0.3), self.places))
        for layer in range(self.layers):
            name = f"layers.{layer}"
            y = self.attend(self.norm(x, f"{name}.norm"), layer)
            x = self.op("Add", x, self.linear(y, f"{name}.out", self.width, self.heads * self.size_of_head, self.bias))
            y = self.norm(x, f"{name}.behind_norm")
            if self.learned:
                y = self.linear(y, f"{name}.up", self.inner, self.width, True)
                y = self.op("Mul", y, self.op("Sigmoid", self.op("Mul", y, self.number(1.702))))
            else:
                gate, up = (self.linear(y, f"{name}.{which}", self.inner, self.width) for which in ("gate", "up"))
                y = self.op("Mul", self.op("Mul", gate, self.op("Sigmoid", gate)), up)
            x = self.op("Add", x, self.linear(y, f"{name}.down", self.width, self.inner, self.learned))
        x = self.norm(x, "norm")
        self.nodes.append(node("MatMul", [x, self.weight("head", self.width, WORDS)], ["logits"]))
        domains = ("com.microsoft",) if self.form.startswith("gqa") else ()
        return model(graph(self.nodes, self.inputs, self.outputs, self.constants), OPSETS[self.form], domains)

    def inputs_of_step(self, ids, past):
        """Arrays by name, for ids [1, new] behind `past` tokens, without states."""
        new, names = ids.shape[1], {"input_ids": ids}
        declared = b"".join(self.inputs)
        if b"attention_mask" in declared:
            names["attention_mask"] = np.ones((1, past + new), np.int64)
        if b"position_ids" in declared:
            names["position_ids"] = np.arange(past, past + new, dtype=np.int64)[None]
        if self.form == "scatter":
            names["write_indices"] = np.array([past], np.int64)
        return names

    def first_states(self):
        rows = CAPACITY if self.is_fixed else 0
        return {name: np.zeros((1, self.kv_heads, rows, self.size_of_head), np.float32) for name, _ in self.states}

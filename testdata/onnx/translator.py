# SPDX-License-Identifier: Apache-2.0
"""An encoder with a decoder as optimum writes it, of random weights, and the ids that NumPy gives for some sources.

encoder_model.onnx            ids and a mask in, hidden states out
decoder_model.onnx            the first step: logits, and keys and values of the decoder and of the source
decoder_with_past_model.onnx  a step behind it, which takes these and gives those of the decoder
decoder_hidden_model.onnx     the same without keys and values of the source: it takes the hidden states in each step
decoder_model_merged.onnx     both steps as branches of an If by use_cache_branch, as files of one decoder have them
true.npy, false.npy           its choice, for --freeze
translator.ids                SOURCE|IDS, 12 ids behind id 0

Usage: translator.py [FOLDER]    needs NumPy
"""

import os
import sys
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../scripts/check"))
from onnx_writer import graph, model, node, tensor, value  # noqa: E402

WORDS, WIDTH, HEADS, PLACES = 31, 8, 2, 768
SIZE = WIDTH // HEADS
LOWEST = np.float32(-3.4028235e38)
BATCH, SOURCE, TARGET, PAST = "batch_size", "encoder_sequence_length", "decoder_sequence_length", "past_decoder_sequence_length"


def make_weights():
    random = np.random.default_rng(3)
    draw = lambda scale, *shape: (scale * random.standard_normal(shape)).astype(np.float32)
    weights = {"words": draw(1, WORDS, WIDTH), "places": draw(1, PLACES, WIDTH), "head": draw(0.6, WIDTH, WORDS)}
    for part in ("encoder", "decoder", "cross"):
        for name in "qkvo":
            weights[f"{part}.{name}"] = draw(1.5 * WIDTH**-0.5, WIDTH, WIDTH)
    for part in ("encoder", "decoder", "cross", "last"):
        weights[f"{part}.norm"], weights[f"{part}.bias"] = 1 + draw(0.2, WIDTH), draw(0.2, WIDTH)
    return weights


class Writer:
    def __init__(self, weights):
        self.weights, self.nodes, self.constants, self.used, self.count = weights, [], [], {}, 0

    def op(self, kind, *inputs, name=None, **attributes):
        name = name or f"/{kind}_{self.count}"
        self.count += 1
        self.nodes.append(node(kind, [self.named(i) for i in inputs], [name], **attributes))
        return name

    def named(self, item):
        """A tensor by name, one of the weights, or a constant."""
        if isinstance(item, str) and item not in self.weights:
            return item
        array = self.weights[item] if isinstance(item, str) else np.asarray(item)
        key = item if isinstance(item, str) else f"c{array.tobytes().hex()}_{array.dtype}_{array.shape}"
        if key not in self.used:
            self.used[key] = item if isinstance(item, str) else f"constant_{zlib.crc32(key.encode()):08x}"
            self.constants.append(tensor(self.used[key], array))
        return self.used[key]

    def size(self, of, dim):
        return self.op("Gather", self.op("Shape", of), np.int64(dim))

    def norm(self, x, part):
        return self.op("LayerNormalization", x, f"{part}.norm", f"{part}.bias", axis=-1, epsilon=1e-5)

    def heads(self, x, weight, name=None):
        x = self.op("Reshape", self.op("MatMul", x, weight), np.array([0, -1, HEADS, SIZE]))
        return self.op("Transpose", x, perm=[0, 2, 1, 3], name=name)

    def attend(self, part, query, key, val, bias=None):
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, np.float32(SIZE**-0.5))
        if bias is not None:
            scores = self.op("Add", scores, bias)
        x = self.op("MatMul", self.op("Softmax", scores, axis=-1), val)
        x = self.op("Reshape", self.op("Transpose", x, perm=[0, 2, 1, 3]), np.array([0, -1, WIDTH]))
        return self.op("MatMul", x, f"{part}.o")

    def bias_of(self, mask):
        """What hides the rows that a mask [batch, rows] of int64 has as 0."""
        mask = self.op("Unsqueeze", self.op("Cast", mask, to=1), np.array([1, 2]))
        return self.op("Mul", self.op("Sub", np.float32(1), mask), LOWEST)

    def positions(self, x, start, count):
        return self.op("Add", x, self.op("Gather", "places", self.op("Range", start, self.op("Add", start, count), np.int64(1))))


def encoder(weights):
    w = Writer(weights)
    x = w.positions(w.op("Gather", "words", "input_ids"), np.int64(0), w.size("input_ids", 1))
    y = w.norm(x, "encoder")
    q, k, v = (w.heads(y, f"encoder.{n}") for n in "qkv")
    w.op("Add", x, w.attend("encoder", q, k, v, w.bias_of("attention_mask")), name="last_hidden_state")
    rows = [BATCH, SOURCE]
    inputs = [value("input_ids", rows, "int64"), value("attention_mask", rows, "int64")]
    return model(graph(w.nodes, inputs, [value("last_hidden_state", [*rows, WIDTH])], w.constants), 17)


def decoder_parts(weights, has_past, has_cross_past, tokens):
    """(nodes, inputs, outputs, constants)"""
    w = Writer(weights)
    inputs = [value("input_ids", [BATCH, tokens], "int64"), value("encoder_attention_mask", [BATCH, SOURCE], "int64")]
    outputs = [value("logits", [BATCH, tokens, WORDS])]
    if not has_cross_past:
        inputs.append(value("encoder_hidden_states", [BATCH, SOURCE, WIDTH]))
    past = ["past_key_values.0.decoder.key", "past_key_values.0.decoder.value"]
    present = ["present.0.decoder.key", "present.0.decoder.value"]
    new = w.size("input_ids", 1)
    start = w.size(past[0], 2) if has_past else np.int64(0)
    x = w.positions(w.op("Gather", "words", "input_ids"), start, new)
    y = w.norm(x, "decoder")
    query, key, val = (w.heads(y, f"decoder.{n}") for n in "qkv")
    for old, fresh, name in zip(past, (key, val), present):
        if has_past:
            inputs.append(value(old, [BATCH, HEADS, PAST, SIZE]))
            w.op("Concat", old, fresh, axis=2, name=name)
        else:
            w.op("Identity", fresh, name=name)
        outputs.append(value(name, [BATCH, HEADS, "total_length", SIZE]))
    total = w.op("Add", start, new)
    columns = w.op("Range", np.int64(0), total, np.int64(1))
    rows = w.op("Unsqueeze", w.op("Range", start, total, np.int64(1)), np.array([1]))
    seen = w.op("Where", w.op("LessOrEqual", columns, rows), np.float32(0), LOWEST)
    x = w.op("Add", x, w.attend("decoder", query, *present, w.op("Unsqueeze", seen, np.array([0, 1]))))
    query = w.heads(w.norm(x, "cross"), "cross.q")
    if has_cross_past:
        cross = ["past_key_values.0.encoder.key", "past_key_values.0.encoder.value"]
        inputs += [value(name, [BATCH, HEADS, "encoder_sequence_length_out", SIZE]) for name in cross]
    else:
        kept = ["present.0.encoder.key", "present.0.encoder.value"] if not has_past else [None, None]
        cross = [w.heads("encoder_hidden_states", f"cross.{n}", name) for n, name in zip("kv", kept)]
        outputs += [value(name, [BATCH, HEADS, SOURCE, SIZE]) for name in kept if name]
    x = w.op("Add", x, w.attend("cross", query, *cross, w.bias_of("encoder_attention_mask")))
    w.op("MatMul", w.norm(x, "last"), "head", name="logits")
    return w.nodes, inputs, outputs, w.constants


def decoder(weights, has_past, has_cross_past):
    tokens = 1 if has_past and has_cross_past else TARGET
    return model(graph(*decoder_parts(weights, has_past, has_cross_past, tokens)), 17)


def merged_decoder(weights):
    first, step = (decoder_parts(weights, has_past, has_past, TARGET) for has_past in (False, True))
    # Keys and values of the source come of the first step alone; the other one gives empty ones.
    empty = np.zeros((0, HEADS, 1, SIZE), np.float32)
    names = ["present.0.encoder.key", "present.0.encoder.value"]
    nodes = step[0] + [node("Constant", [], [name], value=empty) for name in names]
    shaped = [value(name, [BATCH, HEADS, "encoder_sequence_length_out", SIZE]) for name in names]
    outputs = ["logits", "present.0.decoder.key", "present.0.decoder.value", *names]
    branches = {
        "then_branch": graph(nodes, [], step[2] + shaped),
        "else_branch": graph(first[0], [], first[2]),
    }
    constants = list(dict.fromkeys(first[3] + step[3]))
    inputs = list(dict.fromkeys(first[1] + step[1])) + [value("use_cache_branch", [1], "bool")]
    choice = node("If", ["use_cache_branch"], outputs, **branches)
    return model(graph([choice], inputs, step[2] + shaped, constants), 17)


# ------------------------------------------------------------------------------------------------------------- reference


def reference(weights, source, count):
    """(ids, least distance of the two best logits) behind id 0, in float64."""
    w = {key: item.astype(np.float64) for key, item in weights.items()}

    def norm(x, part):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[f"{part}.norm"] + w[f"{part}.bias"]

    def attend(part, x, y, causal):
        split = lambda t, n: (t @ w[f"{part}.{n}"]).reshape(len(t), HEADS, SIZE).transpose(1, 0, 2)
        q, k, v = split(x, "q"), split(y, "k"), split(y, "v")
        scores = q @ k.transpose(0, 2, 1) * SIZE**-0.5
        if causal:
            scores[:, np.triu_indices(len(x), 1)[0], np.triu_indices(len(x), 1)[1]] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return (shares @ v).transpose(1, 0, 2).reshape(len(x), WIDTH) @ w[f"{part}.o"]

    x = w["words"][source] + w["places"][: len(source)]
    y = norm(x, "encoder")
    hidden = x + attend("encoder", y, y, False)
    ids, margin = [0], np.inf
    for _ in range(count):
        x = w["words"][ids] + w["places"][: len(ids)]
        y = norm(x, "decoder")
        x = x + attend("decoder", y, y, True)
        x = x + attend("cross", norm(x, "cross"), hidden, False)
        logits = (norm(x, "last") @ w["head"])[-1]
        best = np.sort(logits)
        margin = min(margin, best[-1] - best[-2])
        ids.append(int(np.argmax(logits)))
    return ids[1:], margin


def main():
    weights = make_weights()
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "translator")
    os.makedirs(folder, exist_ok=True)
    files = {
        "encoder_model": encoder(weights), "decoder_model": decoder(weights, False, False),
        "decoder_with_past_model": decoder(weights, True, True), "decoder_hidden_model": decoder(weights, True, False),
        "decoder_model_merged": merged_decoder(weights),
    }  # fmt: skip
    for name, content in files.items():
        with open(os.path.join(folder, name + ".onnx"), "wb") as file:
            file.write(content)
    for name, choice in (("true", True), ("false", False)):
        np.save(os.path.join(folder, name + ".npy"), np.array([choice]))
    random = np.random.RandomState(1)
    with open(os.path.join(folder, "translator.ids"), "w", encoding="utf-8") as file:
        for size in (3, 8, 11, 16):
            while True:
                source = random.randint(0, WORDS, size)
                ids, margin = reference(weights, source, 12)
                if margin > 0.02:
                    break
            file.write(" ".join(map(str, source)) + "|" + " ".join(map(str, ids)) + "\n")


if __name__ == "__main__":
    main()

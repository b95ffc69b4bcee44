#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks ops of ONNX at their edges: windows that end or begin in padding, reductions over no axis
and of no element, norms of zeros and of numbers whose squares overflow, operands without elements.

Input:  none; the models are made here, with seeded operands.
Output: "pass CASE" or "differs CASE: why" for each; exit 1 if one differs.
"""

import itertools
import sys

import numpy as np
from onnx_newer_ops import attention, real, run


def pads_of(x, kernel, strides, dilations, auto_pad, pads):
    rank = len(kernel)
    if auto_pad == "NOTSET":
        return pads[:rank], pads[rank:]
    begin, end = [], []
    for extent, k, s, d in zip(x.shape[2:], kernel, strides, dilations):
        total = 0
        if auto_pad != "VALID":
            total = max((-(-extent // s) - 1) * s + (k - 1) * d + 1 - extent, 0)
        less, more = total // 2, total - total // 2
        begin.append(less if auto_pad == "SAME_UPPER" else more)
        end.append(total - begin[-1])
    return begin, end


def pool(op, x, kernel, strides, dilations, pads, auto_pad="NOTSET", ceil=0, include=0, p=2):
    """The definition: each window one after the other, those that begin in the end padding dropped."""
    begin, end = pads_of(x, kernel, strides, dilations, auto_pad, pads)
    sizes = []
    for extent, k, s, d, b, e in zip(x.shape[2:], kernel, strides, dilations, begin, end):
        room = extent + b + e - (k - 1) * d - 1
        size = (-(-room // s) if ceil else room // s) + 1
        if ceil and (size - 1) * s >= extent + b:
            size -= 1
        sizes.append(size)
    result = np.zeros(x.shape[:2] + tuple(sizes))
    for place in itertools.product(*(range(size) for size in sizes)):
        taps, count = [], 0
        for tap in itertools.product(*(range(k) for k in kernel)):
            at = [i * s - b + t * d for i, s, b, t, d in zip(place, strides, begin, tap, dilations)]
            inside = all(0 <= a < extent for a, extent in zip(at, x.shape[2:]))
            padded = all(
                -b <= a < extent + e for a, extent, b, e in zip(at, x.shape[2:], begin, end)
            )
            if inside:
                taps.append(x[(slice(None), slice(None), *at)].astype(np.float64))
            count += bool(padded if include else inside)
        stack = np.stack(taps)
        if op == "MaxPool":
            value = stack.max(0)
        elif op == "AveragePool":
            value = stack.sum(0) / count
        else:
            value = (np.abs(stack) ** p).sum(0) ** (1 / p)
        result[(slice(None), slice(None), *place)] = value
    return result.astype(np.float32)


# The shape of the operand, the kernel, strides, dilations, pads: the last window of an axis begins in
# the end padding, ends there, or fits.
POOLS = [
    ([1, 2, 6], [3], [3], [1], [1, 1]),
    ([1, 2, 7], [2], [3], [1], [0, 1]),
    ([2, 1, 9], [2], [4], [3], [1, 2]),
    ([1, 2, 6, 5], [3, 3], [3, 3], [1, 1], [1, 1, 1, 1]),
    ([1, 3, 5, 4], [2, 3], [3, 2], [1, 1], [1, 0, 1, 2]),
    ([1, 1, 8, 9], [2, 2], [3, 4], [2, 1], [0, 1, 2, 1]),
    ([1, 2, 4, 6, 5], [2, 3, 3], [2, 3, 3], [1, 1, 1], [1, 1, 1, 1, 1, 1]),
    ([1, 1, 5, 3, 4], [1, 2, 2], [3, 2, 3], [1, 1, 1], [0, 0, 0, 1, 1, 1]),
]
NAMES = {
    "MaxPool": [10, 12, 22],
    "AveragePool": [10, 11, 19],
    "LpPool": [18, 22],
}


def pool_cases(cases):
    for op, opsets in NAMES.items():
        for opset in opsets:
            for number, (shape, kernel, strides, dilations, pads) in enumerate(POOLS):
                if opset < (10 if op == "MaxPool" else 18) and max(dilations) > 1:
                    continue
                x = real(*shape)
                forms = [{"ceil_mode": 1}, {}]
                if op == "AveragePool":
                    forms.append({"ceil_mode": 1, "count_include_pad": 1})
                forms += [{"ceil_mode": 1, "auto_pad": pad} for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")]
                for form, given in enumerate(forms):
                    auto_pad = given.get("auto_pad", "NOTSET")
                    expected = pool(
                        op, x, kernel, strides, dilations, pads, auto_pad, given.get("ceil_mode", 0),
                        given.get("count_include_pad", 0),
                    )
                    attributes = dict(given, kernel_shape=kernel, strides=strides)
                    if auto_pad == "NOTSET":
                        attributes["pads"] = pads
                    if max(dilations) > 1:
                        attributes["dilations"] = dilations
                    cases.add(f"{op}-{opset}_{number}_{form}", op, [x], expected, opset, **attributes)


REDUCTIONS = {
    "ReduceSum": lambda x, axis: x.sum(axis),
    "ReduceMean": lambda x, axis: x.mean(axis),
    "ReduceProd": lambda x, axis: x.prod(axis),
    "ReduceMax": lambda x, axis: x.max(axis),
    "ReduceMin": lambda x, axis: x.min(axis),
    "ReduceL1": lambda x, axis: np.abs(x).sum(axis),
    "ReduceL2": lambda x, axis: np.sqrt(np.square(x).sum(axis)),
    "ReduceSumSquare": lambda x, axis: np.square(x).sum(axis),
    "ReduceLogSum": lambda x, axis: np.log(x.sum(axis)),
    "ReduceLogSumExp": lambda x, axis: np.log(np.exp(x).sum(axis)),
}


def reduction_cases(cases):
    for op, reference in REDUCTIONS.items():
        x = np.abs(real(2, 3)) + 0.5
        signed = x if op == "ReduceLogSum" else x * np.array([-1, 1, -1], np.float32)
        opset = 13 if op == "ReduceSum" else 18
        none = np.zeros(0, np.int64)
        each = reference(signed[None].astype(np.float64), 0)
        for name, operands in (("left_out", [signed]), ("empty", [signed, none])):
            cases.add(f"{op}_no_axes_{name}", op, operands, each, opset, constants=(1,), noop_with_empty_axes=1)
        whole = np.asarray(reference(signed.astype(np.float64), (0, 1))).reshape(1, 1)
        cases.add(f"{op}_all_axes", op, [signed], whole, opset)
        scalar = np.float32(2.5)
        cases.add(f"{op}_scalar", op, [scalar], reference(scalar.reshape(1), 0), opset, noop_with_empty_axes=1)
    big = np.float32([1e30, -1e30])
    cases.add("ReduceL2_no_axes_large", "ReduceL2", [big], np.abs(big), 18, noop_with_empty_axes=1)


ENDS = {"float32": (-np.inf, np.inf), "int32": None, "int64": None, "bool": (False, True), "int8": None}


def empty_cases(cases):
    for dtype, ends in ENDS.items():
        low, high = ends or (np.iinfo(dtype).min, np.iinfo(dtype).max)
        x = np.zeros((2, 0, 3), dtype)
        opset = 20 if dtype == "bool" else 18
        for op, value in (("ReduceMax", low), ("ReduceMin", high)):
            axes = np.array([1])
            for keep in (0, 1):
                shape = (2, 1, 3) if keep else (2, 3)
                cases.add(
                    f"{op}_of_none_{dtype}_{keep}", op, [x, axes], np.full(shape, value, dtype), opset,
                    constants=(1,), keepdims=keep,
                )
            cases.add(f"{op}_of_none_whole_{dtype}", op, [x], np.full((1, 1, 1), value, dtype), opset)
    x = np.zeros((2, 0, 3), np.float32)
    for op, value in (("ReduceSum", 0), ("ReduceProd", 1), ("ReduceL1", 0), ("ReduceL2", 0),
                      ("ReduceSumSquare", 0), ("ReduceLogSum", -np.inf), ("ReduceLogSumExp", -np.inf)):
        cases.add(
            f"{op}_of_none", op, [x, np.array([1])], np.full((2, 1, 3), value, np.float32), 18,
            constants=(1,),
        )
    scales = np.float32([1, 1, 2, 2])
    for shape in ((0, 3, 4, 4), (2, 3, 0, 4)):
        image = np.zeros(shape, np.float32)
        larger = np.zeros(shape[:2] + (2 * shape[2], 8), np.float32)
        for mode in ("nearest", "linear", "cubic"):
            cases.add(
                f"Resize_of_none_{mode}_{shape[0]}", "Resize", [image, None, scales], larger, 18,
                constants=(2,), mode=mode,
            )
    x0, h, c = np.zeros((0, 2, 3), np.float32), real(1, 2, 4), real(1, 2, 4)
    nothing = np.zeros((0, 1, 2, 4), np.float32)
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        states = [h, c] if op == "LSTM" else [h]
        cases.add(
            f"{op}_of_none", op,
            [x0, real(1, 4 * gates, 3), real(1, 4 * gates, 4), None, None, *states],
            [nothing, *states], 18, hidden_size=4,
        )
    image, channels = np.zeros((0, 3, 4, 4), np.float32), real(3)
    for op, opset, more in (("BatchNormalization", 15, 4), ("InstanceNormalization", 13, 2)):
        cases.add(f"{op}_of_none", op, [image] + [channels] * more, image, opset)
    cases.add("Conv_of_none", "Conv", [image, real(5, 3, 3, 3)], np.zeros((0, 5, 2, 2), np.float32), 13)
    filters = np.zeros((0, 3, 3, 3), np.float32)
    cases.add("Conv_to_none", "Conv", [real(2, 3, 4, 4), filters], np.zeros((2, 0, 2, 2), np.float32), 13)
    for op in ("ReduceMax", "ReduceMean", "ReduceSum"):
        cases.add(f"{op}_beside_none", op, [x, np.array([2])], np.zeros((2, 0, 1), np.float32), 18, constants=(1,))


def norm_cases(cases):
    rows = np.float32([
        [0, 0, 0, 0], [1e30, -1e30, 0, 0], [3e38, 3e38, -3e38, 3e38], [1e-30, 1e-30, 0, -1e-30],
        [3, 4, 0, 0], [-2, 0, 0, 0], [1e30, 1, 1e-30, 0],
    ])
    for p, axis, opset in itertools.product((1, 2), (0, 1, -1), (13, 22)):
        wide = rows.astype(np.float64)
        size = np.abs(wide) ** p
        norm = size.sum(axis, keepdims=True) ** (1 / p)
        expected = np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0)
        cases.add(f"LpNormalization-{opset}_{p}_{axis}", "LpNormalization", [rows], expected, opset, p=p, axis=axis)
    halves = np.float16([[0, 0], [300, 400], [60000, 60000]])
    cases.add(
        "LpNormalization_half", "LpNormalization", [halves],
        np.float16([[0, 0], [0.6, 0.8], [0.7071, 0.7071]]), 22,
    )
    none = np.zeros((2, 0), np.float32)
    cases.add("LpNormalization_none", "LpNormalization", [none], none, 22)


def attention_window_cases(cases):
    q, k, v = real(1, 2, 4, 8), real(1, 2, 6, 8), real(1, 2, 6, 8)
    key, query = np.arange(6), np.arange(4)[:, None]
    for left, right in ((2, 1), (2, -1), (-1, 1), (0, 0), (2, 0)):
        for causal in (0, 1):
            mask = np.full((4, 6), True)
            if left >= 0:
                mask &= key >= query - left
            if right >= 0:
                mask &= key <= query + right
            if causal:
                mask &= key <= query
            cases.add(
                f"attention_window_{left}_{right}_{causal}", "Attention", [q, k, v],
                attention(q, k, v, mask)[0], 25, is_causal=causal, left_window_size=left,
                right_window_size=right,
            )
    past_k, past_v = real(1, 2, 3, 8), real(1, 2, 3, 8)
    all_k, all_v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    key, query = np.arange(9), np.arange(4)[:, None] + 3
    mask = (key >= query - 2) & (key <= query)
    cases.add(
        "attention_window_past", "Attention", [q, k, v, None, past_k, past_v],
        [attention(q, all_k, all_v, mask)[0], all_k, all_v], 25, is_causal=1, left_window_size=2,
    )
    valid = np.array([5])
    key, query = np.arange(6), np.arange(4)[:, None] + 1
    mask = (key >= query - 1) & (key <= query) & (key < 5)
    cases.add(
        "attention_window_nonpad", "Attention", [q, k, v, None, None, None, valid],
        attention(q, k, v, mask)[0], 25, is_causal=1, left_window_size=1,
    )


def position_cases(cases):
    """GroupQueryAttention turns queries and keys by the positions that it is given."""
    cos, sin = real(9, 4), real(9, 4)
    q, k, v = real(2, 3, 32), real(2, 3, 16), real(2, 3, 16)
    positions = np.array([[0, 4, 2], [8, 1, 1]])

    def turned(x, count):
        x = x.reshape(2, 3, count, 8)
        c, s = cos[positions][:, :, None], sin[positions][:, :, None]
        a, b = np.split(x, 2, -1)
        return np.concatenate([a * c - b * s, a * s + b * c], -1).transpose(0, 2, 1, 3)

    keys, values = turned(k, 2), v.reshape(2, 3, 2, 8).transpose(0, 2, 1, 3)
    y = attention(turned(q, 4), keys, values, causal=True)[0]
    cases.add(
        "GroupQueryAttention_positions", "GroupQueryAttention",
        [q, k, v, None, None, np.array([2, 2], np.int32), np.int32(3), cos, sin, positions],
        [y.transpose(0, 2, 1, 3).reshape(2, 3, 32), keys, values], 21, domain="com.microsoft",
        constants=(5, 6), num_heads=4, kv_num_heads=2, do_rotary=1,
    )


def multi_head_cases(cases):
    """ONNX Runtime's attentions: a low number is added where a mask is 0, and new rows are behind those of the past."""
    parts = lambda x: x.reshape(*x.shape[:2], 4, -1).transpose(0, 2, 1, 3)  # noqa: E731
    joined = lambda x: x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)  # noqa: E731
    q, k, v, bias = real(2, 3, 32), real(2, 3, 32), real(2, 3, 32), real(96)
    past = real(2, 2, 4, 5, 8)
    turned = [parts(x + b) for x, b in zip((q, k, v), np.split(bias, 3))]
    all_k, all_v = (np.concatenate([old, new], 2) for old, new in zip(past, turned[1:]))
    mask = np.ones((2, 8), np.int32)
    mask[1, :3] = 0
    square = np.ones((2, 3, 8), np.int32)
    square[0, 1, 2:5] = 0
    scores = real(1, 4, 3, 8)
    for name, given, hidden, attributes in (
        ("", [], 0, {}),
        ("causal", [], 0, {"unidirectional": 1, "scale": 0.3}),
        ("mask", [mask], (1 - mask)[:, None, None] * -1.5, {"mask_filter_value": -1.5}),
        ("square", [square], (1 - square)[:, None] * -1e4, {}),
        ("bias", [mask, scores], scores + (1 - mask)[:, None, None] * -1e4, {"unidirectional": 1}),
    ):
        y = attention(
            turned[0], all_k, all_v, np.asarray(hidden, np.float64), attributes.get("scale"),
            causal="unidirectional" in attributes, offset=5,
        )[0]  # fmt: skip
        cases.add(
            f"MultiHeadAttention_{name}", "MultiHeadAttention",
            [q, k, v, bias, *given, *[None] * (2 - len(given)), *past], [joined(y), all_k, all_v], 21,
            domain="com.microsoft", num_heads=4, **attributes,
        )  # fmt: skip
    # Keys and values of a source, as rows and as heads, whose bias is in them; and lengths.
    k, v = real(2, 6, 32), real(2, 6, 32)
    y = joined(attention(turned[0], parts(k + bias[32:64]), parts(v + bias[64:]))[0])
    cases.add("MultiHeadAttention_cross", "MultiHeadAttention", [q, k, v, bias], y, 21, domain="com.microsoft", num_heads=4)
    y = joined(attention(turned[0], parts(k), parts(v))[0])
    operands = [q, parts(k), parts(v), bias]
    cases.add("MultiHeadAttention_heads", "MultiHeadAttention", operands, y, 21, domain="com.microsoft", num_heads=4)
    lengths = np.array([4, 6], np.int32)
    y = joined(attention(parts(q), parts(k), parts(v), (np.arange(6) < lengths[:, None])[:, None, None])[0])
    operands = [q, k, v, None, lengths]
    cases.add("MultiHeadAttention_lengths", "MultiHeadAttention", operands, y, 21, domain="com.microsoft", num_heads=4)
    packed = np.stack([x.reshape(2, 6, 4, 8) for x in (k, v)], 3)
    y = joined(attention(parts(q), parts(k), parts(v))[0])
    cases.add("MultiHeadAttention_packed", "MultiHeadAttention", [q, packed], y, 21, domain="com.microsoft", num_heads=4)
    # With the products.
    x, weight = real(2, 3, 20), real(20, 96)
    q, k, v = (parts(part) for part in np.split(x @ weight + bias, 3, 2))
    all_k, all_v = (np.concatenate([old, new], 2) for old, new in zip(past, (k, v)))
    y = joined(attention(q, all_k, all_v, (1 - mask)[:, None, None] * -1e4, causal=True, offset=5)[0])
    cases.add(
        "microsoft_Attention_past", "Attention", [x, weight, bias, mask, past], [y, np.stack([all_k, all_v])], 21,
        domain="com.microsoft", constants=(1, 2), num_heads=4, unidirectional=1,
    )  # fmt: skip
    weight, bias = real(20, 80), real(80)
    q, k, v = (parts(part) for part in np.split(x @ weight + bias, [32, 64], 2))
    cases.add(
        "microsoft_Attention_widths", "Attention", [x, weight, bias], joined(attention(q, k, v)[0]), 21,
        domain="com.microsoft", constants=(1, 2), num_heads=4, qkv_hidden_sizes=[32, 32, 16],
    )  # fmt: skip


def main(argv):
    return run(
        argv, "Check ops at their edges.",
        (pool_cases, reduction_cases, empty_cases, norm_cases, attention_window_cases, position_cases, multi_head_cases),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

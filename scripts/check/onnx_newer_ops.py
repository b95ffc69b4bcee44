#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks ops that are newer than Debian's ONNX cases (opset 18 and later), and those of ONNX Runtime.

Input:  none; the models are made here, with seeded operands.
Output: "pass CASE" or "differs CASE: why" for each; exit 1 if one differs.

Each case is a node of its own in one of a few models, and what it has to give is computed with
NumPy from the op's definition, so one run of npu-run checks many.
"""

import argparse
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx_writer as onnx

RANDOM = np.random.default_rng(17)


def real(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Cases:
    """Collects cases; those of one opset share a model."""

    def __init__(self):
        self.models = {}

    def add(self, name, op, operands, expected, opset, domain="", constants=(), **attributes):
        """Operands whose index is in `constants` are initializers; None is absent."""
        expected = expected if isinstance(expected, (list, tuple)) else [expected]
        self.models.setdefault(opset, []).append(
            (name, op, operands, expected, domain, constants, attributes)
        )


def attention(q, k, v, mask=None, scale=None, softcap=0.0, causal=False, offset=0, sinks=None):
    repeat = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, repeat, 1), np.repeat(v, repeat, 1)
    scale = scale or 1 / np.sqrt(q.shape[-1])
    raw = q.astype(np.float64) @ np.swapaxes(k, -1, -2).astype(np.float64) * scale
    scores = np.tanh(raw / softcap) * softcap if softcap else raw
    if causal:
        rows, columns = scores.shape[-2:]
        scores = np.where(np.tri(rows, columns, offset, dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if sinks is not None:
        column = np.broadcast_to(sinks[None, :, None, None], scores.shape[:-1] + (1,))
        shares = softmax(np.concatenate([scores, column], -1))[..., :-1]
        return (shares @ v).astype(np.float32), raw.astype(np.float32), shares
    return (softmax(scores) @ v).astype(np.float32), raw.astype(np.float32), softmax(scores)


def heads(x, count):
    return x.reshape(x.shape[0], x.shape[1], count, -1).transpose(0, 2, 1, 3)


def flat(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def attention_cases(cases):
    q, k, v = real(2, 4, 3, 8), real(2, 4, 5, 8), real(2, 4, 5, 6)
    cases.add("attention", "Attention", [q, k, v], attention(q, k, v)[0], 23)
    mask = RANDOM.random((3, 5)) > 0.3
    mask[:, 0] = True
    cases.add("attention_mask", "Attention", [q, k, v, mask], attention(q, k, v, mask)[0], 23)
    bias = real(2, 1, 3, 5)
    cases.add(
        "attention_bias_softcap", "Attention", [q, k, v, bias],
        attention(q, k, v, bias, 0.3, 2.0)[0], 23, scale=0.3, softcap=2.0,
    )
    cases.add(
        "attention_causal", "Attention", [q, k, v], attention(q, k, v, causal=True)[0], 23,
        is_causal=1,
    )
    cases.add(
        "attention_causal_bias", "Attention", [q, k, v, bias],
        attention(q, k, v, bias, causal=True)[0], 23, is_causal=1,
    )
    past_k, past_v = real(2, 4, 2, 8), real(2, 4, 2, 6)
    all_k, all_v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    cases.add(
        "attention_past", "Attention", [q, k, v, None, past_k, past_v],
        [attention(q, all_k, all_v, causal=True, offset=2)[0], all_k, all_v], 23, is_causal=1,
    )
    y, raw, weights = attention(q, k, v)
    for mode, scores in ((0, raw), (3, weights.astype(np.float32))):
        cases.add(
            f"attention_scores_{mode}", "Attention", [q, k, v], [y, None, None, scores], 23,
            qk_matmul_output_mode=mode,
        )
    biased = (raw + bias).astype(np.float32)
    cases.add(
        "attention_scores_1", "Attention", [q, k, v, bias],
        [attention(q, k, v, bias)[0], None, None, biased], 23, qk_matmul_output_mode=1,
    )
    q, k, v = real(2, 3, 24), real(2, 5, 12), real(2, 5, 12)
    expected = flat(attention(heads(q, 4), heads(k, 2), heads(v, 2))[0])
    cases.add(
        "attention_grouped_3d", "Attention", [q, k, v], expected, 23, q_num_heads=4, kv_num_heads=2
    )
    q, k, v = real(2, 2, 3, 4), real(2, 2, 6, 4), real(2, 2, 6, 4)
    valid = np.array([4, 6])
    keys = np.arange(6)
    mask = (keys < valid[:, None]).reshape(2, 1, 1, 6)
    cases.add(
        "attention_nonpad", "Attention", [q, k, v, None, None, None, valid],
        attention(q, k, v, mask)[0], 24,
    )
    causal = keys <= np.arange(3)[:, None] + (valid - 3).reshape(2, 1, 1, 1)
    cases.add(
        "attention_nonpad_causal", "Attention", [q, k, v, None, None, None, valid],
        attention(q, k, v, mask & causal)[0], 24, is_causal=1,
    )


def rotary(x, cos, sin, interleaved=False):
    """x is [batch, length, heads, size], the tables [batch, length, half]."""
    half = cos.shape[-1]
    cos, sin = cos[:, :, None], sin[:, :, None]
    part = x[..., : 2 * half]
    a, b = (part[..., 0::2], part[..., 1::2]) if interleaved else np.split(part, 2, -1)
    re, im = a * cos - b * sin, a * sin + b * cos
    turned = np.stack([re, im], -1).reshape(part.shape) if interleaved else np.concatenate([re, im], -1)
    return np.concatenate([turned, x[..., 2 * half :]], -1)


def rotary_cases(cases):
    x, cos, sin = real(2, 3, 4, 8), real(9, 4), real(9, 4)
    at = np.array([[0, 3, 8, 1], [2, 2, 5, 7]])
    expected = rotary(x.transpose(0, 2, 1, 3), cos[at], sin[at]).transpose(0, 2, 1, 3)
    cases.add("rotary", "RotaryEmbedding", [x, cos, sin, at], expected, 23)
    expected = rotary(x.transpose(0, 2, 1, 3), cos[at], sin[at], True).transpose(0, 2, 1, 3)
    cases.add("rotary_interleaved", "RotaryEmbedding", [x, cos, sin, at], expected, 23, interleaved=1)
    x, cos, sin = real(2, 4, 24), real(2, 4, 2), real(2, 4, 2)
    expected = rotary(x.reshape(2, 4, 3, 8), cos, sin).reshape(x.shape)
    cases.add(
        "rotary_part", "RotaryEmbedding", [x, cos, sin], expected, 23, num_heads=3,
        rotary_embedding_dim=4,
    )
    x, cos, sin = real(2, 4, 24), real(9, 4), real(9, 4)
    at = np.array([3])
    tables = [np.tile(table[3:7], (2, 1, 1)) for table in (cos, sin)]
    expected = rotary(x.reshape(2, 4, 3, 8), *tables).reshape(x.shape)
    cases.add(
        "microsoft_rotary", "RotaryEmbedding", [x, at, cos, sin], expected, 21, "com.microsoft"
    )


def cache_cases(cases):
    cache, update, at = real(2, 3, 6, 4), real(2, 3, 2, 4), np.array([1, 5])
    expected = cache.copy()
    for b in range(2):
        for i in range(2):
            expected[b, :, (at[b] + i) % 6] = update[b, :, i]
    cases.add(
        "tensor_scatter", "TensorScatter", [cache, update, at], expected, 24, mode="circular"
    )
    x, w, bias, state = real(2, 3, 7), real(3, 1, 4), real(3), real(2, 3, 3)
    padded = np.concatenate([state, x], 2)
    y = np.stack([(padded[:, :, i : i + 4] * w[:, 0]).sum(-1) for i in range(7)], -1)
    y = y + bias[:, None]
    y = y / (1 + np.exp(-y))
    cases.add(
        "causal_conv", "CausalConvWithState", [x, w, bias, state],
        [y.astype(np.float32), padded[:, :, 7:]], 27, activation="silu",
    )


def norm_cases(cases):
    x, w = real(2, 3, 4), real(4)
    rms = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    cases.add("rms_norm", "RMSNormalization", [x, w], rms * w, 23)
    w = real(3, 4)
    rms = x / np.sqrt((x * x).mean((1, 2), keepdims=True) + 1e-5)
    cases.add("rms_norm_axis", "RMSNormalization", [x, w], rms * w, 23, axis=1)
    x, skip, gamma, beta, bias = real(2, 3, 4), real(2, 3, 4), real(4), real(4), real(4)
    total = x + skip + bias
    centred = total - total.mean(-1, keepdims=True)
    norm = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    cases.add(
        "microsoft_skip_norm", "SkipLayerNormalization", [x, skip, gamma, beta, bias],
        [norm * gamma + beta, None, None, total], 21, "com.microsoft", epsilon=1e-5,
    )
    total = x + skip
    rms = total / np.sqrt((total * total).mean(-1, keepdims=True) + 1e-5)
    cases.add(
        "microsoft_skip_rms_norm", "SkipSimplifiedLayerNormalization", [x, skip, gamma],
        rms * gamma, 21, "com.microsoft", epsilon=1e-5,
    )


def window_cases(cases):
    x = real(2, 3 * 4, 8)
    padded = np.zeros((2, 3, 3, 6), np.float32)
    columns = x.reshape(2, 3, 2, 2, 2, 4)
    for i in range(2):
        for j in range(2):
            for r in range(2):
                for c in range(4):
                    padded[:, :, i + r, 2 * j + c] += columns[:, :, i, j, r, c]
    image = padded[:, :, :, 1:]
    cases.add(
        "col2im", "Col2Im", [x, np.array([3, 5]), np.array([2, 2])], image, 18,
        constants=(1, 2), dilations=[1, 2], pads=[0, 1, 0, 0],
    )
    # The windows of one axis that start at -1, 1 and 3, with elements two apart.
    x = real(1, 2, 7)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)), constant_values=np.nan)
    taken = np.stack([padded[:, :, i : i + 5 : 2] for i in (0, 2, 4)], 2)
    cases.add(
        "average_dilated", "AveragePool", [x], np.nanmean(taken, -1), 19,
        kernel_shape=[3], strides=[2], dilations=[2], pads=[1, 1],
    )
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2)), constant_values=-np.inf)
    taken = np.stack([padded[:, :, i : i + 3] for i in range(0, 8, 2)], 2)
    best = taken.argmax(-1) + np.arange(0, 8, 2) - 1 + np.arange(2).reshape(1, 2, 1) * 7
    cases.add(
        "max_pool_line", "MaxPool", [x], [taken.max(-1), best], 12,
        kernel_shape=[3], strides=[2], pads=[1, 2],
    )
    x = real(2, 2, 5, 6)
    padded = np.pad(x, ((0, 0), (0, 0), (0, 1), (1, 0)), constant_values=-np.inf)
    best = np.zeros((2, 2, 5, 6), np.int64)
    largest = np.zeros((2, 2, 5, 6), np.float32)
    for n, c, i, j in np.ndindex(2, 2, 5, 6):
        window = padded[n, c, i : i + 2, j : j + 2]
        row, column = divmod(int(window.argmax()), 2)
        largest[n, c, i, j] = window.max()
        best[n, c, i, j] = ((n * 2 + c) * 5 + i + row) * 6 + j + column - 1
    cases.add(
        "max_pool_uneven_pads", "MaxPool", [x], [largest, best], 12,
        kernel_shape=[2, 2], pads=[0, 1, 1, 0],
    )
    x = real(4, 5, 6)
    expected = np.pad(x[:, 1:4], ((0, 0), (0, 0), (0, 1)))
    cases.add(
        "center_crop_pad", "CenterCropPad", [x, np.array([3, 7])], expected, 18,
        constants=(1,), axes=[1, -1],
    )


def bilinear(image, y, x):
    """Zeros outside of [channels, height, width]."""
    total = 0
    for row in (int(np.floor(y)), int(np.floor(y)) + 1):
        for column in (int(np.floor(x)), int(np.floor(x)) + 1):
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                weight = (1 - abs(y - row)) * (1 - abs(x - column))
                total = total + weight * image[:, row, column]
    return total + np.zeros(image.shape[0])


def sampling_cases(cases):
    x, w, bias = real(2, 4, 5, 6), real(6, 2, 3, 2), real(6)
    offset, mask = real(2, 2 * 2 * 6, 3, 5), real(2, 2 * 6, 3, 5)
    expected = np.zeros((2, 6, 3, 5))
    for n, i, j, tap in np.ndindex(2, 3, 5, 6):
        row, column = divmod(tap, 2)
        for g in range(2):
            at = (g * 6 + tap) * 2
            y = i * 2 - 1 + row + offset[n, at, i, j]
            z = j - 0 + column + offset[n, at + 1, i, j]
            taken = bilinear(x[n, 2 * g : 2 * g + 2], y, z) * mask[n, g * 6 + tap, i, j]
            part = w[3 * g : 3 * g + 3, :, row, column] @ taken
            expected[n, 3 * g : 3 * g + 3, i, j] += part
    expected += bias[:, None, None]
    cases.add(
        "deform_conv", "DeformConv", [x, w, offset, bias, mask], expected.astype(np.float32), 19,
        group=2, offset_group=2, strides=[2, 1], pads=[1, 0, 1, 0],
    )
    theta = real(2, 2, 3)
    for corners in (0, 1):
        if corners:
            ys, xs = np.linspace(-1, 1, 3), np.linspace(-1, 1, 4)
        else:
            ys, xs = (2 * np.arange(3) + 1) / 3 - 1, (2 * np.arange(4) + 1) / 4 - 1
        grid = np.stack([np.tile(xs, (3, 1)), np.tile(ys[:, None], (1, 4)), np.ones((3, 4))], -1)
        expected = np.einsum("nij,hwj->nhwi", theta, grid).astype(np.float32)
        cases.add(
            f"affine_grid_{corners}", "AffineGrid", [theta, np.array([2, 1, 3, 4])], expected, 20,
            constants=(1,), align_corners=corners,
        )
    x, rois = real(2, 3, 6, 7), np.array([[0.5, 1, 5.5, 4], [-3, 2, 9, 8]], np.float32)
    batch = np.array([1, 0])
    expected = np.zeros((2, 3, 2, 3))
    for r, i, j in np.ndindex(2, 2, 3):
        x1, y1, x2, y2 = rois[r] * 0.9 - 0.5
        best = []
        for s, t in np.ndindex(2, 2):
            y = y1 + (y2 - y1) * (i + (s + 0.5) / 2) / 2
            z = x1 + (x2 - x1) * (j + (t + 0.5) / 2) / 3
            if y < -1 or y > 6 or z < -1 or z > 7:
                best.append(np.zeros(3))
                continue
            y, z = min(max(y, 0), 5), min(max(z, 0), 6)
            low, left = int(y), int(z)
            a, b = y - low, z - left
            high, right = min(low + 1, 5), min(left + 1, 6)
            image = x[batch[r]]
            best.append((1 - a) * (1 - b) * image[:, low, left])
            best.append((1 - a) * b * image[:, low, right])
            best.append(a * (1 - b) * image[:, high, left])
            best.append(a * b * image[:, high, right])
        expected[r, :, i, j] = np.max(best, 0)
    cases.add(
        "roi_align_max", "RoiAlign", [x, rois, batch], expected.astype(np.float32), 16,
        mode="max", output_height=2, output_width=3, sampling_ratio=2, spatial_scale=0.9,
    )


def small_cases(cases):
    x = real(3, 4)
    expected = np.cumprod(x[:, ::-1], 1)[:, ::-1]
    cases.add("cum_prod", "CumProd", [x, np.array(1)], expected, 26, constants=(1,), reverse=1)
    shifted = np.concatenate([np.ones((3, 1), np.float32), np.cumprod(x, 1)[:, :-1]], 1)
    cases.add("cum_prod_exclusive", "CumProd", [x, np.array(1)], shifted, 26, constants=(1,), exclusive=1)
    cases.add("bit_cast", "BitCast", [x], x.view(np.int32), 26, to=6)
    at, updates = np.array([[0], [2], [0]]), real(3, 4)
    for reduction, verb in (("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        expected = x.copy()
        for row, update in zip(at[:, 0], updates):
            expected[row] = verb(expected[row], update)
        cases.add(f"scatter_nd_{reduction}", "ScatterND", [x, at, updates], expected, 18, reduction=reduction)
    at = np.array([[0, -1], [1, 0], [2, 2]])
    updates = real(3, 2)
    for reduction, verb in (("add", np.add), ("mul", np.multiply), ("max", np.maximum)):
        expected = x.copy()
        for row, column in np.ndindex(3, 2):
            place = (row, at[row, column])
            expected[place] = verb(expected[place], updates[row, column])
        cases.add(
            f"scatter_elements_{reduction}", "ScatterElements", [x, at, updates], expected, 18,
            axis=1, reduction=reduction,
        )
    table, at = real(5, 3), np.array([[-1, 0], [4, -5]])
    cases.add("gather_negative", "Gather", [table, at], table[at], 13, constants=(0,))
    columns, cube = np.array([[-1, 0], [2, -3]]), real(2, 3, 4)
    cases.add("gather_columns", "Gather", [cube, columns], cube[:, columns], 13, axis=1)
    cases.add("gather_elements_negative", "GatherElements", [x, columns], np.take_along_axis(x[:2], columns, 1), 13, axis=1)
    places = np.array([[-1, 0], [0, -3]])
    cases.add("gather_nd_negative", "GatherND", [cube, places], cube[places[:, 0], places[:, 1]], 13)
    lengths = 7
    signal = real(2, lengths, 1)
    half = np.fft.rfft(signal[..., 0], axis=1)
    parts = np.stack([half.real, half.imag], -1).astype(np.float32)
    cases.add("dft_onesided", "DFT", [signal, None, np.array(1)], parts, 20, constants=(2,), onesided=1)
    cases.add(
        "dft_back", "DFT", [parts, np.array(7), np.array(1)], signal, 20, constants=(1, 2),
        inverse=1, onesided=1,
    )


def quantized(x, scale, zero, dtype):
    """ONNX's definition, in the type of x and scale: ties to even, and the scale divides."""
    x, scale, limits = np.asarray(x), np.asarray(scale), np.iinfo(dtype)
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(dtype)


def real_of(x, scale, zero):
    """What quantized numbers stand for, exactly."""
    return (np.asarray(x, np.float64) - zero) * np.asarray(scale, np.float64)


def numbers(dtype, *shape):
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape, dtype)


def scale_of(*values):
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def windows(x, kernel, strides, pads, fill=0.0):
    """[batch, channels, rows, columns, kernel, kernel]."""
    pads = ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3]))
    x = np.pad(x, pads, constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return view[:, :, :: strides[0], :: strides[1]]


def convolved(x, w, strides=(1, 1), pads=(0, 0, 0, 0), group=1):
    view = windows(x, w.shape[2:], strides, pads)
    parts = zip(np.split(view, group, 1), np.split(w, group))
    return np.concatenate([np.einsum("ncyxij,ocij->noyx", a, b) for a, b in parts], 1)


def conversion_cases(cases):
    """A share of half a step is rounded to even, and the scale divides."""
    ties = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 300, -300, np.inf, -np.inf], np.float32)
    # 3.2500002 / 0.1 is a tie in float32, 3.2500002 * (1 / 0.1) is not.
    near = np.array([3.250000238418579, -7.250000476837158, 0.3, 0.05], np.float32)
    for dtype, zero in (("uint8", 0), ("uint8", 255), ("int8", -128), ("int8", 127)):
        for name, x, scale in (("ties", ties, scale_of(1.0)), ("near", near, scale_of(0.1))):
            cases.add(
                f"quantize_{name}_{dtype}_{zero}", "QuantizeLinear",
                [x, scale, np.array(zero, dtype)], quantized(x, scale, zero, dtype),
                10 if name == "ties" else 13, constants=() if zero else (1, 2),
            )
    x, scale = real(2, 3, 4), scale_of(0.1, 0.03, 0.2)
    zero = np.array([-128, 0, 5], np.int8)
    y = quantized(x, scale[:, None], zero[:, None].astype(np.float32), np.int8)
    cases.add("quantize_axis", "QuantizeLinear", [x, scale, zero], y, 13, axis=-2, constants=(1, 2))
    back = real_of(y, scale[:, None], zero[:, None]).astype(np.float32)
    cases.add("dequantize_axis", "DequantizeLinear", [y, scale, zero], back, 13, axis=1)
    cases.add(
        "quantize_no_zero", "QuantizeLinear", [x, scale_of(0.02)],
        quantized(x, scale_of(0.02), 0, np.uint8), 13,
    )
    whole = RANDOM.integers(-100000, 100000, (3, 4), np.int32)
    cases.add(
        "quantize_int32", "QuantizeLinear", [whole, scale_of(700.0)],
        quantized(whole.astype(np.float32), scale_of(700.0), 0, np.uint8), 13,
    )
    cases.add(
        "dequantize_int32", "DequantizeLinear", [whole, scale_of(0.01)],
        (whole * scale_of(0.01)).astype(np.float32), 13,
    )
    half, step = real(3, 4).astype(np.float16), np.array(0.1, np.float16)
    y = quantized(half, step, 0, np.int8)
    cases.add("quantize_half", "QuantizeLinear", [half, step, np.array(0, np.int8)], y, 19, constants=(1, 2))
    cases.add(
        "dequantize_half", "DequantizeLinear", [y, step],
        (y.astype(np.float32) * step).astype(np.float16), 19,
    )
    x, zero = 30 * real(3, 4), np.array(-3000, np.int16)
    y = quantized(x, scale_of(0.001), -3000, np.int16)
    cases.add("quantize_int16", "QuantizeLinear", [x, scale_of(0.001), zero], y, 21, constants=(1, 2))
    cases.add(
        "dequantize_int16", "DequantizeLinear", [y, scale_of(0.001), zero],
        real_of(y, scale_of(0.001), -3000), 21,
    )
    cases.add(
        "quantize_dtype", "QuantizeLinear", [x, scale_of(0.1)],
        quantized(x, scale_of(0.1), 0, np.int8), 21, output_dtype=3,
    )
    exact = x.astype(np.float32) / np.float32(step)
    cases.add(
        "quantize_precision", "QuantizeLinear", [x, step],
        np.clip(np.rint(exact), 0, 255).astype(np.uint8), 23, precision=1,
    )
    cases.add(
        "dequantize_dtype", "DequantizeLinear", [y, scale_of(0.001)],
        (y * scale_of(0.001)).astype(np.float16), 23, output_dtype=10,
    )
    x = np.array([[0.5, 1.5, 2.5, -0.5], [3.3, 100, -100, 0.1]], np.float32)
    scale = np.array([[1, 2], [0.5, 0.25]], np.float32)
    zero = np.array([[3, 0], [128, 9]], np.uint8)
    for name, values, axis, size in (("", x, 1, 2), ("_ragged", x[:, :3], 1, 2), ("_first", x.T, 0, 2)):
        at = (lambda part: part) if axis else (lambda part: part.T)  # noqa: E731
        wide = [at(np.repeat(part, size, 1)[:, : values.shape[axis]]) for part in (scale, zero.astype(np.float32))]
        own = [np.ascontiguousarray(at(part)) for part in (scale, zero)]
        y = quantized(values, wide[0], wide[1], np.uint8)
        cases.add(
            f"quantize_blocks{name}", "QuantizeLinear", [np.ascontiguousarray(values), *own], y, 21,
            axis=axis, block_size=size,
        )
        back = real_of(y, wide[0], wide[1]).astype(np.float32)
        cases.add(
            f"dequantize_blocks{name}", "DequantizeLinear", [y, *own], back, 21,
            axis=axis, block_size=size, constants=(0, 1, 2),
        )
    for name, x in (("", real(3, 4)), ("_zeros", np.zeros((3, 4), np.float32)), ("_low", -1 - np.abs(real(5)))):
        high, low = np.maximum(x.max(), 0), np.minimum(x.min(), 0)
        scale = np.float32(1) if high == low else np.float32((high - low) / np.float32(255))
        zero = np.rint(np.clip(-low / scale, 0, 255))
        results = [quantized(x, scale, zero, np.uint8), np.array(scale, np.float32), np.array(zero, np.uint8)]
        cases.add(f"dynamic_quantize{name}", "DynamicQuantizeLinear", [x], results, 13)


def quantized_cases(cases):
    """Products of integers, exactly, and what ONNX Runtime saves beside them."""
    scales = scale_of(0.1), scale_of(0.5, 0.25, 0.07, 1.0), scale_of(0.2)
    x, w = numbers("uint8", 2, 4, 5, 5), numbers("int8", 4, 2, 3, 3)
    bias = RANDOM.integers(-3000, 3000, (4,), np.int32)
    weights = real_of(w, scales[1][:, None, None, None], 0)
    total = convolved(real_of(x, scales[0], 131), weights, (2, 1), (1, 0, 0, 1), 2)
    total += (bias * np.float64(scales[0]) * scales[1])[:, None, None]
    steps = scale_of(float(np.abs(total).max() / 100))
    rest = {"strides": [2, 1], "pads": [1, 0, 0, 1], "group": 2}
    operands = [x, scales[0], np.array(131, np.uint8), w, scales[1], np.zeros(4, np.int8)]
    operands += [steps, np.array(-5, np.int8), bias]
    y = quantized(total, np.float64(steps), -5, np.int8)
    for name, constants in (("", ()), ("_constants", (1, 2, 3, 4, 5, 6, 7, 8))):
        cases.add(f"qlinear_conv{name}", "QLinearConv", operands, y, 13, constants=constants, **rest)
    # Every sum is a tie: 0.1 * 0.5 / 0.1 halves it.
    x, w = numbers("uint8", 1, 1, 4, 4), np.ones((1, 1, 1, 1), np.int8)
    y = np.rint(x / 2.0).astype(np.uint8)
    one, half = scale_of(0.1), scale_of(0.5)
    zero = np.array(0, np.uint8)
    cases.add(
        "qlinear_conv_ties", "QLinearConv", [x, one, zero, w, half, np.array(0, np.int8), one, zero],
        y, 13,
    )
    a, b = numbers("int8", 2, 3, 4), numbers("uint8", 2, 4, 5)
    rows, columns = scale_of(0.1, 0.2, 0.7), scale_of(0.01, 0.02, 0.03, 0.04, 0.05)
    shifts = np.array([1, -2, 3], np.int8), np.array([100, 128, 3, 0, 255], np.uint8)
    total = real_of(a, rows[:, None], shifts[0][:, None]) @ real_of(b, columns, shifts[1])
    steps = scale_of(*(np.abs(total).max((0, 2)) / 90))
    y = quantized(total, np.float64(steps)[:, None], np.array([3, 0, -3])[:, None], np.int8)
    cases.add(
        "qlinear_matmul_rows", "QLinearMatMul",
        [a, rows, shifts[0], b, columns, shifts[1], steps, np.array([3, 0, -3], np.int8)], y, 13,
        constants=(1, 2, 4, 5, 6, 7),
    )
    many = np.broadcast_to(rows[:, None], (2, 3, 1)).copy(), np.broadcast_to(columns, (2, 1, 5)).copy()
    points = np.broadcast_to(shifts[0][:, None], (2, 3, 1)).copy(), np.broadcast_to(shifts[1], (2, 1, 5)).copy()
    cases.add(
        "qlinear_matmul_matrices", "QLinearMatMul",
        [a, many[0], points[0], b, many[1], points[1], scale_of(0.9), np.array(3, np.int8)],
        quantized(total, np.float64(np.float32(0.9)), 3, np.int8), 21,
    )
    whole = (a.astype(np.int32) - shifts[0][:, None]) @ (b.astype(np.int32) - shifts[1])
    cases.add(
        "matmul_integer_rows", "MatMulInteger", [a, b, shifts[0], shifts[1]], whole.astype(np.int32),
        13,
    )
    x, w = numbers("uint8", 1, 2, 4, 4), numbers("uint8", 3, 2, 3, 3)
    y = convolved(x.astype(np.int64) - 7, w.astype(np.int64) - 200, (1, 1), (1, 1, 1, 1)).astype(np.int32)
    cases.add(
        "conv_integer", "ConvInteger", [x, w, np.array(7, np.uint8), np.array(200, np.uint8)], y, 13,
        pads=[1, 1, 1, 1],
    )
    runtime_cases(cases)


def runtime_cases(cases):
    """Of com.microsoft: the formula of the op on what the operands stand for."""

    def add(name, op, operands, expected, **rest):
        cases.add(f"microsoft_{name}", op, operands, expected, 21, "com.microsoft", **rest)

    for dtype, a_zero, b_zero, y_zero in (("uint8", 128, 120, 100), ("int8", -3, 4, 5)):
        a, b = numbers(dtype, 3, 4), numbers(dtype, 4)
        # 0.1, 0.1 and 0.2 make sums of an odd number of steps ties.
        scales = scale_of(0.1), scale_of(0.1), scale_of(0.2)
        sides = real_of(a, scales[0], a_zero), real_of(b, scales[1], b_zero)
        zeros = [np.array(zero, dtype) for zero in (a_zero, b_zero, y_zero)]
        operands = [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2]]
        for op, total in (("QLinearAdd", sides[0] + sides[1]), ("QLinearMul", sides[0] * sides[1])):
            add(f"{op}_{dtype}", op, operands, quantized(total, np.float64(scales[2]), y_zero, dtype))
        leaky = np.where(sides[0] < 0, sides[0] * np.float64(np.float32(0.3)), sides[0])
        one = [a, scales[0], zeros[0], scales[2], zeros[2]]
        add(
            f"QLinearLeakyRelu_{dtype}", "QLinearLeakyRelu", one,
            quantized(leaky, np.float64(scales[2]), y_zero, dtype), alpha=0.3,
        )
        one = [*one[:3], scale_of(1 / 256), one[4]]
        sigmoid = 1 / (1 + np.exp(-sides[0]))
        add(f"QLinearSigmoid_{dtype}", "QLinearSigmoid", one, quantized(sigmoid, 1 / 256, y_zero, dtype))
    x, steps = numbers("uint8", 2, 3, 5, 5), scale_of(0.05)
    real_x = real_of(x, scale_of(0.1), 100)
    zeros = np.array(100, np.uint8), np.array(3, np.uint8)
    operands = [x, scale_of(0.1), zeros[0], steps, zeros[1]]
    counts = windows(np.ones_like(real_x), (3, 2), (2, 1), (1, 0, 0, 1)).sum((4, 5))
    mean = windows(real_x, (3, 2), (2, 1), (1, 0, 0, 1)).sum((4, 5)) / counts
    pool = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}
    y = quantized(mean, np.float64(steps), 3, np.uint8)
    add("QLinearAveragePool", "QLinearAveragePool", operands, y, **pool)
    total = quantized(real_x.mean((2, 3), keepdims=True), np.float64(steps), 3, np.uint8)
    add("QLinearGlobalAveragePool", "QLinearGlobalAveragePool", operands, total)
    last = [np.ascontiguousarray(part.transpose(0, 2, 3, 1)) for part in (x, y, total)]
    add(
        "QLinearAveragePool_last", "QLinearAveragePool", [last[0], *operands[1:]], last[1],
        channels_last=1, **pool,
    )
    add(
        "QLinearGlobalAveragePool_last", "QLinearGlobalAveragePool", [last[0], *operands[1:]], last[2],
        channels_last=1,
    )
    parts = numbers("uint8", 2, 3), numbers("uint8", 2, 2)
    total = np.concatenate([real_of(parts[0], scale_of(0.1), 100), real_of(parts[1], scale_of(0.3), 3)], 1)
    add(
        "QLinearConcat", "QLinearConcat",
        [scale_of(0.2), zeros[1], parts[0], scale_of(0.1), zeros[0], parts[1], scale_of(0.3), zeros[1]],
        quantized(total, np.float64(np.float32(0.2)), 3, np.uint8), axis=-1,
    )
    a, b = numbers("uint8", 3, 4), numbers("int8", 5, 4)
    columns, points = scale_of(0.01, 0.02, 0.03, 0.04, 0.05), np.array([1, 0, -1, 2, 3], np.int8)
    bias = RANDOM.integers(-9000, 9000, (5,), np.int32)
    product = real_of(a, scale_of(0.1), 100) @ real_of(b, columns[:, None], points[:, None]).T
    shift = bias * np.float64(np.float32(0.1)) * columns
    gemm = [a, scale_of(0.1), zeros[0], b, columns, points, bias, scale_of(1.5), np.array(7, np.int8)]
    add("QGemm", "QGemm", gemm, quantized(product + shift, 1.5, 7, np.int8), transB=1, constants=(3, 4, 5))
    add(
        "QGemm_float", "QGemm", gemm[:7], (product + shift).astype(np.float32), transB=1,
        constants=(1, 3, 4, 5, 6),
    )
    add("QGemm_alpha", "QGemm", gemm[:7], (0.5 * (product + shift)).astype(np.float32), transB=1, alpha=0.5)
    turned = [np.ascontiguousarray(a.T), *gemm[1:3], np.ascontiguousarray(b.T), *gemm[4:6]]
    add("QGemm_turned", "QGemm", turned, product.astype(np.float32), transA=1)
    add("QGemm_no_bias", "QGemm", [*turned, None, *gemm[7:]], quantized(product, 1.5, 7, np.int8), transA=1)
    a, b, bias = numbers("uint8", 2, 3, 4), numbers("int8", 4, 5), real(5)
    product = (real_of(a, scale_of(0.1), 100) @ real_of(b, columns, points)).astype(np.float32)
    operands = [a, b, scale_of(0.1), columns, zeros[0], points]
    add("MatMulIntegerToFloat", "MatMulIntegerToFloat", operands, product)
    add(
        "MatMulIntegerToFloat_bias", "MatMulIntegerToFloat", [*operands, bias], product + bias,
        constants=(1, 3, 5, 6),
    )
    add(
        "MatMulIntegerToFloat_plain", "MatMulIntegerToFloat", [a, b, scale_of(0.1), scale_of(0.5)],
        (real_of(a, scale_of(0.1), 0) @ (b * 0.5)).astype(np.float32),
    )
    x = real(3, 4)
    high, low = np.maximum(x.max(), 0), np.minimum(x.min(), 0)
    step = np.float32((high - low) / np.float32(255))
    zero = np.rint(np.clip(-low / step, 0, 255))
    product = real_of(quantized(x, step, zero, np.uint8), step, zero) @ real_of(b, columns, points)
    operands = [x, b, columns, points, bias]
    add(
        "DynamicQuantizeMatMul", "DynamicQuantizeMatMul", operands, product.astype(np.float32) + bias,
        constants=(1, 2, 3, 4),
    )
    x = 100 * real(3, 4)
    y = quantized(x, scale_of(0.01), 77, np.int16)
    add("QuantizeLinear", "QuantizeLinear", [x, scale_of(0.01), np.array(77, np.int16)], y)
    add(
        "DequantizeLinear", "DequantizeLinear", [y, scale_of(0.01), np.array(77, np.int16)],
        real_of(y, scale_of(0.01), 77),
    )


def weight_cases(cases):
    # 4-bit weights, [rows, blocks, bytes], the low half first.
    x = real(3, 20)
    quarters = RANDOM.integers(0, 16, (6, 32), np.uint8)
    packed = (quarters[:, 0::2] | quarters[:, 1::2] << 4).reshape(6, 2, 8)
    scales = np.abs(real(6, 2)) + 0.1
    weights = ((quarters.reshape(6, 2, 16) - 8.0) * scales[..., None]).reshape(6, 32)[:, :20]
    cases.add(
        "microsoft_MatMulNBits", "MatMulNBits", [x, packed, scales.reshape(-1).astype(np.float32)],
        (x @ weights.T).astype(np.float32), 21, "com.microsoft", constants=(1, 2),
        K=20, N=6, bits=4, block_size=16,
    )
    points = RANDOM.integers(0, 16, (6, 2), np.uint8)
    packed_points = (points[:, 0] | points[:, 1] << 4).astype(np.uint8)
    weights = ((quarters.reshape(6, 2, 16) - points[..., None].astype(np.float32)) * scales[..., None])
    cases.add(
        "microsoft_MatMulNBits_points", "MatMulNBits",
        [x, packed, scales.reshape(-1).astype(np.float32), packed_points],
        (x @ weights.reshape(6, 32)[:, :20].T).astype(np.float32), 21, "com.microsoft",
        constants=(1, 2, 3), K=20, N=6, bits=4, block_size=16,
    )


def microsoft_cases(cases):
    x, bias = real(3, 4), real(4)
    inner = np.sqrt(2 / np.pi) * (x + bias + 0.044715 * (x + bias) ** 3)
    gelu = (0.5 * (x + bias) * (1 + np.tanh(inner))).astype(np.float32)
    cases.add("microsoft_FastGelu", "FastGelu", [x, bias], gelu, 21, "com.microsoft")
    quick = x / (1 + np.exp(-1.702 * x))
    cases.add("microsoft_QuickGelu", "QuickGelu", [x], quick, 21, "com.microsoft")
    a, b = real(2, 4, 3), real(2, 5, 4)
    product = 0.5 * np.swapaxes(a, 1, 2) @ np.swapaxes(b, 1, 2)
    cases.add(
        "microsoft_FusedMatMul", "FusedMatMul", [a, b], product.astype(np.float32), 21,
        "com.microsoft", alpha=0.5, transA=1, transB=1,
    )
    x, w = real(1, 2, 4, 4), real(3, 2, 1, 1)
    conv = np.maximum(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]), 0)
    cases.add("microsoft_FusedConv", "FusedConv", [x, w], conv, 21, "com.microsoft", activation="Relu")
    packed, cos, sin = real(2, 3, 4 * 8 + 2 * 2 * 8), real(16, 4), real(16, 4)
    q, k, v = np.split(packed, [32, 48], 2)
    tables = cos[None, 0:3], sin[None, 0:3]
    turn = [rotary(part.reshape(2, 3, -1, 8), *tables).transpose(0, 2, 1, 3) for part in (q, k)]
    y = flat(attention(turn[0], turn[1], heads(v, 2), causal=True)[0])
    cases.add(
        "microsoft_GroupQueryAttention", "GroupQueryAttention",
        [packed, None, None, None, None, np.array([2, 2], np.int32), np.array(3, np.int32), cos, sin],
        [y, turn[1].astype(np.float32), heads(v, 2)], 21, "com.microsoft", constants=(5, 6),
        num_heads=4, kv_num_heads=2, do_rotary=1,
    )


ACTIVATIONS = {
    "Affine": lambda x, a=1.0, b=0.0: a * x + b,
    "Elu": lambda x, a=1.0: np.where(x < 0, a * np.expm1(x), x),
    "HardSigmoid": lambda x, a=0.2, b=0.5: np.clip(a * x + b, 0, 1),
    "LeakyRelu": lambda x, a=0.01: np.where(x < 0, a * x, x),
    "Relu": lambda x: np.maximum(x, 0),
    "ScaledTanh": lambda x, a=1.0, b=1.0: a * np.tanh(b * x),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda x, a=1.0: np.where(x > a, x, 0),
}


def activation_cases(cases):
    """Each name as a function of recurrent nets, with its own numbers and with none, and as an op."""
    x, w, r = 3 * real(2, 2, 3), real(1, 4, 3), real(1, 4, 4)
    for name, function in ACTIVATIONS.items():
        for given in ((), (0.5,), (0.3, 0.1)):
            if len(given) >= (1 if name == "Tanh" else function.__code__.co_argcount):
                continue
            state, states = np.zeros((2, 4)), []
            for step in x.astype(np.float64):
                state = function(step @ w[0].T + state @ r[0].T, *given)
                states.append(state)
            y = np.stack(states)[:, None].astype(np.float32)
            rest = dict(zip(("activation_alpha", "activation_beta"), ([number] for number in given)))
            cases.add(f"rnn_{name}_{len(given)}", "RNN", [x, w, r], y, 14, activations=[name], hidden_size=4, **rest)
            if name in ("Affine", "ScaledTanh"):
                continue
            rest = dict(zip(("alpha", "beta"), given))
            cases.add(f"op_{name}_{len(given)}", name, [x], function(x, *given).astype(np.float32), 22, **rest)
    cases.add("op_HardSigmoid_sixth", "HardSigmoid", [x], np.clip(x / 6 + 0.5, 0, 1), 22, alpha=1 / 6)
    scaled = 1.0507010 * np.where(x > 0, x, 1.6732632 * np.expm1(x))
    cases.add("op_Selu", "Selu", [x], scaled, 22)
    cases.add("op_Selu_numbers", "Selu", [x], 3 * np.where(x > 0, x, 2 * np.expm1(x)), 22, alpha=2.0, gamma=3.0)
    cases.add("op_Celu", "Celu", [x], np.maximum(x, 0) + np.minimum(2 * np.expm1(x / 2), 0), 22, alpha=2.0)
    cases.add("op_Mish", "Mish", [x], x * np.tanh(np.log1p(np.exp(x))), 22)
    cases.add("op_HardSwish", "HardSwish", [x], x * np.clip(x / 6 + 0.5, 0, 1), 22)
    cases.add("op_Swish", "Swish", [x], x / (1 + np.exp(-0.7 * x)), 24, alpha=0.7)
    cases.add("op_Swish_plain", "Swish", [x], x / (1 + np.exp(-x)), 24)


def more_microsoft_cases(cases):
    def add(name, op, operands, expected, **rest):
        cases.add(f"microsoft_{name}", op, operands, expected, 21, "com.microsoft", **rest)

    def gelu(x):
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))

    x, bias = real(3, 4), real(4)
    add("Gelu", "Gelu", [x], gelu(x))
    add("BiasGelu", "BiasGelu", [x, bias], gelu(x + bias))
    tanh = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    add("FastGelu_plain", "FastGelu", [x], (0.5 * x * (1 + tanh)).astype(np.float32))
    add("QuickGelu_alpha", "QuickGelu", [x], x / (1 + np.exp(-0.5 * x)), alpha=0.5)
    x, w, bias, added = real(1, 4, 5, 5), real(6, 2, 3, 3), real(6), real(1, 6, 2, 5)
    rest = {"strides": [2, 1], "pads": [1, 0, 0, 2], "group": 2}
    conv = convolved(x, w, (2, 1), (1, 0, 0, 2), 2).astype(np.float32) + bias[:, None, None]
    functions = {"LeakyRelu": (0.2,), "HardSigmoid": (0.3, 0.4), "Relu": (), "Tanh": (), "Sigmoid": ()}
    add("FusedConv_plain", "FusedConv", [x, w, bias], conv, **rest)
    for name, given in functions.items():
        parameters = {"activation_params": list(given)} if given else {}
        y = ACTIVATIONS[name](conv + added, *given).astype(np.float32)
        add(f"FusedConv_{name}", "FusedConv", [x, w, bias, added], y, activation=name, **rest, **parameters)
    y = np.clip(conv, -0.5, 1.5)
    add("FusedConv_Clip", "FusedConv", [x, w, bias], y, activation="Clip", activation_params=[-0.5, 1.5], **rest)
    for name, a, b, turns in (("plain", real(2, 3, 4), real(4, 5), {}), ("left", real(4, 3), real(4, 5), {"transA": 1})):
        left = np.swapaxes(a, -1, -2) if turns else a
        add(f"FusedMatMul_{name}", "FusedMatMul", [a, b], left @ b, **turns)
    x, skip, gamma = real(2, 3, 4), real(2, 3, 4), real(4)
    rms = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    cases.add("simplified_norm", "SimplifiedLayerNormalization", [x, gamma], rms * gamma, 21, epsilon=1e-5)
    total = x + skip + gamma
    rms = total / np.sqrt((total * total).mean(-1, keepdims=True) + 1e-5)
    add(
        "skip_rms_norm_bias", "SkipSimplifiedLayerNormalization", [x, skip, gamma, gamma],
        [rms * gamma, None, None, total], epsilon=1e-5,
    )
    total = x + skip
    centred = total - total.mean(-1, keepdims=True)
    norm = centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    add("skip_norm_plain", "SkipLayerNormalization", [x, skip, gamma], norm * gamma, epsilon=1e-5)
    # Two of the heads share keys and values, of which two steps are past.
    q, k, v, past_k, past_v = real(1, 3, 16), real(1, 3, 8), real(1, 3, 8), real(1, 2, 2, 4), real(1, 2, 2, 4)
    all_k, all_v = np.concatenate([past_k, heads(k, 2)], 2), np.concatenate([past_v, heads(v, 2)], 2)
    for name, given in (("past", {}), ("scale", {"scale": 0.3}), ("softcap", {"softcap": 2.0})):
        y = flat(attention(heads(q, 4), all_k, all_v, causal=True, offset=2, **given)[0])
        add(
            f"GroupQueryAttention_{name}", "GroupQueryAttention",
            [q, k, v, past_k, past_v, np.array([4], np.int32), np.array(5, np.int32)],
            [y, all_k, all_v], constants=(5, 6), num_heads=4, kv_num_heads=2, **given,
        )
    sinks = real(4)
    y = flat(attention(heads(q, 4), all_k, all_v, causal=True, offset=2, sinks=sinks)[0])
    add(
        "GroupQueryAttention_sinks", "GroupQueryAttention",
        [q, k, v, past_k, past_v, np.array([4], np.int32), np.array(5, np.int32), None, None, None, None, sinks],
        [y, all_k, all_v], constants=(5, 6, 11), num_heads=4, kv_num_heads=2, smooth_softmax=1,
    )
    y = flat(attention(heads(q, 4), all_k, all_v, causal=True, offset=2, sinks=np.zeros(4, np.float32))[0])
    add(
        "GroupQueryAttention_smooth", "GroupQueryAttention",
        [q, k, v, past_k, past_v, np.array([4], np.int32), np.array(5, np.int32)],
        [y, all_k, all_v], constants=(5, 6), num_heads=4, kv_num_heads=2, smooth_softmax=1,
    )
    x, bias = real(3, 32), real(6)
    for bits, whole in ((8, numbers("uint8", 6, 2, 16)), (2, RANDOM.integers(0, 4, (6, 2, 16), np.uint8))):
        packed = whole if bits == 8 else sum(whole[..., i::4] << (2 * i) for i in range(4)).astype(np.uint8)
        scales = (np.abs(real(6, 2)) + 0.1) / 2 ** (bits - 1)
        weights = ((whole - 2.0 ** (bits - 1)) * scales[..., None]).reshape(6, 32)
        add(
            f"MatMulNBits_{bits}", "MatMulNBits",
            [x, packed, scales.reshape(-1).astype(np.float32), None, None, bias], (x @ weights.T).astype(np.float32) + bias,
            constants=(1, 2, 5), K=32, N=6, bits=bits, block_size=16,
        )


def write_model(folder, opset, cases):
    nodes, inputs, outputs, constants, arguments = [], [], [], [], []
    for name, op, operands, expected, domain, fixed, attributes in cases:
        operand_names = []
        for index, operand in enumerate(operands):
            if operand is None:
                operand_names.append("")
                continue
            operand = np.asarray(operand)
            operand_names.append(f"{name}.{index}")
            if index in fixed:
                constants.append(onnx.tensor(operand_names[-1], operand))
                continue
            inputs.append(onnx.value(operand_names[-1], operand.shape, operand.dtype.name))
            path = os.path.join(folder, f"{operand_names[-1]}.pb")
            with open(path, "wb") as file:
                file.write(onnx.tensor(operand_names[-1], operand))
            arguments += ["--inputs", f"{operand_names[-1]}={path}"]
        result_names = []
        for index, result in enumerate(expected):
            result_names.append("" if result is None else f"{name}:{index}")
            if result is None:
                continue
            result = np.asarray(result, np.float32) if result.dtype == np.float64 else result
            outputs.append(onnx.value(result_names[-1], result.shape, result.dtype.name))
            path = os.path.join(folder, f"{name}_{index}.out.pb")
            with open(path, "wb") as file:
                file.write(onnx.tensor(result_names[-1], result))
            arguments += ["--expect", f"{result_names[-1]}={path}"]
        nodes.append(onnx.node(op, operand_names, result_names, domain, **attributes))
    path = os.path.join(folder, f"opset{opset}.onnx")
    with open(path, "wb") as file:
        graph = onnx.graph(nodes, inputs, outputs, constants)
        file.write(onnx.model(graph, opset, ["com.microsoft"]))
    return path, arguments


def run(argv, description, adders):
    """Runs the cases that the functions add, prints a line for each, and returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--devices", default="cpu", help="devices for npu-run")
    options = parser.parse_args(argv)
    cases = Cases()
    for add in adders:
        add(cases)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for opset, own in sorted(cases.models.items()):
            path, arguments = write_model(folder, opset, own)
            command = [os.path.join(options.bin, "npu-run"), "-q", "--no-cache", "--threads", "1"]
            command += ["--devices", options.devices, "--rtol", "1e-3", "--atol", "2e-6", path]
            done = subprocess.run(command + arguments, capture_output=True, text=True, check=False)
            lines = [line for line in done.stderr.splitlines() if "error:" in line or "output '" in line]
            for name, *_ in own:
                why = [line for line in lines if f"'{name}:" in line]
                if not why and done.returncode not in (0, 4):
                    why = ["not run, " + (lines or [done.stderr.strip()])[0]]
                print(f"differs {name}: {why[0]}" if why else f"pass {name}")
            failed = failed or done.returncode != 0
    return 1 if failed else 0


def main(argv):
    return run(
        argv, "Check newer ops, and ONNX Runtime's own.",
        (attention_cases, rotary_cases, cache_cases, norm_cases, window_cases, sampling_cases,
         small_cases, conversion_cases, quantized_cases, weight_cases, microsoft_cases,
         activation_cases, more_microsoft_cases),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Cases: tensors made from sizes."""

from op_corpus.specs import INF, bf16, device, dtype, f32, f64, form, i64, layout


def creation(c):
    c.op("full", "full", [2, 3], 1.5)
    c.op("full_int", "full", [2], 7)
    # Called directly, 1.13 takes the bool for an integer.
    c.op("full_bool", "full", [2], True, newer=True)
    c.op("full_bool_dtype", "full", [2], True, dtype=dtype("bool"))
    c.op("full_infinity", "full", [2], -INF)
    c.op("full_bf16", "full", [3], 0.3, dtype=dtype("bfloat16"))
    c.op("full_0d", "full", [], 2.5)
    c.op(
        "full_meta", "full", [2, 2], 1, dtype=dtype("float32"), layout=layout(), device=device(),
        pin_memory=False, attrs={"device": "meta"},
    )
    c.op("full_full_attrs", "full", [2], 3.0, full=True)
    c.op("zeros", "zeros", [2, 3])
    c.op("zeros_empty", "zeros", [0, 3])
    c.op("zeros_u8", "zeros", [4], dtype=dtype("uint8"))
    c.op("ones_f64", "ones", [2], dtype=dtype("float64"), device=device())
    c.op("ones_bool", "ones", [2, 2], dtype=dtype("bool"))
    c.op("arange", "arange", 5)
    c.op("arange_float", "arange", 2.5)
    c.op(
        "arange_dtype", "arange", 4, dtype=dtype("float32"), device=device(),
        attrs={"device": "meta"},
    )
    c.op("arange_start", "arange.start", 2, 7)
    c.op("arange_step", "arange.start_step", 1, 10, 3)
    c.op("arange_down", "arange.start_step", 5, -4, -2)
    c.op("arange_float_step", "arange.start_step", 0, 1, 0.25)
    c.op("arange_i32", "arange.start", -2, 3, dtype=dtype("int32"))
    c.op("full_like", "full_like", f32(2, 3), 2)
    c.op(
        "full_like_format", "full_like", f32(1, 2, 2, 2), 0.5, dtype=dtype("float64"),
        memory_format=form("preserve_format"),
    )
    c.op("zeros_like_i64", "zeros_like", f32(2), dtype=dtype("int64"))
    c.op("ones_like_bf16", "ones_like", bf16(3))
    c.op("new_zeros", "new_zeros", f32(1), [2, 2])
    c.op("new_full", "new_full", i64(1), [3], 9)
    c.op("new_ones", "new_ones", f64(1), [2], dtype=dtype("bool"))
    c.op("eye", "eye", 3)
    c.op("eye_m", "eye.m", 2, 4, dtype=dtype("int64"))
    c.op("scalar_tensor", "scalar_tensor", 2.5)
    c.op("scalar_tensor_i64", "scalar_tensor", 7, dtype=dtype("int64"), device=device())
    c.op("linspace", "linspace", -1, 1, 5, exact=False)
    c.op("logspace", "logspace", 0, 2, 3, 10.0, exact=False)
    c.op("tril_indices", "tril_indices", 3, 4, -1)
    c.op("triu_indices", "triu_indices", 3, 3)
    c.op("hann_window", "hann_window", 6, exact=False)
    c.op("hamming_window", "hamming_window.periodic_alpha", 5, False, 0.5, exact=False)

    def filled(b):
        blank = b.op("empty.memory_format", [2, 2])
        return [b.op("fill.Scalar", blank, 4.0), b.op("zero_", blank)]

    c.graph("empty_then_filled", filled)

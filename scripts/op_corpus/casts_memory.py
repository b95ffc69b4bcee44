# SPDX-License-Identifier: Apache-2.0
"""Cases: casts, copies and layouts in memory."""

from op_corpus.specs import (
    INF,
    NAN,
    bf16,
    boolean,
    device,
    dtype,
    f16,
    f32,
    f64,
    form,
    i16,
    i64,
    i8,
    layout,
    u8,
    values,
)


def casts_memory(c):
    special = values([1.0, -1.5, 1e-40, 3.4e38, INF, -INF, NAN, 0.1, 1.00390625, 1.01171875, -0.0])
    exact = values([1.0, -2.5, 3.99, -3.99, 100.7, 0.0])
    c.op("f32_to_bf16", "to.dtype", special, dtype("bfloat16"))
    c.op("f32_to_f16", "to.dtype", special, dtype("float16"))
    c.op("f32_to_f64", "to.dtype", special, dtype("float64"))
    c.op("f32_to_bool", "to.dtype", special, dtype("bool"))
    for kind in "int8 uint8 int16 int32 int64".split():
        source = values([1.0, 2.5, 3.99, 100.7, 0.0]) if kind == "uint8" else exact
        c.op(f"f32_to_{kind}", "to.dtype", source, dtype(kind))
    for kind in "float32 float64 float16 int64".split():
        c.op(f"bf16_to_{kind}", "to.dtype", bf16(9), dtype(kind))
    c.op(
        "bf16_nan_to_f32", "to.dtype", values([NAN, INF, 1e-40, -0.0], "bfloat16"), dtype("float32")
    )
    c.op("f64_to_bf16", "to.dtype", f64(9), dtype("bfloat16"))
    c.op("f64_to_f32", "to.dtype", values([0.1, 1e-300, 1e300, INF], "float64"), dtype("float32"))
    c.op("f16_to_bf16", "to.dtype", f16(9), dtype("bfloat16"))
    c.op("i64_to_f32", "to.dtype", values([2**24 + 1, -(2**53) - 1, 7], "int64"), dtype("float32"))
    c.op("i64_to_bf16", "to.dtype", values([257, -259, 1000003], "int64"), dtype("bfloat16"))
    c.op("i64_to_i32", "to.dtype", values([2**31 + 5, -7], "int64"), dtype("int32"))
    c.op("i64_to_u8", "to.dtype", values([256, -1, 77], "int64"), dtype("uint8"))
    c.op("i16_to_f32", "to.dtype", i16(6), dtype("float32"))
    c.op("i8_to_i64", "to.dtype", i8(6), dtype("int64"))
    c.op("u8_to_f32", "to.dtype", u8(6), dtype("float32"))
    c.op("bool_to_f32", "to.dtype", boolean(6), dtype("float32"))
    c.op("bool_to_i64", "to.dtype", boolean(6), dtype("int64"))
    c.op("i64_to_bool", "to.dtype", i64(6, low=0, high=2), dtype("bool"))
    c.op("same_dtype", "to.dtype", f32(3), dtype("float32"))
    c.op("same_dtype_copy", "to.dtype", f32(3), dtype("float32"), False, True)
    c.op("to_full_attrs", "to.dtype", f32(3), dtype("bfloat16"), full=True)
    c.op("to_0d", "to.dtype", f32(), dtype("bfloat16"))
    c.op("to_empty", "to.dtype", f32(0, 2), dtype("int64"))
    c.op(
        "to_dtype_layout", "to.dtype_layout", f32(4), dtype=dtype("float64"), layout=layout(),
        device=device(), pin_memory=False,
    )
    c.op(
        "to_dtype_layout_meta", "to.dtype_layout", f32(4), dtype=dtype("bfloat16"), device=device(),
        attrs={"device": "meta"},
    )
    c.op(
        "to_device_meta", "to.device", f32(4), device(), dtype("float64"), attrs={"device": "meta"}
    )
    c.op(
        "to_dtype_layout_full_attrs", "to.dtype_layout", f32(4), dtype=dtype("float32"),
        device=device(), full=True,
    )
    c.op("to_other", "to.other", f32(4), bf16(1))
    c.op("to_copy", "_to_copy", f32(4), dtype=dtype("bfloat16"))
    c.op("to_copy_plain", "_to_copy", bf16(4))
    c.op(
        "to_copy_format", "_to_copy", f32(1, 2, 2, 3), dtype=dtype("float64"),
        memory_format=form("channels_last"),
    )
    c.op(
        "to_copy_meta", "_to_copy", i64(4), dtype=dtype("float32"), device=device(),
        attrs={"device": "meta"},
    )
    c.op("clone", "clone", f32(2, 3))
    c.op("clone_channels_last", "clone", f32(1, 2, 2, 3), memory_format=form("channels_last"))
    c.op("clone_contiguous", "clone", bf16(2, 3), memory_format=form("contiguous_format"))
    c.op("clone_bool", "clone", boolean(5))
    c.op("type_as", "type_as", i64(4), f32(1))
    c.op("cast_float", "_cast_Float", i64(4))
    c.op("copy", "copy", f32(2, 3), i64(3))
    c.op("copy_in_place", "copy_", bf16(2, 3), f32(3))
    c.op("lift_fresh", "lift_fresh", f32(3))
    c.op("detach_in_place", "detach_", f32(3))
    c.op("fill", "fill.Scalar", f32(2, 3), 2.5)
    c.op("fill_tensor", "fill.Tensor", i64(4), values(3, "int64"))
    c.op("fill_in_place", "fill_.Scalar", bf16(4), INF)
    c.op("zero_in_place", "zero_", f32(4))

    def there_and_back(b):
        y = b.op("to.dtype", b.input(bf16(6)), dtype("float32"))
        return [y, b.op("to.dtype", y, dtype("bfloat16"))]

    c.graph("bf16_there_and_back", there_and_back)

    def through_views(b):
        y = b.op("permute", b.input(bf16(2, 3, 2)), [2, 0, 1])
        z = b.op("to.dtype", y, dtype("float64"))
        return [b.op("clone", y), b.op("contiguous", z), y]

    c.graph("cast_of_a_permute", through_views)

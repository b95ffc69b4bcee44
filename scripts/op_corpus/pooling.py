# SPDX-License-Identifier: Apache-2.0
"""Cases: pooling."""

from op_corpus.specs import INF, NAN, bf16, f32, f64, i64, values


def pooling(c):
    x1, x2, x3 = f32(2, 3, 9), f32(2, 3, 7, 6), f32(1, 2, 4, 5, 6)
    c.op("max_pool1d", "max_pool1d", x1, [3])
    c.op("max_pool1d_all", "max_pool1d", x1, [3], [2], [1], [2], True)
    c.op("max_pool1d_indices", "max_pool1d_with_indices", x1, [3], [2])
    c.op("max_pool2d", "max_pool2d", x2, [2, 2])
    c.op("max_pool2d_stride", "max_pool2d", x2, [3, 3], [2, 2], [1, 1])
    c.op("max_pool2d_one_int", "max_pool2d", x2, 3, 2, 1)
    c.op("max_pool2d_ceil", "max_pool2d", x2, [3, 2], [2, 2], [0, 0], [1, 1], True)
    c.op("max_pool2d_ceil_padding", "max_pool2d", x2, [3, 3], [2, 2], [1, 1], ceil_mode=True)
    c.op("max_pool2d_dilated", "max_pool2d", x2, [2, 3], [1, 1], [1, 0], [2, 2])
    c.op("max_pool2d_full_attrs", "max_pool2d", x2, [2, 2], full=True)
    c.op(
        "max_pool2d_negative", "max_pool2d", f32(1, 1, 4, 4, low=-9, high=-1), [3, 3], [1, 1],
        [1, 1],
    )
    c.op("max_pool2d_unbatched", "max_pool2d", f32(3, 6, 6), [2, 2])
    c.op("max_pool2d_bf16", "max_pool2d", bf16(1, 2, 6, 6), [2, 2], exact=True)
    c.op("max_pool2d_f64", "max_pool2d", f64(1, 2, 6, 6), [3, 3])
    c.op(
        "max_pool2d_nan", "max_pool2d", values([[[1.0, NAN, 2.0, 3.0], [0.0, 1.0, -INF, 5.0]]]),
        [2, 2],
    )
    c.op("max_pool2d_indices", "max_pool2d_with_indices", x2, [3, 3], [2, 2], [1, 1])
    c.op("max_pool2d_indices_only", "max_pool2d_with_indices", x2, [2, 2], outputs=[1])
    c.op("max_pool3d", "max_pool3d", x3, [2, 2, 2])
    c.op(
        "max_pool3d_indices", "max_pool3d_with_indices", x3, [2, 3, 2], [2, 1, 2], [1, 1, 0], 1,
        True,
    )
    c.op("avg_pool1d", "avg_pool1d", x1, [3], [2], [1])
    c.op("avg_pool1d_no_padding_counted", "avg_pool1d", x1, [3], [2], [1], True, False)
    c.op("avg_pool2d", "avg_pool2d", x2, [2, 2])
    c.op("avg_pool2d_padded", "avg_pool2d", x2, [3, 3], [2, 2], [1, 1])
    c.op("avg_pool2d_exclude_padding", "avg_pool2d", x2, [3, 3], [2, 2], [1, 1], False, False)
    c.op("avg_pool2d_ceil", "avg_pool2d", x2, [3, 3], [2, 2], [1, 1], True)
    c.op("avg_pool2d_ceil_exclude", "avg_pool2d", x2, [2, 4], [3, 3], [1, 0], True, False)
    c.op("avg_pool2d_divisor", "avg_pool2d", x2, [2, 2], [2, 2], [0, 0], False, True, 3)
    c.op("avg_pool2d_one_int", "avg_pool2d", x2, 2, 1, 1)
    c.op("avg_pool2d_full_attrs", "avg_pool2d", x2, [2, 2], full=True)
    c.op("avg_pool2d_bf16", "avg_pool2d", bf16(1, 2, 6, 6), [2, 2])
    c.op("avg_pool2d_i64", "avg_pool2d", i64(1, 2, 4, 4), [2, 2])
    c.op("avg_pool3d", "avg_pool3d", x3, [2, 2, 2], [1, 2, 2], [1, 0, 1], False, False)
    c.op("avg_pool3d_divisor", "avg_pool3d", x3, [2, 2, 2], divisor_override=5)
    c.op("adaptive_avg1d", "adaptive_avg_pool1d", x1, [4])
    c.op("adaptive_avg2d", "adaptive_avg_pool2d", x2, [1, 1])
    c.op("adaptive_avg2d_uneven", "adaptive_avg_pool2d", x2, [3, 4])
    c.op("adaptive_avg2d_one_int", "adaptive_avg_pool2d", x2, [2, 2], attrs={"output_size": 2})
    c.op("adaptive_avg2d_enlarging", "_adaptive_avg_pool2d", f32(1, 2, 2, 3), [4, 5])
    c.op("adaptive_avg2d_unbatched", "adaptive_avg_pool2d", f32(3, 5, 5), [2, 2])
    c.op("adaptive_avg2d_bf16", "adaptive_avg_pool2d", bf16(1, 2, 4, 4), [1, 1])
    c.op("adaptive_avg3d", "adaptive_avg_pool3d", x3, [2, 3, 1])
    c.op("adaptive_max1d", "adaptive_max_pool1d", x1, [4])
    c.op("adaptive_max2d", "adaptive_max_pool2d", x2, [3, 2])
    c.op("adaptive_max2d_values", "adaptive_max_pool2d", x2, [1, 1], outputs=[0])
    c.op("adaptive_max3d", "adaptive_max_pool3d", x3, [2, 2, 2])
    c.op("adaptive_max2d_f64", "adaptive_max_pool2d", f64(1, 2, 5, 5), [2, 3])

    def unpool(b):
        pooled, indices = b.op("max_pool2d_with_indices", b.input(x2), [2, 2])
        return [b.op("max_unpool2d", pooled, indices, [7, 6])]

    c.graph("max_unpool2d", unpool)

# SPDX-License-Identifier: Apache-2.0
"""Cases: convolution."""

from op_corpus.category import BF16_SUMS
from op_corpus.specs import bf16, f32, f64, weight


def convolution(c):
    x1, x2, x3 = f32(2, 4, 9), f32(2, 4, 7, 6), f32(1, 2, 4, 5, 3)
    w2, b2 = weight(f32(6, 4, 3, 3)), weight(f32(6))
    c.op("conv1d", "conv1d", x1, weight(f32(6, 4, 3)))
    c.op("conv1d_bias_stride", "conv1d", x1, weight(f32(6, 4, 3)), weight(f32(6)), [2], [1])
    c.op("conv1d_depthwise", "conv1d", x1, weight(f32(4, 1, 3)), None, 1, [2], [2], 4)
    c.op("conv1d_unbatched", "conv1d", f32(4, 9), weight(f32(2, 4, 2)), None, [2])
    c.op("conv1d_same", "conv1d.padding", x1, weight(f32(3, 4, 4)), padding="same")
    c.op("conv2d", "conv2d", x2, w2)
    c.op("conv2d_bias", "conv2d", x2, w2, b2, [2, 1], [1, 0])
    c.op("conv2d_one_int", "conv2d", x2, w2, b2, 2, 1)
    c.op("conv2d_full_attrs", "conv2d", x2, w2, b2, full=True)
    c.op("conv2d_dilated", "conv2d", x2, w2, b2, [1, 1], [2, 2], [2, 2])
    c.op("conv2d_grouped", "conv2d", x2, weight(f32(6, 2, 3, 3)), b2, groups=2)
    c.op("conv2d_depthwise", "conv2d", x2, weight(f32(8, 1, 3, 3)), None, 1, 1, 1, 4)
    c.op("conv2d_wide_kernel", "conv2d", x2, weight(f32(3, 4, 1, 5)), None, 1, [0, 2])
    c.op("conv2d_weight_is_input", "conv2d", x2, f32(5, 4, 1, 1), f32(5))
    c.op("conv2d_unbatched", "conv2d", f32(4, 6, 6), w2, b2)
    c.op("conv2d_empty_batch", "conv2d", f32(0, 4, 6, 6), w2, b2)
    c.op("conv2d_same", "conv2d.padding", x2, w2, b2, padding="same", dilation=[2, 1])
    c.op("conv2d_valid", "conv2d.padding", x2, w2, b2, [2, 2], "valid")
    c.op("conv2d_f64", "conv2d", f64(1, 3, 5, 5), weight(f64(4, 3, 3, 3)), weight(f64(4)), 1, 1)
    c.op(
        "conv2d_bf16", "conv2d", bf16(1, 3, 5, 5), weight(bf16(4, 3, 3, 3)), weight(bf16(4)),
        **BF16_SUMS,
    )
    c.op("conv3d", "conv3d", x3, weight(f32(3, 2, 2, 3, 2)), weight(f32(3)))
    c.op("conv3d_strided", "conv3d", x3, weight(f32(4, 1, 3, 3, 3)), None, [1, 2, 1], 1, 1, 2)
    c.op("conv3d_same", "conv3d.padding", x3, weight(f32(2, 2, 3, 1, 2)), None, 1, "same")
    c.op("transpose1d", "conv_transpose1d", x1, weight(f32(4, 3, 3)), weight(f32(3)), [2], [1], [1])
    c.op("transpose2d", "conv_transpose2d.input", x2, weight(f32(4, 3, 3, 3)))
    c.op(
        "transpose2d_output_padding", "conv_transpose2d.input", x2, weight(f32(4, 3, 3, 3)),
        weight(f32(6)), [2, 2], [1, 1], [1, 0], 2,
    )
    c.op(
        "transpose2d_dilated", "conv_transpose2d.input", x2, weight(f32(4, 2, 2, 2)),
        dilation=[2, 3],
    )
    c.op(
        "transpose2d_f64", "conv_transpose2d.input", f64(1, 2, 4, 4), weight(f64(2, 3, 2, 2)), None,
        2,
    )
    c.op("transpose3d", "conv_transpose3d.input", x3, weight(f32(2, 2, 2, 2, 2)), weight(f32(2)), 2)
    tail = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    c.op("convolution", "convolution", x2, w2, b2, *tail)
    c.op("convolution_no_bias", "convolution", x2, w2, None, *tail)
    c.op(
        "convolution_1d", "convolution", x1, weight(f32(4, 2, 3)), None, [1], [1], [1], False, [0],
        2,
    )
    c.op(
        "convolution_3d", "convolution", x3, weight(f32(2, 2, 2, 2, 2)), None, [1, 1, 1], [0, 0, 0],
        [1, 1, 1], False, [0, 0, 0], 1,
    )
    c.op(
        "convolution_transposed", "convolution", x2, weight(f32(4, 3, 3, 3)), weight(f32(3)),
        [2, 2], [1, 1], [1, 1], True, [1, 1], 1,
    )
    c.op("convolution_one_int", "convolution", x2, w2, b2, [2], [1], [1], False, [0], 1)
    c.op(
        "convolution_internal", "_convolution", x2, w2, None, [1, 1], [0, 0], [1, 1], False, [0, 0],
        1, False, False, True, True,
    )
    c.op("conv_tbc", "conv_tbc", f32(6, 2, 3), weight(f32(3, 3, 4)), weight(f32(4)), 1)
    c.op(
        "convolution_backward", "convolution_backward", f32(2, 6, 5, 4), x2, w2, [6], [1, 1],
        [0, 0], [1, 1], False, [0, 0], 1, [True, True, True],
    )

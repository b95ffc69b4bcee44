# SPDX-License-Identifier: Apache-2.0
"""Cases: normalization."""

from op_corpus.specs import bf16, f32, f64, positive, weight


def normalization(c):
    x, mean, var = f32(2, 3, 4, 5), weight(f32(3)), weight(positive(3))
    scale, shift = weight(f32(3)), weight(f32(3))
    bn = ("batch_norm", x)
    c.op("batch_norm", *bn, scale, shift, mean, var, False, 0.1, 1e-5, True)
    c.op("batch_norm_no_affine", *bn, None, None, mean, var, False, 0.1, 1e-5, True)
    c.op(
        "batch_norm_slid", *bn, None, None, mean, var, False, 0.1, 1e-5, True, drop=("_none_args",)
    )
    c.op("batch_norm_weight_only", *bn, scale, None, mean, var, False, 0.1, 1e-3, False)
    c.op("batch_norm_bias_only", *bn, None, shift, mean, var, False, 0.1, 1e-3, False)
    c.op("batch_norm_int_eps", *bn, scale, shift, mean, var, False, 0, 1, False)
    c.op("batch_norm_training", *bn, scale, shift, None, None, True, 0.1, 1e-5, False)
    c.op("batch_norm_training_stats", *bn, scale, shift, mean, var, True, 0.1, 1e-5, True)
    c.op("batch_norm_2d", "batch_norm", f32(4, 3), scale, shift, mean, var, False, 0.1, 1e-5, True)
    c.op(
        "batch_norm_3d", "batch_norm", f32(2, 3, 4), scale, shift, mean, var, False, 0.1, 1e-5, True
    )
    c.op(
        "batch_norm_5d", "batch_norm", f32(1, 3, 2, 2, 2), scale, shift, mean, var, False, 0.1,
        1e-5, True,
    )
    c.op(
        "batch_norm_f64", "batch_norm", f64(2, 3, 4), weight(f64(3)), weight(f64(3)),
        weight(f64(3)), weight(positive(3, dtype="float64")), False, 0.1, 1e-5, True,
    )
    c.op(
        "batch_norm_bf16", "batch_norm", bf16(2, 3, 4, 4), weight(bf16(3)), weight(bf16(3)),
        weight(bf16(3)), weight(positive(3, dtype="bfloat16")), False, 0.1, 1e-5, True,
    )
    c.op("native_batch_norm", "native_batch_norm", x, scale, shift, mean, var, False, 0.1, 1e-5)
    c.op(
        "native_batch_norm_training", "native_batch_norm", x, None, None, None, None, True, 0.1,
        1e-5,
    )
    c.op("layer_norm", "layer_norm", f32(2, 3, 6), [6], weight(f32(6)), weight(f32(6)))
    c.op("layer_norm_plain", "layer_norm", f32(2, 3, 6), [6])
    c.op("layer_norm_plain_eps", "layer_norm", f32(2, 6), [6], None, None, 0.5, False)
    c.op("layer_norm_weight_only", "layer_norm", f32(2, 6), [6], weight(f32(6)), None, 1e-6)
    c.op("layer_norm_bias_only", "layer_norm", f32(2, 6), [6], None, weight(f32(6)))
    c.op("layer_norm_int_eps", "layer_norm", f32(2, 6), [6], weight(f32(6)), weight(f32(6)), 1)
    c.op("layer_norm_2d", "layer_norm", f32(2, 3, 4), [3, 4], weight(f32(3, 4)), weight(f32(3, 4)))
    c.op(
        "layer_norm_full_attrs", "layer_norm", f32(2, 6), [6], weight(f32(6)), weight(f32(6)),
        full=True,
    )
    c.op("layer_norm_f64", "layer_norm", f64(2, 5), [5], weight(f64(5)), weight(f64(5)))
    c.op("layer_norm_bf16", "layer_norm", bf16(3, 8), [8], weight(bf16(8)), weight(bf16(8)))
    c.op("layer_norm_empty", "layer_norm", f32(0, 6), [6], weight(f32(6)), weight(f32(6)))
    c.op(
        "native_layer_norm", "native_layer_norm", f32(2, 3, 6), [6], weight(f32(6)), weight(f32(6)),
        1e-5,
    )
    c.op(
        "native_layer_norm_bias_only", "native_layer_norm", f32(4, 6), [6], None, weight(f32(6)),
        1e-5,
    )
    c.op(
        "native_layer_norm_backward", "native_layer_norm_backward", f32(2, 4), f32(2, 4), [4],
        f32(2, 1), positive(2, 1), weight(f32(4)), weight(f32(4)), [True, True, True],
    )
    c.op("group_norm", "group_norm", f32(2, 4, 3, 3), 2, weight(f32(4)), weight(f32(4)))
    c.op("group_norm_plain", "group_norm", f32(2, 4, 3), 4)
    c.op("group_norm_bias_only", "group_norm", f32(2, 4, 3), 2, None, weight(f32(4)), 1e-4)
    c.op("group_norm_f64", "group_norm", f64(1, 4, 3), 2, weight(f64(4)), weight(f64(4)))
    c.op(
        "native_group_norm", "native_group_norm", f32(2, 4, 3), weight(f32(4)), weight(f32(4)), 2,
        4, 3, 2, 1e-5,
    )
    c.op("native_group_norm_plain", "native_group_norm", f32(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5)
    inorm = ("instance_norm", x)
    c.op("instance_norm", *inorm, None, None, None, None, True, 0.1, 1e-5, True)
    c.op("instance_norm_affine", *inorm, scale, shift, None, None, True, 0.1, 1e-5, True)
    c.op("instance_norm_stats", *inorm, scale, shift, mean, var, False, 0.1, 1e-5, True)
    c.op("instance_norm_stats_only", *inorm, None, None, mean, var, False, 0.1, 1e-5, True)
    c.op(
        "instance_norm_1d", "instance_norm", f32(2, 3, 6), scale, shift, None, None, True, 0.1,
        1e-5, True,
    )
    c.op("renorm", "renorm", f32(3, 4), 2, 0, 1.5)
    c.op("weight_norm", "_weight_norm", f32(3, 4), f32(3, 1))

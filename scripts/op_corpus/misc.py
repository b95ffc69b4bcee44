# SPDX-License-Identifier: Apache-2.0
"""Cases: ops that fit in no other category."""

from op_corpus.specs import INF, boolean, dtype, f32, i64, positive, values


def misc(c):
    x, y, z = f32(3, 4), f32(3, 4), positive(3, 4)
    image = f32(1, 2, 4, 5)
    c.op("dropout_eval", "dropout", x, 0.5, False, exact=True)
    c.op("dropout_int_p", "dropout", x, 0, True, attrs={"p": 0})
    c.op("dropout_in_place", "dropout_", x, 0.25, False, exact=True)
    c.op("feature_dropout", "feature_dropout", f32(2, 3, 4), 0.5, False, exact=True)
    c.op("alpha_dropout", "alpha_dropout", x, 0.5, False, exact=True)
    c.op("native_dropout_eval", "native_dropout", x, 0.5, False)
    c.op("sort", "sort", x)
    c.op("sort_descending", "sort", x, 0, True)
    c.op("sort_stable", "sort.stable", i64(8, low=0, high=3), stable=True, dim=0, descending=True)
    c.op("sort_i64", "sort", values([[5, 1, 9], [3, 8, 2]], "int64"), 1)
    c.op("argsort", "argsort", x, -1, True)
    c.op("msort", "msort", x)
    c.op("topk", "topk", x, 2)
    c.op("topk_smallest", "topk", f32(5, 3), 3, 0, False, True)
    c.op("topk_bf16", "topk", values([3.0, 1.0, 2.0, 7.0], "bfloat16"), 2)
    c.op("topk_values_only", "topk", x, 1, outputs=[0])
    c.op("lerp_scalar", "lerp.Scalar", x, y, 0.25)
    c.op("lerp_scalar_int", "lerp.Scalar", x, y, 2)
    c.op("lerp_tensor", "lerp.Tensor", x, y, f32(4, low=0, high=1))
    c.op("addcmul", "addcmul", x, y, z)
    c.op("addcmul_value", "addcmul", x, f32(3, 1), z, value=-0.5)
    c.op("addcmul_in_place", "addcmul_", x, y, z, value=2)
    c.op("addcdiv", "addcdiv", x, y, z, value=0.75)
    c.op("roll", "roll", x, [1, -1], [0, 1])
    c.op("roll_flat", "roll", x, [3])
    c.op("roll_one_int", "roll", x, [1], [1], attrs={"shifts": 1, "dims": 1})
    c.op("flip", "flip", x, [0, -1])
    c.op("fliplr", "fliplr", x)
    c.op("tril", "tril", x)
    c.op("triu_diagonal", "triu", f32(2, 3, 3), 1)
    c.op("tril_bool", "tril", boolean(4, 4), -1)
    c.op("pixel_shuffle", "pixel_shuffle", f32(1, 8, 2, 3), 2)
    c.op("pixel_unshuffle", "pixel_unshuffle", f32(1, 2, 4, 6), 2)
    c.op("channel_shuffle", "channel_shuffle", f32(1, 6, 2, 2), 3)
    c.op("nearest1d", "upsample_nearest1d", f32(1, 2, 4), [7])
    c.op("nearest2d", "upsample_nearest2d", image, [8, 10])
    c.op("nearest2d_scales", "upsample_nearest2d", image, [6, 7], 1.5, 1.5)
    c.op("nearest2d_vec", "upsample_nearest2d.vec", image, None, [2.0, 1.5])
    c.op(
        "nearest2d_vec_int_factors", "upsample_nearest2d.vec", image, None, [2.0, 2.0],
        attrs={"scale_factors": [2, 2]},
    )
    c.op("nearest2d_vec_size", "upsample_nearest2d.vec", image, [5, 3], None, full=True)
    c.op("nearest3d", "upsample_nearest3d.vec", f32(1, 1, 2, 2, 2), None, [2.0, 1.0, 2.0])
    c.op("nearest_exact2d", "_upsample_nearest_exact2d", image, [7, 7])
    c.op("bilinear2d", "upsample_bilinear2d", image, [7, 8], False)
    c.op("bilinear2d_corners", "upsample_bilinear2d.vec", image, [3, 9], True, None)
    c.op("bilinear2d_factors", "upsample_bilinear2d.vec", image, None, False, [2.0, 2.0])
    c.op("bicubic2d", "upsample_bicubic2d", image, [6, 7], False)
    c.op("linear1d", "upsample_linear1d", f32(1, 2, 4), [9], True)
    c.op("trilinear3d", "upsample_trilinear3d", f32(1, 1, 2, 3, 2), [3, 4, 5], False)
    c.op("bilinear2d_aa", "_upsample_bilinear2d_aa", image, [2, 3], False)
    c.op("grid_sampler", "grid_sampler", image, f32(1, 3, 3, 2, low=-1.2, high=1.2), 0, 0, False)
    c.op(
        "grid_sampler_nearest", "grid_sampler_2d", image, f32(1, 3, 3, 2, low=-1, high=1), 1, 1,
        True,
    )
    c.op("grid_sampler_3d", "grid_sampler_3d", f32(1, 1, 2, 3, 4), f32(1, 2, 2, 2, 3), 0, 1, False)
    c.op("affine_grid", "affine_grid_generator", f32(1, 2, 3), [1, 1, 3, 4], False)
    c.op("constant_pad", "constant_pad_nd", x, [1, 2])
    c.op("constant_pad_value", "constant_pad_nd", x, [1, 0, 0, 2], -INF)
    c.op("constant_pad_negative", "constant_pad_nd", x, [-1, 2], 3)
    c.op("pad_reflect", "pad", image, [1, 2, 2, 1], "reflect")
    c.op("pad_constant", "pad", image, [1, 1], "constant", 0.5)
    c.op("pad_default_mode", "pad", i64(4), [1, 1])
    c.op("reflection_pad1d", "reflection_pad1d", f32(2, 5), [2, 1])
    c.op("reflection_pad2d", "reflection_pad2d", image, [1, 1, 2, 0])
    c.op("replication_pad2d", "replication_pad2d", image, [1, 2, 0, 3])
    c.op("replication_pad3d", "replication_pad3d", f32(1, 2, 2, 2), [1, 1, 0, 1, 1, 0])
    c.op("circular_pad", "_pad_circular", f32(1, 2, 4), [1, 2])
    c.op("one_hot", "one_hot", i64(3, low=0, high=4), 5)
    c.op("cdist", "cdist", f32(3, 4), f32(2, 4))
    c.op("cdist_p1", "cdist", f32(3, 4), f32(2, 4), 1)
    c.op("cdist_inf", "cdist", f32(3, 4), f32(2, 4), INF)
    c.op("pdist", "pdist", f32(4, 3))
    c.op("cosine_similarity", "cosine_similarity", x, y)
    c.op("pairwise_distance", "pairwise_distance", x, y, 1, 1e-6, True)
    c.op("im2col", "im2col", image, [2, 2], [1, 1], [0, 0], [1, 1])
    c.op("col2im", "col2im", f32(1, 8, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])
    c.op("bernoulli_sure", "bernoulli.p", x, 1.0)
    c.op("randint_sure", "randint.low", 3, 4, [2, 2], dtype=dtype("int64"))
    c.op("randperm_one", "randperm", 1, attrs={"device": "meta"})
    c.op("mse_loss", "mse_loss", x, y)
    c.op("mse_loss_none", "mse_loss", x, y, 0)
    c.op("l1_loss_sum", "l1_loss", x, y, 2)
    c.op("smooth_l1", "smooth_l1_loss", x, y, 1, 0.5)
    c.op("huber", "huber_loss", x, y, 1, 2)
    c.op("bce", "binary_cross_entropy", f32(4, low=0.1, high=0.9), f32(4, low=0, high=1))
    c.op(
        "bce_weight", "binary_cross_entropy", f32(4, low=0.1, high=0.9), f32(4, low=0, high=1),
        f32(4), 2,
    )
    c.op(
        "bce_logits_pos_weight", "binary_cross_entropy_with_logits", f32(2, 3),
        f32(2, 3, low=0, high=1), None, positive(3),
    )
    c.op(
        "bce_logits_weight", "binary_cross_entropy_with_logits", f32(2, 3),
        f32(2, 3, low=0, high=1), positive(3), None, 0,
    )
    c.op("kl_div", "kl_div", x, z, 2, log_target=True)
    c.op("cross_entropy", "cross_entropy_loss", x, i64(3, low=0, high=4))
    c.op(
        "cross_entropy_smoothing", "cross_entropy_loss", x, i64(3, low=0, high=4), None, 1, -100,
        0.25,
    )
    c.op("nll_loss_weight", "nll_loss", x, i64(3, low=0, high=4), positive(4))
    c.op("nll_loss_forward", "nll_loss_forward", x, i64(3, low=0, high=4), None, 1, -100)
    c.op(
        "margin_ranking", "margin_ranking_loss", f32(4), f32(4), values([1.0, -1.0, 1.0, -1.0]), 0.5
    )
    c.op("foreach_add_lists", "_foreach_add.List", [f32(2), f32(3)], [f32(2), f32(3)], alpha=2)
    c.op("foreach_mul_scalars", "_foreach_mul.ScalarList", [f32(2), f32(3)], [2, 0.5])
    c.op("foreach_sqrt", "_foreach_sqrt", [positive(2), positive(3)])
    c.op(
        "segment_reduce", "segment_reduce", f32(5), "sum", lengths=values([2, 3], "int64"),
        outputs=[0],
    )

    def complex_product(b):
        left = b.op("view_as_complex", b.input(f32(3, 2), "left"))
        right = b.op("view_as_complex", b.input(f32(3, 2), "right"))
        product = b.op("mul.Tensor", left, right)
        return [b.op("view_as_real", product), b.op("abs", product)]

    c.graph("complex_product", complex_product)

    def spectrum(b):
        y = b.op("fft_rfft", b.input(f32(2, 8)), None, -1, "ortho")
        return [b.op("view_as_real", y), b.op("fft_irfft", y, 8, norm="ortho")]

    c.graph("real_fft", spectrum, atol=2e-6)

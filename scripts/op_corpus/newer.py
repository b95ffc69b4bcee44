# SPDX-License-Identifier: Apache-2.0
"""Cases: ops that PyTorch 2 added."""

from op_corpus.specs import (
    INF,
    bf16,
    boolean,
    device,
    dtype,
    f32,
    f64,
    i16,
    layout,
    positive,
    values,
    weight,
)


def newer(c):
    sdpa = "scaled_dot_product_attention"
    q, k, v = f32(2, 2, 3, 4), f32(2, 2, 5, 4), f32(2, 2, 5, 6)
    mask = values(
        [[[True, False, True, True, False], [False, True, False, True, True], [True] * 5]], "bool"
    )
    blocked = values([[0.0, -INF, 0.5, 1.0, -INF], [-INF] * 5, [0.25] * 5])
    c.op("sdpa", sdpa, q, k, v)
    c.op("sdpa_3d", sdpa, f32(2, 3, 4), f32(2, 5, 4), f32(2, 5, 4))
    c.op("sdpa_2d", sdpa, f32(3, 4), f32(5, 4), f32(5, 4))
    c.op("sdpa_full_attrs", sdpa, q, k, v, full=True)
    c.op("sdpa_bool_mask", sdpa, q, k, v, mask)
    c.op("sdpa_float_mask", sdpa, q, k, v, f32(2, 1, 3, 5))
    c.op("sdpa_blocked_row", sdpa, q, k, v, blocked)
    c.op("sdpa_causal", sdpa, q, k, v, None, 0.0, True)
    c.op(
        "sdpa_causal_square", sdpa, f32(1, 2, 4, 8), f32(1, 2, 4, 8), f32(1, 2, 4, 8),
        is_causal=True,
    )
    c.op("sdpa_scale", sdpa, q, k, v, scale=0.25)
    c.op("sdpa_mask_scale", sdpa, q, k, v, mask, scale=1, full=True)
    c.op("sdpa_gqa", sdpa, f32(1, 4, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4), enable_gqa=True)
    c.op("sdpa_f64", sdpa, f64(1, 2, 3, 4), f64(1, 2, 5, 4), f64(1, 2, 5, 4), is_causal=True)
    c.op("sdpa_bf16", sdpa, bf16(1, 2, 3, 4), bf16(1, 2, 5, 4), bf16(1, 2, 5, 4), atol=8e-3)
    c.op(
        "sdpa_bf16_mask", sdpa, bf16(1, 2, 3, 4), bf16(1, 2, 5, 4), bf16(1, 2, 5, 4), mask,
        atol=8e-3,
    )
    c.op("sdpa_broadcast_keys", sdpa, q, f32(1, 1, 5, 4), f32(1, 1, 5, 4))
    flash = "_scaled_dot_product_flash_attention_for_cpu"
    c.op("flash", flash, q, k, f32(2, 2, 5, 4))
    c.op("flash_causal", flash, f32(1, 2, 4, 4), f32(1, 2, 4, 4), f32(1, 2, 4, 4), 0.0, True)
    c.op("flash_mask", flash, q, k, f32(2, 2, 5, 4), attn_mask=f32(2, 1, 3, 5), scale=0.75)
    c.op("flash_output_only", flash, q, k, f32(2, 2, 5, 4), 0, outputs=[0])
    stats = (weight(f32(3), "mean"), weight(positive(3), "var"))
    bn = "_native_batch_norm_legit_no_training"
    c.op(
        "batch_norm", bn, f32(2, 3, 4, 4), weight(f32(3)), weight(f32(3), "bias"), *stats, 0.1,
        1e-5, newer=True,
    )
    c.op(
        "batch_norm_plain", bn, f32(2, 3, 4), None, None, *stats, 0.1, 1e-5, newer=True, outputs=[0]
    )
    c.op(
        "batch_norm_slid", bn, f32(2, 3, 4), None, None, *stats, 0.1, 1e-5, newer=True, outputs=[0],
        drop=("_none_args",),
    )

    def unread(b):
        affine = weight(f32(3)), weight(f32(3), "bias")
        return [b.op(bn, f32(2, 3, 4), *affine, *stats, 0.1, 1e-5, newer=True)[0]]

    def meta_shapes(document, builder):
        # Traced with meta tensors, statistics without a reader have the shape of the running ones.
        unused = {entry["name"] for entry in document["nodes"][0]["outputs"][1:]}
        for node in document["nodes"]:
            for entry in node["inputs"] + node["outputs"]:
                if entry["name"] in unused:
                    entry["shape"] = [3]

    c.graph("batch_norm_meta_shapes", unread, meta_shapes)
    c.op(
        "batch_norm_no_stats", "_native_batch_norm_legit.no_stats", f32(2, 3, 4), weight(f32(3)),
        weight(f32(3), "bias"), True, 0.1, 1e-5, newer=True,
    )
    c.op("rms_norm", "rms_norm", f32(2, 3, 6), [6], weight(f32(6)))
    c.op("rms_norm_plain", "rms_norm", f32(2, 6), [6])
    c.op("rms_norm_eps", "rms_norm", f32(2, 3, 4), [3, 4], weight(f32(3, 4)), 1e-3)
    c.op("rms_norm_plain_eps", "rms_norm", f32(2, 6), [6], None, 1)
    c.op("rms_norm_bf16", "rms_norm", bf16(2, 8), [8], weight(bf16(8)))
    c.op("rms_norm_f64", "rms_norm", f64(2, 5), [5], weight(f64(5)))
    c.op("safe_softmax", "_safe_softmax", blocked, -1)
    c.op("unsafe_view", "_unsafe_view", f32(2, 6), [3, -1], newer=True, exact=True)
    x = f32(2, 3, 4)
    copies = {"exact": True}
    c.op("view_copy", "view_copy", x, [4, 6], **copies)
    c.op("view_copy_bf16", "view_copy", bf16(2, 6), [-1], **copies)
    c.op("view_copy_dtype", "view_copy.dtype", f32(4), dtype("int32"), **copies)
    c.op("permute_copy", "permute_copy", x, [2, 0, 1], **copies)
    c.op("transpose_copy", "transpose_copy.int", x, 0, -1, **copies)
    c.op("t_copy", "t_copy", f32(2, 3), **copies)
    c.op("expand_copy", "expand_copy", f32(3, 1), [2, -1, 4], **copies)
    c.op("slice_copy", "slice_copy.Tensor", x, 1, 1, None, **copies)
    c.op("select_copy", "select_copy.int", x, 2, -1, **copies)
    c.op("unsqueeze_copy", "unsqueeze_copy", x, -1, **copies)
    c.op("squeeze_copy", "squeeze_copy", f32(1, 3, 1), **copies)
    c.op("squeeze_copy_dim", "squeeze_copy.dim", f32(1, 3, 1), 0, **copies)
    c.op("squeeze_copy_dims", "squeeze_copy.dims", f32(1, 3, 1), [0, 2], **copies)
    c.op("squeeze_dims", "squeeze.dims", f32(1, 3, 1, 1), [0, 1, -1], **copies)
    c.op("split_copy", "split_copy.Tensor", x, 2, 1, **copies)
    c.op("split_with_sizes_copy", "split_with_sizes_copy", x, [1, 2], 1, **copies)
    c.op("unbind_copy", "unbind_copy.int", x, 1, **copies)
    c.op("alias_copy", "alias_copy", x, **copies)
    c.op("detach_copy", "detach_copy", x, **copies)
    c.op("diagonal_copy", "diagonal_copy", x, 0, 1, 2, **copies)
    c.op("as_strided_copy", "as_strided_copy", f32(12), [2, 3], [5, 2], 1, **copies)
    c.op("unfold_copy", "unfold_copy", f32(7), 0, 3, 2, **copies)
    c.op("lift_fresh_copy", "lift_fresh_copy", i16(4), **copies)
    c.op("sym_size", "sym_size.int", x, -1, newer=True)
    c.op("sym_numel", "sym_numel", x, newer=True)
    c.op("unsafe_index", "_unsafe_index.Tensor", x, [None, values([2, 0], "int64")], **copies)
    c.op("unsafe_index_put", "_unsafe_index_put", f32(4), [values([2, 2], "int64")], f32(2), True)
    c.op("prelu_kernel", "_prelu_kernel", f32(2, 3), f32(1, 3))
    c.op("var_float_correction", "var.correction", x, [1], correction=1.0, newer=True)
    c.op("var_no_correction", "var.correction", x, newer=True)
    c.op(
        "std_float_correction", "std.correction", x, [0, 2], correction=0.0, keepdim=True,
        newer=True,
    )
    c.op("var_mean_float_correction", "var_mean.correction", x, [1], correction=0.0, newer=True)
    c.op("any_dims", "any.dims", boolean(2, 3, 2), [0, 2])
    c.op("any_dims_null", "any.dims", f32(2, 2), None, True, attrs={"dim": None})
    c.op("all_dims", "all.dims", boolean(2, 2, 2), [-1, 0], True)
    c.op("nonzero_static", "nonzero_static", values([[0, 3], [4, 0]], "int64"), size=3)

    def metadata(b):
        x = b.input(f32(2, 3))
        op = "_assert_tensor_metadata"
        b.op(op, x, None, None, dtype("float32"), newer=True)
        b.op(op, x, [2, 3], None, dtype("float32"), device=device(), layout=layout(), newer=True)
        return [b.op("relu", x)]

    def on_meta(document, builder):
        document["nodes"][1]["attrs"]["device"] = "meta"

    c.graph("assert_tensor_metadata", metadata)
    c.graph("assert_tensor_metadata_meta", metadata, on_meta)

    def scalars(b):
        x = b.input(f32(2, 3))
        b.op("_assert_scalar", 1, "has to hold")
        b.op("_assert_scalar", True, "holds")
        b.op("_assert_async.msg", b.op("all", b.op("le.Scalar", x, 9)), "small")
        return [b.op("relu", x)]

    c.graph("assert_scalar", scalars)
    c.op("functional_assert_scalar", "_functional_assert_scalar", 3, "positive", f32(2))

    def decomposed_linear(b):
        x = b.input(f32(2, 3, 4))
        flat = b.op("view", x, [6, 4])
        w = b.op("permute", b.weight(f32(5, 4), "layer.weight"), [1, 0])
        y = b.op("addmm", b.weight(f32(5), "layer.bias"), flat, w)
        return [b.op("_unsafe_view", y, [2, 3, 5], newer=True)]

    c.graph("decomposed_linear", decomposed_linear)

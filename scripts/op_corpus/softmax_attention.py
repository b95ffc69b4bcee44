# SPDX-License-Identifier: Apache-2.0
"""Cases: softmax and attention."""

from op_corpus.specs import INF, bf16, boolean, dtype, f32, f64, values


def softmax_attention(c):
    x = f32(2, 3, 5, low=-4, high=4)
    c.op("softmax", "softmax.int", x, -1)
    c.op("softmax_middle", "softmax.int", x, 1)
    c.op("softmax_dtype", "softmax.int", f32(2, 5), 1, dtype("float64"))
    c.op("softmax_full_attrs", "softmax.int", x, 0, full=True)
    c.op("softmax_f64", "softmax.int", f64(2, 5), -1)
    c.op("softmax_bf16", "softmax.int", bf16(3, 7), -1)
    c.op("softmax_bf16_to_f32", "softmax.int", bf16(3, 7), -1, dtype("float32"))
    c.op("softmax_0d", "softmax.int", f32(), 0)
    c.op("softmax_empty", "softmax.int", f32(0, 4), 1)
    c.op("softmax_masked", "softmax.int", values([[1.0, -INF, 2.0], [-INF, -INF, 0.0]]), 1)
    c.op("softmax_all_masked", "softmax.int", values([[-INF, -INF], [1.0, 2.0]]), 1)
    c.op("softmax_large", "softmax.int", values([[1e4, 1e4 + 1, -1e4]]), 1)
    c.op("softmax_internal", "_softmax", x, -1, False)
    c.op("log_softmax", "log_softmax.int", x, -1)
    c.op("log_softmax_dim0", "log_softmax.int", x, 0)
    c.op("log_softmax_bf16", "log_softmax.int", bf16(3, 7), -1)
    c.op("log_softmax_internal", "_log_softmax", f64(3, 4), 1, False)
    c.op(
        "masked_softmax", "_masked_softmax", f32(2, 4), boolean(2, 4), 1, 1, outputs=[0]
    )
    q, k, v = f32(1, 2, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4)
    c.op("attention_113", "_scaled_dot_product_attention", q, k, v)
    c.op("attention_113_weights", "_scaled_dot_product_attention", q, k, v, f32(3, 5), 0.0, True)
    c.op("attention_113_causal", "_scaled_dot_product_attention", q, k, v, None, 0, True, True)
    # query, key and value are one tensor in self-attention
    def multi_head(b):
        x = b.input(f32(2, 3, 4))
        w_in, b_in = b.weight(f32(12, 4), "qkv_weight"), b.weight(f32(12), "qkv_bias")
        w_out, b_out = b.weight(f32(4, 4), "proj_weight"), b.weight(f32(4), "proj_bias")
        op = "_native_multi_head_attention"
        return b.op(op, x, x, x, 4, 2, w_in, b_in, w_out, b_out, None, True)

    c.graph("native_multi_head", multi_head, atol=1e-5)

    def written_out(b, kind):
        q, k, v = (b.input(kind(2, 2, 3, 4), name) for name in ("q", "k", "v"))
        scores = b.op("matmul", q, b.op("transpose.int", k, -2, -1))
        scores = b.op("mul.Tensor", scores, 0.5)
        mask = b.op("full", [3, 3], -INF)
        scores = b.op("add.Tensor", scores, b.op("triu", mask, 1))
        weights = b.op("softmax.int", scores, -1)
        return [weights, b.op("matmul", weights, v)]

    c.graph("written_out", lambda b: written_out(b, f32))
    c.graph("written_out_f64", lambda b: written_out(b, f64))

# SPDX-License-Identifier: Apache-2.0
"""Cases: embedding."""

from op_corpus.specs import bf16, f32, f64, i32, i64, values, weight


def embedding(c):
    table, rows = weight(f32(7, 4)), i64(2, 3, low=0, high=7)
    c.op("embedding", "embedding", table, rows)
    c.op("embedding_padding", "embedding", table, rows, 3)
    c.op("embedding_full_attrs", "embedding", table, rows, full=True)
    c.op("embedding_i32", "embedding", table, i32(5, low=0, high=7))
    c.op("embedding_0d", "embedding", table, values(5, "int64"))
    c.op("embedding_empty", "embedding", table, i64(0, low=0, high=7))
    c.op("embedding_bf16", "embedding", weight(bf16(7, 4)), rows, exact=True)
    c.op("embedding_f64", "embedding", weight(f64(7, 4)), rows, exact=True)
    c.op("embedding_renorm", "embedding_renorm_", f32(7, 4), values([1, 2, 2], "int64"), 1.0, 2.0)
    flat, offsets = i64(6, low=0, high=7), values([0, 2, 5], "int64")
    bag = "embedding_bag"
    c.op("bag_sum", bag, table, flat, offsets, outputs=[0])
    c.op("bag_mean", bag, table, flat, offsets, False, 1, outputs=[0])
    c.op("bag_max", bag, table, flat, offsets, False, 2, outputs=[0])
    c.op("bag_weighted", bag, table, flat, offsets, False, 0, False, f32(6), outputs=[0])
    c.op(
        "bag_last_offset", bag, table, flat, values([0, 2, 5, 6], "int64"), False, 0, False, None,
        True, outputs=[0],
    )
    c.op("bag_empty_bag", bag, table, flat, values([0, 0, 4], "int64"), False, 1, outputs=[0])
    c.op(
        "bag_padding", "embedding_bag.padding_idx", table, values([1, 2, 2, 3], "int64"),
        values([0, 2], "int64"), False, 0, False, None, False, 2, outputs=[0],
    )
    c.op("bag_internal", "_embedding_bag", table, flat, offsets, outputs=[0])
    c.op("bag_forward_only", "_embedding_bag_forward_only", table, flat, offsets, outputs=[0])

    def two_tables(b):
        tokens = b.input(rows, "tokens")
        words = b.op("embedding", b.weight(f32(7, 4), "words.weight"), tokens, -1)
        places = b.op("arange", 3)
        places = b.op("embedding", b.weight(f32(5, 4), "places.weight"), places)
        return [b.op("add.Tensor", words, places)]

    c.graph("words_and_places", two_tables)

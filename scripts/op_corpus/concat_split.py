# SPDX-License-Identifier: Apache-2.0
"""Cases: concatenations and splits."""

from op_corpus.specs import bf16, boolean, f32, i64, u8, values


def concat_split(c):
    x = f32(2, 7, 3)
    c.op("cat", "cat", [f32(2, 3), f32(2, 1), f32(2, 4)], 1)
    c.op("cat_default_dim", "cat", [f32(2, 3), f32(1, 3)])
    c.op("cat_negative", "cat", [f32(2, 3), f32(2, 2)], -1)
    c.op("cat_one", "cat", [f32(2, 3)], 1)
    c.op("cat_legacy_empty", "cat", [f32(2, 3), f32(0), f32(1, 3)], 0)
    c.op("cat_zero_size", "cat", [f32(2, 0), f32(2, 3)], 1)
    c.op("cat_bf16", "cat", [bf16(3), bf16(2)])
    c.op("cat_i64", "cat", [i64(3), i64(2)])
    c.op("cat_bool", "cat", [boolean(3), boolean(2)])
    c.op("cat_u8", "cat", [u8(3), u8(2)])
    c.op("cat_promotes", "cat", [i64(3), f32(2)])
    c.op("cat_no_sizes", "cat", [f32(1, 2), f32(3, 2)], drop=("_tensor_list_sizes",))
    c.op("cat_channels", "cat", [f32(1, 3, 4, 4), f32(1, 5, 4, 4)], 1)
    c.op("concat", "concat", [f32(2), f32(3)])
    c.op("stack", "stack", [f32(2, 3), f32(2, 3)], 1)
    c.op("stack_end", "stack", [f32(2), f32(2), f32(2)], -1)
    c.op("stack_0d", "stack", [f32(), f32()])
    c.op("hstack", "hstack", [f32(2, 1), f32(2, 2)])
    c.op("vstack", "vstack", [f32(3), f32(2, 3)])
    c.op("dstack", "dstack", [f32(3), f32(3)])
    c.op("column_stack", "column_stack", [f32(3), f32(3, 2)])
    c.op("block_diag", "block_diag", [f32(2, 2), f32(1, 3)])
    c.op("cartesian_prod", "cartesian_prod", [i64(2), i64(3)])
    c.op("split", "split.Tensor", x, 3, 1)
    c.op("split_default_dim", "split.Tensor", f32(4, 2), 2)
    c.op("split_some_read", "split.Tensor", x, 2, 1, outputs=[3, 1])
    c.op("split_bf16", "split.Tensor", bf16(6), 4)
    c.op("split_sizes_overload", "split.sizes", x, [3, 4], 1)
    c.op("split_with_sizes", "split_with_sizes", x, [2, 0, 5], 1)
    c.op("split_with_sizes_negative", "split_with_sizes", x, [1, 2], -1)
    c.op("unsafe_split", "unsafe_split.Tensor", x, 4, 1)
    c.op("chunk", "chunk", x, 3, 1)
    c.op("chunk_fewer", "chunk", f32(5), 4)
    c.op("chunk_i64", "chunk", i64(2, 4), 2, -1)
    c.op("unbind", "unbind.int", f32(3, 2))
    c.op("unbind_last", "unbind.int", f32(2, 3), -1)
    c.op("unbind_1d", "unbind.int", f32(3))
    c.op("tensor_split", "tensor_split.sections", f32(7), 3)
    c.op("tensor_split_indices", "tensor_split.indices", x, [1, 4], 1)
    c.op(
        "tensor_split_by_tensor", "tensor_split.tensor_indices_or_sections", f32(7),
        values([2, 5], "int64"),
    )
    c.op("hsplit", "hsplit.int", f32(2, 6), 3)
    c.op("meshgrid", "meshgrid", [f32(2), f32(3)])
    c.op("meshgrid_xy", "meshgrid.indexing", [f32(2), f32(3)], indexing="xy")
    c.op("combinations", "combinations", f32(4), 2)

    def rejoined(b):
        parts = b.op("split.Tensor", b.input(x), 3, 1)
        return [b.op("cat", parts[::-1], 1), b.op("cat", [parts[0], parts[0]], 2)]

    c.graph("cat_of_parts", rejoined)

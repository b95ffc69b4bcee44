# SPDX-License-Identifier: Apache-2.0
"""Cases: indexing."""

from op_corpus.specs import INF, bf16, boolean, f32, i64, values


def indexing(c):
    x, i, j = f32(4, 5, 3), values([3, 0, 0], "int64"), values([1, 4, -1], "int64")
    c.op("select", "select.int", x, 1, 2)
    c.op("select_negative", "select.int", x, -1, -2)
    c.op("select_bf16", "select.int", bf16(3, 4), 0, 1)
    c.op("select_1d", "select.int", i64(4), 0, 3)
    c.op("slice_defaults", "slice.Tensor", x)
    c.op("slice", "slice.Tensor", x, 1, 1, 4)
    c.op("slice_step", "slice.Tensor", x, 1, 0, 9223372036854775807, 2)
    c.op("slice_null_start", "slice.Tensor", x, 0, None, 2)
    c.op("slice_negative", "slice.Tensor", x, -2, -3, -1)
    c.op("slice_empty", "slice.Tensor", x, 0, 3, 1)
    c.op("slice_bool", "slice.Tensor", boolean(6), 0, 2)
    c.op("slice_full_attrs", "slice.Tensor", x, 1, full=True)
    c.op("index_first", "index.Tensor", x, [i])
    c.op("index_none_first", "index.Tensor", x, [None, j])
    c.op("index_two", "index.Tensor", x, [i, j])
    c.op("index_around_none", "index.Tensor", x, [i, None, values([0, 2, 1], "int64")])
    c.op("index_nones_before", "index.Tensor", x, [None, None, values([2, 0], "int64")])
    c.op("index_none_between_4d", "index.Tensor", f32(2, 4, 2, 5), [None, i, None, j])
    c.op("index_trailing_none", "index.Tensor", x, [None, j, None])
    c.op(
        "index_broadcast", "index.Tensor", x, [values([[0], [2]], "int64"), values([1, 3], "int64")]
    )
    c.op("index_0d", "index.Tensor", x, [values(2, "int64")])
    c.op("index_i64", "index.Tensor", i64(4, 2), [i])
    c.op("index_bool_data", "index.Tensor", boolean(4, 2), [None, values([1, 0, 0], "int64")])
    c.op("index_empty", "index.Tensor", x, [i64(0, low=0, high=1)])
    c.op("gather", "gather", x, 1, i64(4, 2, 3, low=0, high=5))
    c.op(
        "gather_sparse", "gather", x, -1, i64(4, 5, 1, low=0, high=3), sparse_grad=False, full=True
    )
    c.op("gather_empty", "gather", f32(3, 4), 1, i64(3, 0, low=0, high=1))
    rows = values([[0, 2, 1], [1, 0, 2]], "int64")
    c.op("scatter_src", "scatter.src", f32(3, 3), 0, rows, f32(2, 3))
    c.op("scatter_value", "scatter.value", f32(3, 3), 1, rows, 7)
    c.op("scatter_value_inf", "scatter.value", f32(3, 3), 0, rows, -INF)
    c.op(
        "scatter_reduce_string", "scatter.reduce", f32(3, 3), 0, rows, f32(2, 3), reduce="multiply"
    )
    c.op("scatter_value_reduce", "scatter.value_reduce", f32(3, 3), 0, rows, 2.5, reduce="add")
    c.op("scatter_in_place", "scatter_.src", f32(3, 3), 0, rows, f32(2, 3))
    c.op(
        "scatter_add", "scatter_add", f32(3, 3), 0, values([[0, 2, 1], [0, 0, 1]], "int64"),
        f32(2, 3),
    )
    for mode in ("sum", "prod", "mean", "amax", "amin"):
        c.op(
            f"scatter_reduce_{mode}", "scatter_reduce.two", f32(3, 3), 0,
            values([[0, 2, 1], [0, 0, 1]], "int64"), f32(2, 3), mode, include_self=mode == "sum",
        )
    c.op("index_put", "index_put", x, [i], f32(3, 5, 3), exact=True)
    c.op("index_put_accumulate", "index_put", x, [i, j], f32(3, 3), True)
    c.op("index_put_none", "index_put", x, [None, j], f32(3, 3))
    c.op("index_put_mask", "index_put", f32(3, 4), [boolean(3, 4)], values(9.0))
    c.op(
        "index_put_in_place", "index_put_", x,
        [values([1, 2], "int64"), None, values([0, 2], "int64")], f32(2, 5),
    )
    c.op(
        "index_put_impl", "_index_put_impl_", i64(6), [values([1, 4], "int64")], i64(2), False, True
    )
    c.op("index_select", "index_select", x, 1, values([4, 0, 4], "int64"))
    c.op("index_select_i32", "index_select", x, -1, values([2, 0], "int32"))
    c.op("index_select_bf16", "index_select", bf16(4, 3), 0, i, exact=True)
    c.op("masked_fill", "masked_fill.Scalar", x, boolean(5, 3), -INF)
    c.op("masked_fill_int", "masked_fill.Scalar", i64(4), boolean(4), -1)
    c.op("masked_fill_tensor", "masked_fill.Tensor", x, boolean(4, 1, 1), values(2.5))
    c.op("masked_fill_in_place", "masked_fill_.Scalar", x, boolean(4, 5, 3), 0)
    c.op("masked_scatter", "masked_scatter", f32(3, 4), boolean(3, 4), f32(12))
    c.op("take", "take", x, values([[0, 59], [-1, 7]], "int64"))
    c.op("take_along_dim", "take_along_dim", f32(3, 4), i64(3, 2, low=0, high=4), 1)
    c.op("put", "put", f32(3, 4), values([0, 5], "int64"), f32(2), True)
    c.op("index_copy", "index_copy", x, 0, values([3, 1], "int64"), f32(2, 5, 3))
    c.op("index_add", "index_add", x, 1, values([0, 0, 4], "int64"), f32(4, 3, 3))
    c.op("index_add_alpha", "index_add", x, 0, values([2], "int64"), f32(1, 5, 3), alpha=-0.5)
    c.op("index_fill", "index_fill.int_Scalar", x, 2, values([0, 2], "int64"), 1.25)
    c.op(
        "index_reduce", "index_reduce", f32(3, 2), 0, values([0, 2, 0], "int64"), f32(3, 2), "amax",
        include_self=False,
    )
    c.op("select_scatter", "select_scatter", x, f32(4, 3), 1, 2)
    c.op("slice_scatter", "slice_scatter", x, f32(4, 2, 3), 1, 0, 4, 2)
    c.op("diagonal_scatter", "diagonal_scatter", f32(3, 3), f32(3))
    c.op("as_strided_scatter", "as_strided_scatter", f32(9), f32(3), [3], [4])
    c.op("bucketize", "bucketize.Tensor", f32(2, 3), values([-1.0, 0.0, 1.0]), out_int32=True)
    c.op(
        "searchsorted", "searchsorted.Tensor", values([[1.0, 2.0, 3.0], [0.0, 0.5, 9.0]]),
        f32(2, 4), right=True,
    )
    c.op(
        "searchsorted_side", "searchsorted.Tensor", values([1.0, 2.0, 3.0]), values([2.0, 0.0]),
        side="right",
    )
    c.op(
        "searchsorted_sorter", "searchsorted.Tensor", values([3.0, 1.0, 2.0]), values([1.5, 5.0]),
        sorter=values([1, 2, 0], "int64"),
    )
    c.op("fill_diagonal", "fill_diagonal_", f32(3, 4), 5.0)

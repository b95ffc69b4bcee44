# SPDX-License-Identifier: Apache-2.0
"""Cases: reduction."""

from op_corpus.specs import INF, NAN, bf16, boolean, dtype, f32, f64, i32, i64, positive, u8, values


def reduction(c):
    x = f32(2, 3, 4)
    names = "sum mean prod max min any all argmax argmin std var median nansum count_nonzero"
    for name in names.split():
        kind = boolean(2, 3) if name in ("any", "all") else x
        op = name
        c.op(name, op, kind)
    for name, overload in (
        ("sum", "dim_IntList"), ("mean", "dim"), ("amax", "default"), ("amin", "default"),
        ("std", "dim"), ("var", "dim"), ("logsumexp", "default"),
    ):
        op = f"{name}.{overload}"
        c.op(name + "_dim", op, x, [1])
        c.op(name + "_dims", op, x, [0, -1])
        keep = {"keepdim": True}
        c.op(name + "_keepdim", op, x, [-1], **keep)
    for name in "max min prod any all median cummax cummin mode".split():
        overload = {"prod": "dim_int", "cummax": "default", "cummin": "default", "mode": "default"}
        op = f"{name}.{overload.get(name, 'dim')}"
        c.op(name + "_of_dim", op, boolean(3, 4) if name in ("any", "all") else f32(3, 4), 1)
    c.op("sum_one_int", "sum.dim_IntList", x, 1, attrs={"dim": 1})
    c.op("sum_dim_null", "sum.dim_IntList", x, None, True, attrs={"dim": None})
    c.op("sum_full_attrs", "sum.dim_IntList", x, [1], full=True)
    c.op("sum_no_dims", "sum.dim_IntList", x, [])
    c.op("sum_dtype", "sum.dim_IntList", x, [0], dtype=dtype("float64"))
    c.op("sum_all_dtype", "sum", i32(5), dtype=dtype("int32"))
    c.op("sum_i32", "sum", i32(5))
    c.op("sum_bool", "sum.dim_IntList", boolean(3, 4), [1])
    c.op("sum_u8", "sum", u8(6))
    c.op("sum_empty", "sum.dim_IntList", f32(0, 3), [0])
    c.op("sum_0d", "sum", f32())
    c.op("sum_f64", "sum.dim_IntList", f64(3, 5), [1])
    c.op("sum_bf16", "sum.dim_IntList", bf16(3, 5), [1])
    c.op("mean_bf16", "mean.dim", bf16(2, 3, 4, 4), [2, 3])
    c.op("mean_dtype", "mean.dim", i64(3, 4), [1], dtype=dtype("float32"))
    c.op("mean_spatial", "mean.dim", f32(2, 3, 4, 4), [-1, -2], True)
    c.op("mean_full_attrs", "mean.dim", x, [-1], full=True)
    c.op("mean_of_nothing", "mean", f32(0))
    c.op("prod_i64", "prod", i64(5, low=1, high=5))
    c.op("max_i64", "max", i64(6))
    c.op("max_dim_keepdim", "max.dim", x, -2, True)
    c.op("max_dim_indices", "max.dim", x, 2, outputs=[1])
    c.op("max_nan", "max", values([1.0, NAN, 3.0]))
    c.op("max_other", "max.other", x, f32(3, 1))
    c.op("min_dim_bf16", "min.dim", values([[3.0, 1.0, 2.0], [-1.0, 5.0, 0.5]], "bfloat16"), 1)
    c.op("amax_no_dims", "amax", x)
    c.op("argmax_dim", "argmax", x, 1)
    c.op("argmax_keepdim", "argmax", x, -1, True)
    c.op("argmax_flat_null", "argmax", x, full=True)
    c.op("argmin_i64", "argmin", values([[3, 1, 2], [9, 8, 0]], "int64"), 1)
    c.op("any_f32", "any.dim", values([[0.0, 0.0], [0.0, 2.0]]), 1, True)
    c.op("all_u8", "all", u8(4))
    c.op("all_empty", "all.dim", boolean(3, 0), 1)
    c.op("std_biased", "std", x, False)
    c.op("std_dim_biased", "std.dim", x, [1, 2], False, True)
    c.op("var_correction", "var.correction", x, [1], correction=0)
    c.op("std_correction", "std.correction", x, [0, 2], correction=2, keepdim=True)
    c.op("var_correction_all", "var.correction", f64(3, 4))
    c.op("var_mean", "var_mean.dim", x, [1])
    c.op("var_mean_correction", "var_mean.correction", x, [1], correction=0, keepdim=True)
    c.op("std_mean", "std_mean", x, False)
    c.op("norm_scalar", "norm.Scalar", x)
    c.op("norm_dim", "norm.ScalarOpt_dim", x, 2, [1], True)
    c.op("norm_inf", "norm.ScalarOpt_dim", x, INF, [0, 1])
    c.op("norm_null", "norm.ScalarOpt_dim", x, None, [2])
    c.op("norm_dtype", "norm.ScalarOpt_dim_dtype", x, 1, [1], False, dtype=dtype("float64"))
    c.op("vector_norm", "linalg_vector_norm", x)
    c.op("vector_norm_dim", "linalg_vector_norm", x, -INF, [1], True)
    c.op("matrix_norm", "linalg_matrix_norm.str_ord", x, "fro", [-2, -1])
    c.op("frobenius_norm", "frobenius_norm.dim", x, [1, 2])
    c.op("dist", "dist", x, f32(2, 3, 4), 3)
    c.op("cumsum", "cumsum", x, 1)
    c.op("cumsum_dtype", "cumsum", i32(2, 4), -1, dtype=dtype("float64"))
    c.op("cumsum_bool", "cumsum", boolean(6), 0)
    c.op("cumprod", "cumprod", x, 2)
    c.op("cumsum_in_place", "cumsum_", x, 0)
    c.op("logcumsumexp", "logcumsumexp", x, 1)
    c.op("nanmedian", "nanmedian", values([1.0, NAN, 3.0, 2.0]))
    c.op("nanmean", "nanmean", values([[1.0, NAN], [3.0, 2.0]]), [1])
    c.op("kthvalue", "kthvalue", f32(3, 5), 2)
    c.op("quantile", "quantile", f32(3, 5), values([0.25, 0.5]), 1, interpolation="lower")
    c.op("quantile_scalar", "quantile.scalar", f32(3, 5), 0.75, 0, True)
    c.op("count_nonzero_dim", "count_nonzero.dim_IntList", i64(3, 4, low=0, high=2), [0])
    c.op("aminmax", "aminmax", x)
    c.op("aminmax_dim", "aminmax", x, dim=1, keepdim=True)
    c.op("diff", "diff", f32(2, 5))
    c.op("diff_append", "diff", f32(2, 5), 1, -1, None, f32(2, 2))
    c.op("diff_prepend", "diff", f32(2, 5), 2, 1, f32(2, 1))
    c.op("trapezoid", "trapezoid.x", f32(2, 5), f32(5))
    c.op("corrcoef", "corrcoef", f32(3, 6))
    c.op(
        "cov_weights", "cov", f32(2, 4), correction=0, aweights=positive(4),
        attrs={"_none_args": ["fweights"]},
    )
    c.op("histc", "histc", f32(20), 5, -2, 2)
    c.op("bincount", "bincount", values([0, 2, 2, 3], "int64"), None, 6)
    c.op("bincount_weights", "bincount", values([0, 2, 2, 3], "int64"), f32(4))

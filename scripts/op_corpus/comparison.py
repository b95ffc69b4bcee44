# SPDX-License-Identifier: Apache-2.0
"""Cases: comparison."""

from op_corpus.specs import INF, NAN, bf16, boolean, f32, f64, i64, u8, values


def comparison(c):
    x, y = values([[1.0, 2.0, NAN], [-INF, INF, 0.0]]), values([[1.0, 3.0, NAN], [-INF, 1.0, -0.0]])
    for name in "eq ne lt gt le ge".split():
        c.op(name, f"{name}.Tensor", x, y)
        c.op(name + "_scalar", f"{name}.Scalar", f32(2, 3), 0.25)
    c.op("eq_infinity", "eq.Scalar", x, INF)
    c.op("eq_bool", "eq.Tensor", boolean(6), boolean(6))
    c.op("eq_i64_f32", "eq.Tensor", i64(6), f32(6))
    c.op("eq_bf16", "eq.Tensor", values([1.0, 2.0], "bfloat16"), values([1.0, 2.5], "bfloat16"))
    c.op("eq_0d", "eq.Tensor", i64(), i64())
    c.op("ne_empty", "ne.Tensor", f32(0, 2), f32(1, 2))
    c.op("lt_broadcast", "lt.Tensor", f32(3, 1), f32(4))
    c.op("gt_u8", "gt.Scalar", u8(6), 100)
    c.op("ge_f64", "ge.Tensor", f64(5), f64(5))
    c.op("gt_i64_half", "gt.Scalar", i64(6), 0.5)
    c.op("lt_in_place", "lt_.Scalar", f32(4), 0)
    c.op("isnan", "isnan", x)
    c.op("isinf", "isinf", x)
    c.op("isfinite", "isfinite", x)
    c.op("isposinf", "isposinf", x)
    c.op("isclose", "isclose", values([1.0, 1.0, NAN]), values([1.0, 1.001, NAN]), 0.01, 0, True)
    c.op("isin", "isin.Tensor_Tensor", i64(8), i64(3))
    c.op("isin_scalar", "isin.Tensor_Scalar", i64(8), 2, invert=True)
    c.op("where", "where.self", boolean(2, 3), f32(2, 3), f32(3))
    c.op("where_number", "where.ScalarOther", boolean(2, 3), f32(2, 3), 0.5)
    c.op("where_number_first", "where.ScalarSelf", boolean(4), -INF, f32(4))
    c.op("where_numbers", "where.Scalar", boolean(4), 1, 0)
    c.op("where_0d", "where.self", boolean(3, 1), f32(), f32(2))
    c.op("where_i64", "where.self", boolean(4), i64(4), i64(1))
    c.op("where_bf16", "where.self", boolean(4), bf16(4), bf16(4), exact=True)
    c.op("where_bool", "where.self", boolean(4), boolean(4), boolean(4))

# SPDX-License-Identifier: Apache-2.0
"""Cases: activation."""

from op_corpus.specs import INF, NAN, bf16, f32, f64, i32, i64, values, weight


def activation(c):
    x = f32(3, 5, low=-4, high=4)
    for name in (
        "relu relu6 leaky_relu gelu silu mish sigmoid tanh hardtanh hardswish hardsigmoid elu "
        "celu selu softplus softshrink hardshrink log_sigmoid"
    ).split():
        c.op(name, name, x)
    for name in (
        "relu_ relu6_ leaky_relu_ gelu_ silu_ mish_ sigmoid_ tanh_ hardtanh_ hardswish_ "
        "hardsigmoid_ elu_ celu_ selu_"
    ).split():
        c.op(name + "in_place", name, x)
    for name in "relu gelu silu sigmoid tanh hardswish elu leaky_relu".split():
        c.op(name + "_bf16", name, bf16(2, 9, low=-4, high=4))
    for name in "gelu silu softplus tanh".split():
        c.op(name + "_f64", name, f64(7, low=-4, high=4))
    c.op("relu_i64", "relu", i64(7))
    c.op("relu_0d", "relu", f32())
    c.op("relu_nan", "relu", values([NAN, -INF, INF, -0.0, 0.0, -1.0, 3.0]))
    c.op("relu_rank_6", "relu", f32(1, 2, 1, 2, 1, 2))
    c.op("sigmoid_i32", "sigmoid", i32(7))
    c.op("sigmoid_extreme", "sigmoid", values([-200.0, -30.0, 0.0, 30.0, 200.0, INF, -INF, NAN]))
    c.op("tanh_extreme", "tanh", values([-200.0, -9.0, 1e-20, 9.0, 200.0, INF, -INF, NAN]))
    c.op("gelu_empty", "gelu", f32(0, 3))
    c.op("gelu_tanh", "gelu", x, approximate="tanh")
    c.op("gelu_none_given", "gelu", x, full=True)
    c.op("gelu_tanh_bf16", "gelu", bf16(9), approximate="tanh")
    c.op("leaky_relu_slope", "leaky_relu", x, 0.25)
    c.op("leaky_relu_int_slope", "leaky_relu", x, 2)
    c.op("leaky_relu_negative_slope", "leaky_relu", x, -0.5)
    c.op("hardtanh_bounds", "hardtanh", x, 0, 6)
    c.op("hardtanh_i64", "hardtanh", i64(9), -2, 4)
    c.op("elu_alpha", "elu", x, 0.5)
    c.op("elu_scales", "elu", x, 1.5, 1.0507, 0.75)
    c.op("celu_alpha", "celu", x, 2.0)
    c.op("softplus_beta", "softplus", x, 2, 3)
    c.op("softshrink_lambda", "softshrink", x, 1.5)
    c.op("hardshrink_lambda", "hardshrink", x, 0.75)
    c.op("threshold", "threshold", x, 0.5, -7.0)
    c.op("threshold_in_place", "threshold_", x, 0, INF)
    c.op("prelu", "prelu", f32(2, 3, 4), weight(f32(3)))
    c.op("prelu_one", "prelu", f32(2, 3), weight(f32(1)))
    c.op("rrelu_eval", "rrelu", x)
    c.op("rrelu_eval_bounds", "rrelu", x, 0.25, 0.5, full=True)
    c.op("glu", "glu", f32(2, 6))
    c.op("glu_dim", "glu", f32(4, 3), 0)
    c.op("logit", "logit", f32(6, low=0.1, high=0.9))
    c.op("logit_eps", "logit", values([0.0, 0.25, 1.0]), 0.125)
    c.op("log_sigmoid_forward", "log_sigmoid_forward", x, outputs=[0])

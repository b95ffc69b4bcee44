# SPDX-License-Identifier: Apache-2.0
"""Cases: ops that may be fused into a convolution's kernel."""

from op_corpus.specs import bf16, dtype, f32, positive


def after_convolution(c):
    """Readers of a convolution's result, which is not a plain tensor if channels are blocked."""

    def case(name, follow, kind=f32, channels=19, spatial=(4, 5), batch=2):
        def build(b):
            # Small weights: 1.13 may accumulate in bfloat16 itself, which costs a few percent.
            size = 2.0 if kind is f32 else 0.25
            w = b.weight(kind(channels, 3, 3, 3, low=-size, high=size), "conv.weight")
            y = b.op("conv2d", b.input(kind(batch, 3, *spatial)), w, None, 1, 1)
            result = follow(b, y)
            return result if isinstance(result, list) else [result]

        rtol, atol = (1e-5, 1e-5) if kind is f32 else (2e-2, 4e-2)
        c.graph(name, build, rtol=rtol, atol=atol)

    def one(op, *args, **kwargs):
        return lambda b, y: b.op(op, y, *args, **kwargs)

    follows = {
        "permute": one("permute", [0, 2, 3, 1]),
        "transpose": one("transpose.int", 1, 3),
        "view": one("view", [2, 19, -1]),
        "flatten": one("flatten.using_ints", 1),
        "flatten_batch": one("flatten.using_ints", 0, 1),
        "unsqueeze": one("unsqueeze", 2),
        "slice_channels": one("slice.Tensor", 1, 3, 18),
        "slice_channels_step": one("slice.Tensor", 1, 0, 19, 3),
        "slice_aligned": one("slice.Tensor", 1, 16, 19),
        "slice_rows": one("slice.Tensor", 2, 1, 3),
        "slice_columns_step": one("slice.Tensor", 3, 0, 9223372036854775807, 2),
        "select_channel": one("select.int", 1, 17),
        "select_batch": one("select.int", 0, 1),
        "split": one("split.Tensor", 8, 1),
        "split_sizes": one("split_with_sizes", [16, 3], 1),
        "chunk": one("chunk", 2, 1),
        "unbind": lambda b, y: [b.op("unbind.int", y, 0)[1]],
        "expand": lambda b, y: b.op("expand", b.op("unsqueeze", y, 0), [2, -1, -1, -1, -1]),
        "cat_channels": lambda b, y: b.op("cat", [y, b.op("relu", y)], 1),
        "cat_with_input": lambda b, y: b.op("cat", [b.inputs[0], y, b.inputs[0]], 1),
        "cat_batch": lambda b, y: b.op("cat", [y, y], 0),
        "softmax_channels": one("softmax.int", 1),
        "log_softmax_columns": one("log_softmax.int", -1),
        "mean_spatial": one("mean.dim", [2, 3], True),
        "mean_channels": one("mean.dim", [1]),
        "max_pool": one("max_pool2d", [3, 3], [2, 2], [1, 1], 1, True),
        "avg_pool": one("avg_pool2d", [3, 3], [2, 2], [1, 1], True, False),
        "adaptive": one("adaptive_avg_pool2d", [1, 1]),
        "adaptive_uneven": one("adaptive_avg_pool2d", [3, 2]),
        "layer_norm": one("layer_norm", [4, 5]),
        "layer_norm_channels": one("layer_norm", [19, 4, 5]),
        "group_norm": one("group_norm", 1),
        "scale_shift": lambda b, y: b.op(
            "add.Tensor", b.op("mul.Tensor", y, b.weight(f32(19, 1, 1), "scale")),
            b.input(f32(1, 19, 1, 1), "shift"),
        ),
        "add_rows": lambda b, y: b.op("add.Tensor", y, b.input(f32(5), "row")),
        "add_number": one("add.Tensor", 0.5, alpha=-2),
        "number_minus": one("rsub.Scalar", 1.0),
        "divide": lambda b, y: b.op(
            "div.Tensor", b.input(f32(19, 1, 5), "top"), b.op("add.Scalar", b.op("abs", y), 1.0)
        ),
        "maximum": lambda b, y: b.op("maximum", y, b.op("neg", y)),
        "sigmoid": one("sigmoid"),
        "linear": lambda b, y: b.op(
            "linear", y, b.weight(f32(7, 5), "linear.weight"), b.weight(f32(7), "linear.bias")
        ),
        "linear_on_channels": lambda b, y: b.op(
            "linear", b.op("permute", y, [0, 2, 3, 1]), b.weight(f32(7, 19), "linear.weight")
        ),
        "matmul": lambda b, y: b.op("matmul", y, b.op("transpose.int", y, 2, 3)),
        "batch_norm_relu": lambda b, y: b.op(
            "relu_",
            b.op(
                "batch_norm", y, b.weight(f32(19), "w"), b.weight(f32(19), "b"),
                b.weight(f32(19), "m"), b.weight(positive(19), "v"), False, 0.1, 1e-5, True,
            ),
        ),
        "to_bf16_and_back": lambda b, y: b.op(
            "to.dtype", b.op("to.dtype", y, dtype("bfloat16")), dtype("float32")
        ),
        "dropout_clone": lambda b, y: b.op("clone", b.op("dropout", y, 0.5, False)),
        "in_place_two_readers": lambda b, y: [b.op("relu_", y), b.op("neg", y), y],
        "residual": lambda b, y: [
            b.op(
                "relu_",
                b.op(
                    "add_.Tensor", b.op("conv2d", y, b.weight(f32(19, 19, 1, 1), "second.weight")),
                    y,
                ),
            ),
            y,
        ],
        "depthwise": lambda b, y: b.op(
            "conv2d", y, b.weight(f32(19, 1, 3, 3), "second.weight"),
            b.weight(f32(19), "second.bias"), 2, 1, 1, 19,
        ),
        "transposed": lambda b, y: b.op(
            "conv_transpose2d.input", y, b.weight(f32(19, 2, 2, 2), "second.weight"), None, 2
        ),
        "on_cpu_between": lambda b, y: b.op("relu", b.op("cumsum", b.op("relu", y), 1)),
        "embedding_of_argmax": lambda b, y: b.op(
            "embedding", b.weight(f32(19, 3), "table"), b.op("argmax", y, 1)
        ),
    }
    for name, follow in follows.items():
        case(name, follow)
    for name in (
        "permute slice_channels slice_columns_step select_channel split cat_channels "
        "cat_with_input softmax_channels mean_spatial max_pool avg_pool adaptive layer_norm "
        "add_number number_minus maximum sigmoid matmul dropout_clone in_place_two_readers"
    ).split():
        case(name + "_bf16", follows[name], bf16)
    for channels in (1, 7, 16, 33):
        case(f"relu_of_{channels}_channels", follows["in_place_two_readers"], channels=channels)
        case(f"flatten_of_{channels}_channels", follows["flatten"], channels=channels)
    case("one_by_one", follows["flatten"], spatial=(1, 1))
    case("one_image", follows["mean_channels"], batch=1)

    def after_linear(name, follow):
        def build(b):
            y = b.op("linear", b.input(f32(2, 5, 6)), b.weight(f32(8, 6)), b.weight(f32(8), "bias"))
            result = follow(b, y)
            return result if isinstance(result, list) else [result]

        c.graph("linear_" + name, build, rtol=1e-5, atol=1e-5)

    heads = [2, 5, 2, 4]
    after_linear("heads", lambda b, y: b.op("transpose.int", b.op("view", y, heads), 1, 2))
    after_linear("chunks", lambda b, y: b.op("chunk", y, 3, -1))
    after_linear("last_token", lambda b, y: b.op("select.int", y, 1, -1))
    after_linear("gelu_twice", lambda b, y: [b.op("gelu", y), b.op("gelu", y, approximate="tanh")])
    after_linear("gram", lambda b, y: b.op("bmm", y, b.op("permute", y, [0, 2, 1])))
    after_linear(
        "glued",
        lambda b, y: b.op("cat", [b.op("slice.Tensor", y, 2, *e) for e in ((0, 3), (5, 8))], 2),
    )
    after_linear(
        "expanded",
        lambda b, y: b.op("neg", b.op("expand", b.op("unsqueeze", y, 1), [-1, 3, -1, -1])),
    )
    after_linear(
        "attention", lambda b, y: b.op("scaled_dot_product_attention", y, y, y, is_causal=True)
    )

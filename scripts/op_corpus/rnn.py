# SPDX-License-Identifier: Apache-2.0
"""Cases: rnn."""

from op_corpus.specs import f32, f64, values, weight


def rnn(c):
    def parameters(gates, sizes, hidden, biases=True, directions=1, kind=f32, projection=0):
        result = []

        def add(*shape):
            result.append(weight(kind(*shape, low=-0.6, high=0.6), f"w{len(result)}"))

        for size in [size for size in sizes for _ in range(directions)]:
            add(gates * hidden, size)
            add(gates * hidden, projection or hidden)
            if biases:
                add(gates * hidden)
                add(gates * hidden)
            if projection:
                add(projection, hidden)
        return result

    off = (0.0, False)  # dropout, train
    tol = {"rtol": 1e-5, "atol": 2e-6}
    x, h = f32(4, 2, 3), f32(1, 2, 5)
    c.op("gru", "gru.input", x, h, parameters(3, [3], 5), True, 1, *off, False, False, **tol)
    c.op(
        "gru_no_biases", "gru.input", x, h, parameters(3, [3], 5, False), False, 1, *off, False,
        False, **tol,
    )
    c.op(
        "gru_bidirectional", "gru.input", x, f32(2, 2, 5), parameters(3, [3], 5, directions=2),
        True, 1, *off, True, False, **tol,
    )
    c.op(
        "gru_two_layers_batch_first", "gru.input", x, f32(2, 4, 5), parameters(3, [3, 5], 5), True,
        2, *off, False, True, **tol,
    )
    c.op(
        "gru_int_dropout", "gru.input", x, h, parameters(3, [3], 5), True, 1, *off, False, False,
        attrs={"dropout": 0}, **tol,
    )
    c.op(
        "gru_f64", "gru.input", f64(3, 1, 2), f64(1, 1, 3), parameters(3, [2], 3, kind=f64), True,
        1, *off, False, False,
    )
    c.op(
        "gru_packed", "gru.data", f32(6, 3), values([3, 2, 1], "int64"), f32(1, 3, 5),
        parameters(3, [3], 5), True, 1, *off, False, **tol,
    )
    state = [h, f32(1, 2, 5)]
    c.op("lstm", "lstm.input", x, state, parameters(4, [3], 5), True, 1, *off, False, False, **tol)
    c.op(
        "lstm_no_biases", "lstm.input", x, state, parameters(4, [3], 5, False), False, 1, *off,
        False, False, **tol,
    )
    c.op(
        "lstm_first_output", "lstm.input", x, state, parameters(4, [3], 5), True, 1, *off, False,
        False, outputs=[0], **tol,
    )
    c.op(
        "lstm_states_only", "lstm.input", x, state, parameters(4, [3], 5), True, 1, *off, False,
        False, outputs=[2, 1], **tol,
    )
    c.op(
        "lstm_bidirectional_two_layers", "lstm.input", x, [f32(4, 2, 4), f32(4, 2, 4)],
        parameters(4, [3, 8], 4, directions=2), True, 2, *off, True, False, **tol,
    )
    c.op(
        "lstm_batch_first", "lstm.input", x, [f32(1, 4, 5), f32(1, 4, 5)], parameters(4, [3], 5),
        True, 1, *off, False, True, **tol,
    )
    c.op(
        "lstm_projection", "lstm.input", x, [f32(1, 2, 2), f32(1, 2, 5)],
        parameters(4, [3], 5, projection=2), True, 1, *off, False, False, **tol,
    )
    c.op(
        "lstm_packed", "lstm.data", f32(6, 3), values([3, 2, 1], "int64"),
        [f32(1, 3, 5), f32(1, 3, 5)], parameters(4, [3], 5), True, 1, *off, False, **tol,
    )
    c.op(
        "lstm_f64", "lstm.input", f64(3, 1, 2), [f64(1, 1, 3), f64(1, 1, 3)],
        parameters(4, [2], 3, kind=f64), True, 1, *off, False, False,
    )
    c.op(
        "rnn_tanh", "rnn_tanh.input", x, h, parameters(1, [3], 5), True, 1, *off, False, False,
        **tol,
    )
    c.op(
        "rnn_relu", "rnn_relu.input", x, f32(2, 2, 5), parameters(1, [3, 5], 5), True, 2, *off,
        False, False, **tol,
    )
    cell = (f32(2, 5),)
    w4 = [
        weight(f32(20, 3), "w_ih"), weight(f32(20, 5), "w_hh"), weight(f32(20), "b_ih"),
        weight(f32(20), "b_hh"),
    ]
    w3 = [
        weight(f32(15, 3), "w_ih"), weight(f32(15, 5), "w_hh"), weight(f32(15), "b_ih"),
        weight(f32(15), "b_hh"),
    ]
    c.op("lstm_cell", "lstm_cell", f32(2, 3), [f32(2, 5), f32(2, 5)], *w4, **tol)
    c.op("lstm_cell_no_biases", "lstm_cell", f32(2, 3), [f32(2, 5), f32(2, 5)], *w4[:2], **tol)
    c.op("gru_cell", "gru_cell", f32(2, 3), *cell, *w3, **tol)
    c.op("gru_cell_no_biases", "gru_cell", f32(2, 3), *cell, *w3[:2], **tol)
    c.op(
        "rnn_tanh_cell", "rnn_tanh_cell", f32(2, 3), *cell, f32(5, 3), f32(5, 5), f32(5), f32(5),
        **tol,
    )

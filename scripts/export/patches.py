# SPDX-License-Identifier: Apache-2.0
"""Changes to PyTorch that are made while a model is traced, and undone afterwards."""

import contextlib
import math
import sys

import torch

from export.errors import UserError
from export.places import is_of_model

ATTENTION_SCHEMA = (
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0., bool is_causal=False) -> Tensor"
)

_attention_library = None


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False):
    """aten::scaled_dot_product_attention for a PyTorch that has only its predecessor."""
    if hasattr(torch.ops.aten, "scaled_dot_product_attention"):
        return torch.ops.aten.scaled_dot_product_attention.default(
            query, key, value, attn_mask, dropout_p, is_causal
        )
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        zeros = torch.zeros_like(attn_mask, dtype=query.dtype)
        attn_mask = zeros.masked_fill(attn_mask.logical_not(), -math.inf)
    return torch.ops.aten._scaled_dot_product_attention.default(
        query, key, value, attn_mask, dropout_p, False, is_causal
    )[0]


@contextlib.contextmanager
def patched(*changes):
    """Sets attributes, (object, name, new value) each, and restores the old ones."""
    missing = object()
    saved = [(owner, name, vars(owner).get(name, missing)) for owner, name, _ in changes]
    try:
        for owner, name, new in changes:
            setattr(owner, name, new)
        yield
    finally:
        for owner, name, old in reversed(saved):
            if old is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


class ValuesInPython:
    """What a model reads from tensors in Python: noted in one run, and given again in another, where there are no values."""

    METHODS = ("__int__", "__float__", "__bool__", "__index__", "item", "tolist")

    def __init__(self):
        self.values = []  # (file, line, value)

    @contextlib.contextmanager
    def noted(self):
        def note(place, read):
            self.values.append((*place, read()))
            return self.values[-1][2]

        with self.changed(note):
            yield

    @contextlib.contextmanager
    def given(self):
        left = iter(self.values)

        def give(place, _):
            *noted, value = next(left, (None, None, None))
            if tuple(noted) != place:
                raise UserError("the model reads other values from tensors while it is exported than when it runs")
            return value

        with self.changed(give):
            yield

    @contextlib.contextmanager
    def changed(self, function):
        """With a function in place of reading, where the model itself reads; PyTorch's own code does as before."""

        def method(name):
            original = getattr(torch.Tensor, name)

            def read(tensor, *args):
                frame = sys._getframe(1)
                if not is_of_model(frame.f_code.co_filename):
                    return original(tensor, *args)
                return function((frame.f_code.co_filename, frame.f_lineno), lambda: original(tensor, *args))

            return read

        with patched(*((torch.Tensor, name, method(name)) for name in self.METHODS)):
            yield


@contextlib.contextmanager
def ordinary_attention():
    """Disables the fused transformer kernels of eval mode, which torch.export does not see."""
    if hasattr(torch.backends, "mha"):
        before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(before)
    else:
        # 1.13 has no switch, but takes the ordinary path if a tensor overrides functions. Turning
        # gradients on would work as well, but then some in-place ops on views are refused.
        original = torch.overrides.has_torch_function

        def override(args):
            # The layers ask about all their tensors at once; no other caller asks about so many.
            return len(args) > 5 or original(args)

        with patched((torch.overrides, "has_torch_function", override)):
            yield


@contextlib.contextmanager
def traced_data():
    """Makes `.data` a view that the tracer sees, so that it sees what is written through it."""
    base = torch._C._TensorBase

    def write(tensor, new):
        if new.shape != tensor.shape or new.dtype != tensor.dtype:
            base.data.__set__(tensor, new)
        else:
            base.detach(tensor).copy_(new)

    with patched((torch.Tensor, "data", property(base.detach, write))):
        yield


@contextlib.contextmanager
def tracing_context():
    """Makes sizes plain numbers while tracing, and attention one op. Yields that op."""
    global _attention_library
    base = torch._C._TensorBase

    def untraced(read):
        state = torch._C._get_tracing_state()
        torch._C._set_tracing_state(None)
        try:
            return read()
        finally:
            torch._C._set_tracing_state(state)

    interpolate = torch.nn.functional.interpolate
    read_state = torch._C._get_tracing_state

    def tracing_state():  # interpolate would compute sizes with tensors, for the tracer to see them
        return None if sys._getframe(1).f_code is interpolate.__code__ else read_state()

    changes = [
        (torch._C, "_get_tracing_state", tracing_state),
        (torch.Tensor, "size", lambda self, *a, **k: untraced(lambda: base.size(self, *a, **k))),
        (torch.Tensor, "shape", property(lambda self: untraced(lambda: base.size(self)))),
        (torch.Tensor, "numel", lambda self: untraced(lambda: base.numel(self))),
        (torch.Tensor, "__len__", lambda self: untraced(lambda: base.__len__(self))),
    ]
    op = None
    functional = torch.nn.functional
    if hasattr(torch._C._nn, "_scaled_dot_product_attention"):
        if _attention_library is None:
            _attention_library = torch.library.Library("npu_export", "DEF")
            _attention_library.define(ATTENTION_SCHEMA)
            _attention_library.impl("scaled_dot_product_attention", attention, "CPU")
        op = torch.ops.npu_export.scaled_dot_product_attention.default
        original = torch._C._nn._scaled_dot_product_attention

        def inner(q, k, v, attn_mask=None, dropout_p=0.0, need_attn_weights=False, is_causal=False):
            if need_attn_weights:  # then it is no single op in torch.export either
                return original(q, k, v, attn_mask, dropout_p, True, is_causal)
            return op(q, k, v, attn_mask, dropout_p, is_causal), None

        changes += [
            (torch._C._nn, "_scaled_dot_product_attention", inner),
            (functional, "_scaled_dot_product_attention", inner),
            (functional, "scaled_dot_product_attention", lambda *a, **k: op(*a, **k)),
        ]
    with patched(*changes):
        yield op

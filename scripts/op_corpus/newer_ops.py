# SPDX-License-Identifier: Apache-2.0
"""Ops that PyTorch 2 has and the installed version lacks: a schema of PyTorch 2, and a reference in plain arithmetic."""

import math

import torch

from export.errors import UserError
from op_corpus.specs import INF


class NewerOp:
    """Substitute for an overload: a schema and the expected results."""

    def __init__(self, schema, function):
        self._schema = torch._C.parse_schema("aten::" + schema)
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def reference_attention(query, key, value, mask, is_causal, scale, enable_gqa):
    """(output, logsumexp of the scores) in float64; a row that is masked completely gives zeros."""
    q, k, v = query.double(), key.double(), value.double()
    if enable_gqa:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
        v = v.repeat_interleave(q.shape[-3] // v.shape[-3], -3)
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(mask.logical_not(), -INF)
    elif mask is not None:
        scores = scores + mask.double()
    weights = torch.softmax(scores, -1)
    weights = weights.masked_fill((scores == -INF).all(-1, keepdim=True), 0.0)
    return weights @ v, torch.logsumexp(scores, -1)


def newer_attention(
    q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    return reference_attention(q, k, v, attn_mask, is_causal, scale, enable_gqa)[0].to(q.dtype)


def newer_flash_attention(
    query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None
):
    out, logsumexp = reference_attention(query, key, value, attn_mask, is_causal, scale, False)
    kind = torch.float64 if query.dtype == torch.float64 else torch.float32
    return out.to(query.dtype), logsumexp.to(kind)


def newer_batch_norm(x, weight, bias, mean, var, momentum, eps):
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = (x.double() - mean.double().view(shape)) / (var.double().view(shape) + eps).sqrt()
    if weight is not None:
        y = y * weight.double().view(shape)
    if bias is not None:
        y = y + bias.double().view(shape)
    return y.to(x.dtype), x.new_zeros(0), x.new_zeros(0)


def newer_batch_norm_no_stats(x, weight, bias, training, momentum, eps):
    dims = [d for d in range(x.dim()) if d != 1]
    mean, var = x.double().mean(dims), x.double().var(dims, unbiased=False)
    y = newer_batch_norm(x, weight, bias, mean, var, momentum, eps)[0]
    return y, mean.to(x.dtype), (var + eps).rsqrt().to(x.dtype)


def newer_rms_norm(x, normalized_shape, weight=None, eps=None):
    dims = list(range(-len(normalized_shape), 0))
    if eps is None:
        eps = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).eps
    y = x.double() * (x.double().square().mean(dims, keepdim=True) + eps).rsqrt()
    return (y if weight is None else y * weight.double()).to(x.dtype)


def newer_safe_softmax(x, dim, dtype=None):
    y = torch.softmax(x.double(), dim).to(dtype or x.dtype)
    return y.masked_fill((x == -INF).all(dim, keepdim=True), 0.0)


def newer_squeeze(x, dim):
    drop = {d % max(x.dim(), 1) for d in dim}
    return x.reshape([n for d, n in enumerate(x.shape) if not (d in drop and n == 1)]).clone()


def newer_var(x, dim, correction, keepdim):
    dims = list(range(x.dim())) if not dim else list(dim)
    count = math.prod(x.shape[d] for d in dims)
    centred = x.double() - x.double().mean(dims, keepdim=True)
    correction = 1 if correction is None else correction
    return centred.square().sum(dims, keepdim=keepdim) / max(count - correction, 0)


def newer_any(x, dim=None, keepdim=False):
    dims = list(range(x.dim())) if dim is None else list(dim)
    y = x != 0
    return y.sum(dims, keepdim=keepdim) > 0 if dims else y


def assert_true(condition):
    if not condition:
        raise AssertionError("an assertion of a case does not hold")


def check_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    assert_true((size is None or list(a.shape) == list(size)) and dtype in (None, a.dtype))


def newer_ops():
    """Schemas as PyTorch 2 writes them, and what they return; see resolve()."""
    table = [
        (
            "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
            "attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, "
            "bool enable_gqa=False) -> Tensor",
            newer_attention,
        ),
        (
            "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
            "float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? "
            "scale=None) -> (Tensor output, Tensor logsumexp)",
            newer_flash_attention,
        ),
        (
            "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
            "Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, "
            "Tensor, Tensor)",
            newer_batch_norm,
        ),
        (
            "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
            "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
            newer_batch_norm_no_stats,
        ),
        (
            "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? "
            "eps=None) -> Tensor",
            newer_rms_norm,
        ),
        (
            "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
            newer_safe_softmax,
        ),
        (
            "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, "
            "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
            check_metadata,
        ),
        (
            "_assert_scalar(Scalar self, str assert_msg) -> ()",
            lambda self, assert_msg: assert_true(self),
        ),
        (
            "_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor",
            lambda self, assert_msg, dep_token: dep_token.clone(),
        ),
        (
            "_assert_async.msg(Tensor self, str assert_msg) -> ()",
            lambda self, assert_msg: assert_true(bool(self)),
        ),
        (
            "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
            lambda self, size: self.reshape(size).clone(),
        ),
        ("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)", newer_squeeze),
        ("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", newer_squeeze),
        (
            "sym_size.int(Tensor self, int dim) -> SymInt",
            lambda self, dim: torch.tensor(self.shape[dim]),
        ),
        ("sym_numel(Tensor self) -> SymInt", lambda self: torch.tensor(self.numel())),
        (
            "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
            lambda self, indices: torch.ops.aten.index.Tensor(self, indices),
        ),
        (
            "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
            "accumulate=False) -> Tensor",
            lambda self, indices, values, accumulate=False: torch.ops.aten.index_put.default(
                self, indices, values, accumulate
            ),
        ),
        (
            "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
            lambda self, weight: torch.where(self > 0, self, self * weight),
        ),
        (
            "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
            "keepdim=False) -> Tensor",
            lambda x, dim=None, *, correction=None, keepdim=False: newer_var(
                x, dim, correction, keepdim
            ).to(x.dtype),
        ),
        (
            "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
            "keepdim=False) -> Tensor",
            lambda x, dim=None, *, correction=None, keepdim=False: newer_var(
                x, dim, correction, keepdim
            )
            .sqrt()
            .to(x.dtype),
        ),
        (
            "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
            "keepdim=False) -> (Tensor, Tensor)",
            lambda x, dim=None, *, correction=None, keepdim=False: (
                newer_var(x, dim, correction, keepdim).to(x.dtype),
                x.double().mean(dim, keepdim=keepdim).to(x.dtype),
            ),
        ),
        (
            "full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
            "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
            lambda size, fill_value, **kwargs: torch.full(size, fill_value),
        ),
        ("any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", newer_any),
        (
            "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
            lambda self, dim=None, keepdim=False: ~newer_any(self == 0, dim, keepdim),
        ),
        (
            "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor",
            lambda self, *, size, fill_value=-1: torch.cat(
                [self.nonzero(), torch.full((size, self.dim()), fill_value)]
            )[:size],
        ),
    ]
    ops = {}
    for schema, function in table:
        ops[schema.split("(")[0]] = NewerOp(schema, function)
    return ops


_newer = None


def resolve(name, newer=False):
    """The ATen overload "op" or "op.overload"; `newer`: as PyTorch 2 has it, though there is one of
    that name here."""
    global _newer
    if _newer is None:
        _newer = newer_ops()
    packet = getattr(torch.ops.aten, name.partition(".")[0], None)
    op = getattr(packet, name.partition(".")[2] or "default", None) if packet is not None else None
    if name in _newer and (newer or op is None):
        return _newer[name]
    if op is None:
        raise UserError(f"PyTorch {torch.__version__} has no overload aten.{name}")
    return op

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpus of single-op and small-model cases: documents, inputs and PyTorch's results.

Output: CATEGORY.json     {"category": ..., "cases": [{"name", "rtol", "atol", "ir"}, ...]}, one
                          case a line; "exact": true where every bit has to agree
        CATEGORY.safetensors  CASE/in/NAME by graph input, CASE/weight/KEY by state-dict key,
                          CASE/out/NAME by graph output

A case is a graph of calls of ATen overloads. Each is executed as it is added, and written by the
code that exports whole models (export_torch.py), so arguments have the form of a real export:
tensors flattened, trailing defaults left out, a number in place of a tensor where a model has one.
Some cases then change that form in ways that other exporters use.

Ops that PyTorch 2 has and the installed version lacks are described by PyTorch 2's schema and a
reference in plain arithmetic, in float64 where results are rounded.

Values come from integers that a seed and the case's name give, so a new case changes no other, and
files are the same on every CPU but for the last bits of results. Tensors are tiny.
"""

import argparse
import json
import math
import os
import re
import sys
import zlib

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
import export_torch as exporter  # noqa: E402

PROGRAM = "make_op_corpus"
torch = None  # set by main, after the options are known to be right

INF, NAN = math.inf, math.nan
DTYPES = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool"
# (rtol, atol) of results that are computed. The 16-bit ones are two units in the last place.
TOLERANCES = {
    "float64": (1e-12, 1e-13),
    "float32": (1e-5, 1e-6),
    "bfloat16": (8e-3, 1e-3),
    "float16": (1e-3, 1e-4),
}
# Sums of products in bfloat16, which 1.13 accumulates in bfloat16 itself on some CPUs.
BF16_SUMS = {"rtol": 2e-2, "atol": 8e-2}


# ------------------------------------------------------------------------------------------ tensors


class Spec:
    """A tensor that is drawn when its case is made, with the case's own seed."""

    def __init__(self, dtype, shape, low=None, high=None, values=None, key=None):
        self.dtype, self.shape, self.low, self.high = dtype, shape, low, high
        self.values, self.key = values, key

    def draw(self, generator):
        dtype = getattr(torch, self.dtype)
        if self.values is not None:
            wide = torch.float64 if is_float(dtype) else None
            return torch.tensor(self.values, dtype=wide).to(dtype)
        if self.dtype == "bool":
            return torch.randint(0, 2, self.shape, generator=generator).bool()
        if not is_float(dtype):
            return torch.randint(self.low, self.high, self.shape, generator=generator).to(dtype)
        # With a third, so that float64 has bits in all places; a bare grid would hide rounding.
        unit = (torch.randint(0, 2**21, self.shape, generator=generator).double() + 1 / 3) / 2**21
        return (self.low + unit * (self.high - self.low)).to(dtype)


def is_float(dtype):
    return dtype.is_floating_point


def f32(*shape, low=-2.0, high=2.0):
    return Spec("float32", shape, low, high)


def f64(*shape, low=-2.0, high=2.0):
    return Spec("float64", shape, low, high)


def bf16(*shape, low=-2.0, high=2.0):
    return Spec("bfloat16", shape, low, high)


def f16(*shape, low=-2.0, high=2.0):
    return Spec("float16", shape, low, high)


def positive(*shape, dtype="float32"):
    return Spec(dtype, shape, 0.5, 2.0)


def i64(*shape, low=-9, high=10):
    return Spec("int64", shape, low, high)


def i32(*shape, low=-9, high=10):
    return Spec("int32", shape, low, high)


def i16(*shape, low=-9, high=10):
    return Spec("int16", shape, low, high)


def i8(*shape, low=-9, high=10):
    return Spec("int8", shape, low, high)


def u8(*shape, low=0, high=256):
    return Spec("uint8", shape, low, high)


def boolean(*shape):
    return Spec("bool", shape)


def values(data, dtype="float32"):
    return Spec(dtype, None, values=data)


def weight(spec, key=None):
    """The tensor is a parameter of the model, not an input."""
    return Spec(spec.dtype, spec.shape, spec.low, spec.high, spec.values, key or "")


# --------------------------------------------------------------------- ops that PyTorch 2 added


class NewerOp:
    """Stands for an overload: a schema and the results it must have."""

    def __init__(self, schema, function):
        self._schema = torch._C.parse_schema("aten::" + schema)
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def reference_attention(query, key, value, mask, is_causal, scale, enable_gqa):
    """(output, logsumexp of the scores) in float64; a row that lets nothing through gives zeros."""
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
        raise exporter.UserError(f"PyTorch {torch.__version__} has no overload aten.{name}")
    return op


# ------------------------------------------------------------------------------------------- graphs


class CaseBuilder(exporter.Builder):
    """A graph of which each op is called; in-place ops are functional, as in the document."""

    def __init__(self, generator):
        super().__init__()
        self.generator = generator

    def input(self, spec, name="x"):
        return self.add_input(name, spec.draw(self.generator))

    def weight(self, spec, key="weight"):
        return self.add_weight(key, spec.draw(self.generator), "parameter")

    def constant(self, spec):
        return exporter.Value(spec.draw(self.generator), "constant")

    def op(self, overload, *args, newer=False, **kwargs):
        """Calls an overload; a Spec becomes an input or weight with the argument's name."""
        op = resolve(overload, newer)
        arguments = exporter.arguments_of(op)
        named = dict(zip((argument.name for argument in arguments), args))
        for key, value in kwargs.items():
            if key in named or all(argument.name != key for argument in arguments):
                raise exporter.UserError(f"{overload} has no argument '{key}' left")
            named[key] = value
        bound = [
            self.place(named.get(argument.name, argument.default), argument.name)
            for argument in arguments
        ]
        return self.emit(op, bound)[0]

    def place(self, value, name):
        if isinstance(value, Spec):
            if value.key is None:
                return self.input(value, name)
            return self.weight(value, value.key or name)
        if isinstance(value, list) and any(isinstance(item, Spec) for item in value):
            return [self.place(item, f"{name}_{i}") for i, item in enumerate(value)]
        return value

    @staticmethod
    def concrete(value):
        """Copies: some ops write to statistics without saying so in their schema."""
        if isinstance(value, exporter.Value):
            return value.tensor.clone()
        if isinstance(value, (list, tuple)):
            return [CaseBuilder.concrete(item) for item in value]
        return value

    def finish(self, outputs):
        # Nodes without results are there for what they check.
        everything = self.nodes
        checks = [node for node in everything if not node.outputs]
        checked = [value for node in checks for value in exporter.flatten_values(node.args)]
        outputs = super().finish(outputs + checked)[: len(outputs)]
        kept = set(self.nodes + checks)
        self.nodes = [node for node in everything if node in kept]
        self.assign_names()
        return outputs


def full_attrs(node):
    """Every argument that is no tensor, whether it has its default or not."""
    attrs = {k: v for k, v in exporter.node_attrs(node).items() if k.startswith("_")}
    for argument, value in zip(exporter.arguments_of(node.op), node.args):
        is_tensor = argument.is_tensor and (value is None or isinstance(value, exporter.Value))
        if not is_tensor and not argument.is_tensor_list:
            attrs[argument.name] = exporter.json_value(value, node.name)
    return attrs


class Category:
    """The cases of one file pair."""

    def __init__(self, name, seed, exact=False):
        self.name, self.seed, self.exact = name, seed, exact
        self.cases, self.tensors = [], {}

    def generator(self, name):
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed}/{self.name}/{name}".encode()))

    def op(
        self,
        name,
        overload,
        *args,
        full=False,
        attrs=None,
        drop=(),
        outputs=None,
        newer=False,
        exact=None,
        rtol=None,
        atol=None,
        **kwargs,
    ):
        """One op. `full` writes every attr, `attrs` replaces some, `drop` removes some; `outputs`
        lists the results that the graph returns."""

        def build(builder):
            result = builder.op(overload, *args, newer=newer, **kwargs)
            if result is None:
                return [value for value in builder.inputs]
            results = result if isinstance(result, list) else [result]
            return results if outputs is None else [results[i] for i in outputs]

        def edit(document, builder):
            entry = document["nodes"][0]
            changed = full_attrs(builder.nodes[0]) if full else entry.get("attrs", {})
            changed = {k: v for k, v in changed.items() if k not in drop}
            changed.update(attrs or {})
            entry.pop("attrs", None)
            if changed:
                entry["attrs"] = changed

        self.graph(name, build, edit, exact=exact, rtol=rtol, atol=atol)

    def graph(self, name, build, edit=None, constants_in_file=True, **tolerance):
        """Several ops: `build` gets a CaseBuilder and returns the outputs. `edit` may change the
        document."""
        builder = CaseBuilder(self.generator(name))
        try:
            outputs = builder.finish(build(builder))
        except exporter.UserError as error:
            raise exporter.UserError(f"case {self.name}/{name}: {error}") from None
        document = exporter.make_document(name, builder, outputs, False)
        if edit is not None:
            edit(document, builder)
        inputs = {value.name: value.tensor for value in builder.inputs}
        results = {value.name: value.tensor for value in outputs}
        weights = [v for v in builder.weights if constants_in_file or v.kind != "constant"]
        self.add(name, document, inputs, weights, results, **tolerance)

    def model(self, name, module, *specs, constants_in_file=True, **tolerance):
        """A torch.nn.Module, traced and written as export_torch.py does."""
        generator = self.generator(name)
        module.eval()
        for key, tensor in list(module.named_parameters()) + list(module.named_buffers()):
            if not is_float(tensor.dtype):
                continue
            if tensor.dim() < 2:  # norms, their statistics, biases
                low, high = (0.5, 1.5) if key.endswith(("weight", "var")) else (-0.3, 0.3)
            else:
                high = 1.5 / math.sqrt(tensor[0].numel())
                low = -high
            spec = Spec(exporter.dtype_name(tensor.dtype), tensor.shape, low, high)
            tensor.copy_(spec.draw(generator))
        example = tuple(spec.draw(generator) for spec in specs)
        reference = [
            t.clone() for t in exporter.flatten_tensors(exporter.run_model(module, example))
        ]
        build = (
            exporter.build_with_export if exporter.has_torch_export() else exporter.build_with_trace
        )
        with exporter.ordinary_attention():
            builder, outputs = build(module, tuple(tensor.clone() for tensor in example))
        document = exporter.make_document(name, builder, outputs, False)
        weights = [v for v in builder.weights if constants_in_file or v.kind != "constant"]
        inputs = {value.name: tensor for value, tensor in zip(builder.inputs, example)}
        results = {value.name: tensor for value, tensor in zip(outputs, reference)}
        self.add(name, document, inputs, weights, results, **tolerance)

    def add(self, name, document, inputs, weights, outputs, exact=None, rtol=None, atol=None):
        taken = any(case["name"] == name for case in self.cases)
        if taken or not re.fullmatch(r"[a-z0-9_]+", name):
            raise exporter.UserError(f"case {self.name}/{name}: the name is taken or not plain")
        kinds = [exporter.dtype_name(tensor.dtype) for tensor in outputs.values()]
        bounds = [TOLERANCES[kind] for kind in kinds if kind in TOLERANCES] or [(0.0, 0.0)]
        exact = self.exact if exact is None else exact
        case = {
            "name": name,
            "rtol": (max(b[0] for b in bounds) if rtol is None else rtol) if not exact else 0.0,
            "atol": (max(b[1] for b in bounds) if atol is None else atol) if not exact else 0.0,
        }
        if exact:
            case["exact"] = True
        case["ir"] = document
        self.cases.append(case)
        groups = (
            ("in", inputs),
            ("weight", {value.key: value.tensor for value in weights}),
            ("out", outputs),
        )
        for group, tensors in groups:
            for key, tensor in tensors.items():
                self.tensors[f"{name}/{group}/{key}"] = tensor.clone()

    def text(self):
        def dump(value):
            return json.dumps(value, allow_nan=False, separators=(",", ":"))

        lines = ",\n".join(dump(case) for case in self.cases)
        return f'{{"category":{dump(self.name)},"cases":[\n{lines}\n]}}\n'


# -------------------------------------------------------------------------------------- categories


def convolution(c):
    x1, x2, x3 = f32(2, 4, 9), f32(2, 4, 7, 6), f32(1, 2, 4, 5, 3)
    w2, b2 = weight(f32(6, 4, 3, 3)), weight(f32(6))
    c.op("conv1d", "conv1d", x1, weight(f32(6, 4, 3)))
    c.op("conv1d_bias_stride", "conv1d", x1, weight(f32(6, 4, 3)), weight(f32(6)), [2], [1])
    c.op("conv1d_depthwise", "conv1d", x1, weight(f32(4, 1, 3)), None, 1, [2], [2], 4)
    c.op("conv1d_unbatched", "conv1d", f32(4, 9), weight(f32(2, 4, 2)), None, [2])
    c.op("conv1d_same", "conv1d.padding", x1, weight(f32(3, 4, 4)), padding="same")
    c.op("conv2d", "conv2d", x2, w2)
    c.op("conv2d_bias", "conv2d", x2, w2, b2, [2, 1], [1, 0])
    c.op("conv2d_one_int", "conv2d", x2, w2, b2, 2, 1)
    c.op("conv2d_full_attrs", "conv2d", x2, w2, b2, full=True)
    c.op("conv2d_dilated", "conv2d", x2, w2, b2, [1, 1], [2, 2], [2, 2])
    c.op("conv2d_grouped", "conv2d", x2, weight(f32(6, 2, 3, 3)), b2, groups=2)
    c.op("conv2d_depthwise", "conv2d", x2, weight(f32(8, 1, 3, 3)), None, 1, 1, 1, 4)
    c.op("conv2d_wide_kernel", "conv2d", x2, weight(f32(3, 4, 1, 5)), None, 1, [0, 2])
    c.op("conv2d_weight_is_input", "conv2d", x2, f32(5, 4, 1, 1), f32(5))
    c.op("conv2d_unbatched", "conv2d", f32(4, 6, 6), w2, b2)
    c.op("conv2d_empty_batch", "conv2d", f32(0, 4, 6, 6), w2, b2)
    c.op("conv2d_same", "conv2d.padding", x2, w2, b2, padding="same", dilation=[2, 1])
    c.op("conv2d_valid", "conv2d.padding", x2, w2, b2, [2, 2], "valid")
    c.op("conv2d_f64", "conv2d", f64(1, 3, 5, 5), weight(f64(4, 3, 3, 3)), weight(f64(4)), 1, 1)
    c.op(
        "conv2d_bf16", "conv2d", bf16(1, 3, 5, 5), weight(bf16(4, 3, 3, 3)), weight(bf16(4)),
        **BF16_SUMS,
    )
    c.op("conv3d", "conv3d", x3, weight(f32(3, 2, 2, 3, 2)), weight(f32(3)))
    c.op("conv3d_strided", "conv3d", x3, weight(f32(4, 1, 3, 3, 3)), None, [1, 2, 1], 1, 1, 2)
    c.op("conv3d_same", "conv3d.padding", x3, weight(f32(2, 2, 3, 1, 2)), None, 1, "same")
    c.op("transpose1d", "conv_transpose1d", x1, weight(f32(4, 3, 3)), weight(f32(3)), [2], [1], [1])
    c.op("transpose2d", "conv_transpose2d.input", x2, weight(f32(4, 3, 3, 3)))
    c.op(
        "transpose2d_output_padding", "conv_transpose2d.input", x2, weight(f32(4, 3, 3, 3)),
        weight(f32(6)), [2, 2], [1, 1], [1, 0], 2,
    )
    c.op(
        "transpose2d_dilated", "conv_transpose2d.input", x2, weight(f32(4, 2, 2, 2)),
        dilation=[2, 3],
    )
    c.op(
        "transpose2d_f64", "conv_transpose2d.input", f64(1, 2, 4, 4), weight(f64(2, 3, 2, 2)), None,
        2,
    )
    c.op("transpose3d", "conv_transpose3d.input", x3, weight(f32(2, 2, 2, 2, 2)), weight(f32(2)), 2)
    tail = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    c.op("convolution", "convolution", x2, w2, b2, *tail)
    c.op("convolution_no_bias", "convolution", x2, w2, None, *tail)
    c.op(
        "convolution_1d", "convolution", x1, weight(f32(4, 2, 3)), None, [1], [1], [1], False, [0],
        2,
    )
    c.op(
        "convolution_3d", "convolution", x3, weight(f32(2, 2, 2, 2, 2)), None, [1, 1, 1], [0, 0, 0],
        [1, 1, 1], False, [0, 0, 0], 1,
    )
    c.op(
        "convolution_transposed", "convolution", x2, weight(f32(4, 3, 3, 3)), weight(f32(3)),
        [2, 2], [1, 1], [1, 1], True, [1, 1], 1,
    )
    c.op("convolution_one_int", "convolution", x2, w2, b2, [2], [1], [1], False, [0], 1)
    c.op(
        "convolution_internal", "_convolution", x2, w2, None, [1, 1], [0, 0], [1, 1], False, [0, 0],
        1, False, False, True, True,
    )
    c.op("conv_tbc", "conv_tbc", f32(6, 2, 3), weight(f32(3, 3, 4)), weight(f32(4)), 1)
    c.op(
        "convolution_backward", "convolution_backward", f32(2, 6, 5, 4), x2, w2, [6], [1, 1],
        [0, 0], [1, 1], False, [0, 0], 1, [True, True, True],
    )


def linear(c):
    x = f32(3, 5)
    c.op("linear", "linear", x, weight(f32(4, 5)), weight(f32(4)))
    c.op("linear_no_bias", "linear", x, weight(f32(4, 5)))
    c.op("linear_1d", "linear", f32(5), weight(f32(4, 5)), weight(f32(4)))
    c.op("linear_4d", "linear", f32(2, 1, 3, 5), weight(f32(4, 5)), weight(f32(4)))
    c.op("linear_empty", "linear", f32(0, 5), weight(f32(4, 5)), weight(f32(4)))
    c.op("linear_f64", "linear", f64(3, 5), weight(f64(4, 5)), weight(f64(4)))
    c.op("linear_bf16", "linear", bf16(3, 5), weight(bf16(4, 5)), weight(bf16(4)), **BF16_SUMS)
    c.op("linear_inputs_only", "linear", x, f32(4, 5), f32(4))
    c.op("addmm", "addmm", f32(4), x, weight(f32(5, 4), "mat2"))
    c.op("addmm_beta_alpha", "addmm", f32(3, 4), x, f32(5, 4), beta=0.5, alpha=-2)
    c.op("addmm_full_attrs", "addmm", f32(3, 4), x, f32(5, 4), full=True)
    c.op("addmm_i64", "addmm", i64(2, 4), i64(2, 3), i64(3, 4), beta=2, alpha=3)
    c.op("addmm_beta_zero", "addmm", values([NAN, INF, 1.0, 2.0]), f32(2, 3), f32(3, 4), beta=0)
    c.op("mm", "mm", x, f32(5, 2))
    c.op("mm_f64", "mm", f64(3, 5), f64(5, 2))
    c.op("mm_bf16", "mm", bf16(3, 5), bf16(5, 2), **BF16_SUMS)
    c.op("mm_i64", "mm", i64(3, 5), i64(5, 2))
    c.op("mm_i32", "mm", i32(3, 5), i32(5, 2))
    c.op("mm_inner_zero", "mm", f32(3, 0), f32(0, 2))
    c.op("bmm", "bmm", f32(2, 3, 4), f32(2, 4, 5))
    c.op("bmm_bf16", "bmm", bf16(2, 3, 4), bf16(2, 4, 5), **BF16_SUMS)
    c.op("bmm_empty_batch", "bmm", f32(0, 3, 4), f32(0, 4, 5))
    c.op("matmul_vectors", "matmul", f32(5), f32(5))
    c.op("matmul_matrix_vector", "matmul", x, f32(5))
    c.op("matmul_vector_matrix", "matmul", f32(3), f32(3, 4))
    c.op("matmul_3d_2d", "matmul", f32(2, 3, 4), weight(f32(4, 5), "other"))
    c.op("matmul_broadcast", "matmul", f32(2, 1, 3, 4), f32(3, 4, 2))
    c.op("matmul_bf16", "matmul", bf16(2, 3, 4), bf16(4, 2), **BF16_SUMS)
    c.op("matmul_i64", "matmul", i64(2, 3), i64(3, 2))
    c.op("baddbmm", "baddbmm", f32(2, 3, 5), f32(2, 3, 4), f32(2, 4, 5))
    c.op("baddbmm_beta_alpha", "baddbmm", f32(5), f32(2, 3, 4), f32(2, 4, 5), beta=1.5, alpha=0.25)
    c.op("addbmm", "addbmm", f32(3, 5), f32(2, 3, 4), f32(2, 4, 5), alpha=0.5)
    c.op("addmv", "addmv", f32(3), x, f32(5), beta=2)
    c.op("addr", "addr", f32(3, 4), f32(3), f32(4), alpha=0.5)
    c.op("mv", "mv", x, f32(5))
    c.op("dot", "dot", f32(6), f32(6))
    c.op("dot_i64", "dot", i64(6), i64(6))
    c.op("vdot_f64", "vdot", f64(6), f64(6))
    c.op("outer", "outer", f32(3), f32(4))
    c.op("inner", "inner", f32(2, 3), f32(4, 3))
    c.op("kron", "kron", f32(2, 2), f32(1, 3))
    c.op("trace", "trace", f32(3, 4))
    c.op("einsum_bmm", "einsum", "bij,bjk->bik", [f32(2, 3, 4), f32(2, 4, 2)])
    c.op("einsum_implicit", "einsum", "ij,jk", [x, f32(5, 2)])
    c.op("einsum_diagonal", "einsum", "ii->i", [f32(4, 4)])
    c.op("einsum_all", "einsum", "ij->", [x])
    c.op("einsum_three", "einsum", "i,ij,j->", [f32(3), x, f32(5)])
    c.op("einsum_ellipsis", "einsum", "...ij,...j->...i", [f32(2, 3, 4), f32(2, 4)])
    c.op("einsum_attention_f64", "einsum", "bhqd,bhkd->bhqk", [f64(1, 2, 3, 4), f64(1, 2, 5, 4)])
    c.op("einsum_one_tensor_no_sizes", "einsum", "ij->ji", [x], drop=("_tensor_list_sizes",))
    c.op("bilinear", "bilinear", f32(3, 2), f32(3, 4), weight(f32(5, 2, 4)), weight(f32(5)))
    c.op("bilinear_no_bias", "bilinear", f32(3, 2), f32(3, 4), weight(f32(5, 2, 4)))
    c.op("tensordot", "tensordot", f32(2, 3, 4), f32(4, 3, 5), [1, 2], [1, 0])
    c.op("chain_matmul", "chain_matmul", [x, f32(5, 2), f32(2, 4)])
    c.op("multi_dot", "linalg_multi_dot", [x, f32(5, 2), f32(2, 4)])
    c.op("matrix_power", "matrix_power", f64(3, 3, low=-1, high=1), 3)
    c.op("cross", "linalg_cross", f32(2, 3), f32(2, 3))
    c.op("inverse_f64", "inverse", values([[2, 1, 0], [1, 3, 1], [0, 1, 4]], "float64"))


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


def normalization(c):
    x, mean, var = f32(2, 3, 4, 5), weight(f32(3)), weight(positive(3))
    scale, shift = weight(f32(3)), weight(f32(3))
    bn = ("batch_norm", x)
    c.op("batch_norm", *bn, scale, shift, mean, var, False, 0.1, 1e-5, True)
    c.op("batch_norm_no_affine", *bn, None, None, mean, var, False, 0.1, 1e-5, True)
    c.op(
        "batch_norm_slid", *bn, None, None, mean, var, False, 0.1, 1e-5, True, drop=("_none_args",)
    )
    c.op("batch_norm_weight_only", *bn, scale, None, mean, var, False, 0.1, 1e-3, False)
    c.op("batch_norm_bias_only", *bn, None, shift, mean, var, False, 0.1, 1e-3, False)
    c.op("batch_norm_int_eps", *bn, scale, shift, mean, var, False, 0, 1, False)
    c.op("batch_norm_training", *bn, scale, shift, None, None, True, 0.1, 1e-5, False)
    c.op("batch_norm_training_stats", *bn, scale, shift, mean, var, True, 0.1, 1e-5, True)
    c.op("batch_norm_2d", "batch_norm", f32(4, 3), scale, shift, mean, var, False, 0.1, 1e-5, True)
    c.op(
        "batch_norm_3d", "batch_norm", f32(2, 3, 4), scale, shift, mean, var, False, 0.1, 1e-5, True
    )
    c.op(
        "batch_norm_5d", "batch_norm", f32(1, 3, 2, 2, 2), scale, shift, mean, var, False, 0.1,
        1e-5, True,
    )
    c.op(
        "batch_norm_f64", "batch_norm", f64(2, 3, 4), weight(f64(3)), weight(f64(3)),
        weight(f64(3)), weight(positive(3, dtype="float64")), False, 0.1, 1e-5, True,
    )
    c.op(
        "batch_norm_bf16", "batch_norm", bf16(2, 3, 4, 4), weight(bf16(3)), weight(bf16(3)),
        weight(bf16(3)), weight(positive(3, dtype="bfloat16")), False, 0.1, 1e-5, True,
    )
    c.op("native_batch_norm", "native_batch_norm", x, scale, shift, mean, var, False, 0.1, 1e-5)
    c.op(
        "native_batch_norm_training", "native_batch_norm", x, None, None, None, None, True, 0.1,
        1e-5,
    )
    c.op("layer_norm", "layer_norm", f32(2, 3, 6), [6], weight(f32(6)), weight(f32(6)))
    c.op("layer_norm_plain", "layer_norm", f32(2, 3, 6), [6])
    c.op("layer_norm_plain_eps", "layer_norm", f32(2, 6), [6], None, None, 0.5, False)
    c.op("layer_norm_weight_only", "layer_norm", f32(2, 6), [6], weight(f32(6)), None, 1e-6)
    c.op("layer_norm_bias_only", "layer_norm", f32(2, 6), [6], None, weight(f32(6)))
    c.op("layer_norm_int_eps", "layer_norm", f32(2, 6), [6], weight(f32(6)), weight(f32(6)), 1)
    c.op("layer_norm_2d", "layer_norm", f32(2, 3, 4), [3, 4], weight(f32(3, 4)), weight(f32(3, 4)))
    c.op(
        "layer_norm_full_attrs", "layer_norm", f32(2, 6), [6], weight(f32(6)), weight(f32(6)),
        full=True,
    )
    c.op("layer_norm_f64", "layer_norm", f64(2, 5), [5], weight(f64(5)), weight(f64(5)))
    c.op("layer_norm_bf16", "layer_norm", bf16(3, 8), [8], weight(bf16(8)), weight(bf16(8)))
    c.op("layer_norm_empty", "layer_norm", f32(0, 6), [6], weight(f32(6)), weight(f32(6)))
    c.op(
        "native_layer_norm", "native_layer_norm", f32(2, 3, 6), [6], weight(f32(6)), weight(f32(6)),
        1e-5,
    )
    c.op(
        "native_layer_norm_bias_only", "native_layer_norm", f32(4, 6), [6], None, weight(f32(6)),
        1e-5,
    )
    c.op(
        "native_layer_norm_backward", "native_layer_norm_backward", f32(2, 4), f32(2, 4), [4],
        f32(2, 1), positive(2, 1), weight(f32(4)), weight(f32(4)), [True, True, True],
    )
    c.op("group_norm", "group_norm", f32(2, 4, 3, 3), 2, weight(f32(4)), weight(f32(4)))
    c.op("group_norm_plain", "group_norm", f32(2, 4, 3), 4)
    c.op("group_norm_bias_only", "group_norm", f32(2, 4, 3), 2, None, weight(f32(4)), 1e-4)
    c.op("group_norm_f64", "group_norm", f64(1, 4, 3), 2, weight(f64(4)), weight(f64(4)))
    c.op(
        "native_group_norm", "native_group_norm", f32(2, 4, 3), weight(f32(4)), weight(f32(4)), 2,
        4, 3, 2, 1e-5,
    )
    c.op("native_group_norm_plain", "native_group_norm", f32(2, 4, 3), None, None, 2, 4, 3, 2, 1e-5)
    inorm = ("instance_norm", x)
    c.op("instance_norm", *inorm, None, None, None, None, True, 0.1, 1e-5, True)
    c.op("instance_norm_affine", *inorm, scale, shift, None, None, True, 0.1, 1e-5, True)
    c.op("instance_norm_stats", *inorm, scale, shift, mean, var, False, 0.1, 1e-5, True)
    c.op("instance_norm_stats_only", *inorm, None, None, mean, var, False, 0.1, 1e-5, True)
    c.op(
        "instance_norm_1d", "instance_norm", f32(2, 3, 6), scale, shift, None, None, True, 0.1,
        1e-5, True,
    )
    c.op("renorm", "renorm", f32(3, 4), 2, 0, 1.5)
    c.op("weight_norm", "_weight_norm", f32(3, 4), f32(3, 1))


def pooling(c):
    x1, x2, x3 = f32(2, 3, 9), f32(2, 3, 7, 6), f32(1, 2, 4, 5, 6)
    c.op("max_pool1d", "max_pool1d", x1, [3])
    c.op("max_pool1d_all", "max_pool1d", x1, [3], [2], [1], [2], True)
    c.op("max_pool1d_indices", "max_pool1d_with_indices", x1, [3], [2])
    c.op("max_pool2d", "max_pool2d", x2, [2, 2])
    c.op("max_pool2d_stride", "max_pool2d", x2, [3, 3], [2, 2], [1, 1])
    c.op("max_pool2d_one_int", "max_pool2d", x2, 3, 2, 1)
    c.op("max_pool2d_ceil", "max_pool2d", x2, [3, 2], [2, 2], [0, 0], [1, 1], True)
    c.op("max_pool2d_ceil_padding", "max_pool2d", x2, [3, 3], [2, 2], [1, 1], ceil_mode=True)
    c.op("max_pool2d_dilated", "max_pool2d", x2, [2, 3], [1, 1], [1, 0], [2, 2])
    c.op("max_pool2d_full_attrs", "max_pool2d", x2, [2, 2], full=True)
    c.op(
        "max_pool2d_negative", "max_pool2d", f32(1, 1, 4, 4, low=-9, high=-1), [3, 3], [1, 1],
        [1, 1],
    )
    c.op("max_pool2d_unbatched", "max_pool2d", f32(3, 6, 6), [2, 2])
    c.op("max_pool2d_bf16", "max_pool2d", bf16(1, 2, 6, 6), [2, 2], exact=True)
    c.op("max_pool2d_f64", "max_pool2d", f64(1, 2, 6, 6), [3, 3])
    c.op(
        "max_pool2d_nan", "max_pool2d", values([[[1.0, NAN, 2.0, 3.0], [0.0, 1.0, -INF, 5.0]]]),
        [2, 2],
    )
    c.op("max_pool2d_indices", "max_pool2d_with_indices", x2, [3, 3], [2, 2], [1, 1])
    c.op("max_pool2d_indices_only", "max_pool2d_with_indices", x2, [2, 2], outputs=[1])
    c.op("max_pool3d", "max_pool3d", x3, [2, 2, 2])
    c.op(
        "max_pool3d_indices", "max_pool3d_with_indices", x3, [2, 3, 2], [2, 1, 2], [1, 1, 0], 1,
        True,
    )
    c.op("avg_pool1d", "avg_pool1d", x1, [3], [2], [1])
    c.op("avg_pool1d_no_padding_counted", "avg_pool1d", x1, [3], [2], [1], True, False)
    c.op("avg_pool2d", "avg_pool2d", x2, [2, 2])
    c.op("avg_pool2d_padded", "avg_pool2d", x2, [3, 3], [2, 2], [1, 1])
    c.op("avg_pool2d_exclude_padding", "avg_pool2d", x2, [3, 3], [2, 2], [1, 1], False, False)
    c.op("avg_pool2d_ceil", "avg_pool2d", x2, [3, 3], [2, 2], [1, 1], True)
    c.op("avg_pool2d_ceil_exclude", "avg_pool2d", x2, [2, 4], [3, 3], [1, 0], True, False)
    c.op("avg_pool2d_divisor", "avg_pool2d", x2, [2, 2], [2, 2], [0, 0], False, True, 3)
    c.op("avg_pool2d_one_int", "avg_pool2d", x2, 2, 1, 1)
    c.op("avg_pool2d_full_attrs", "avg_pool2d", x2, [2, 2], full=True)
    c.op("avg_pool2d_bf16", "avg_pool2d", bf16(1, 2, 6, 6), [2, 2])
    c.op("avg_pool2d_i64", "avg_pool2d", i64(1, 2, 4, 4), [2, 2])
    c.op("avg_pool3d", "avg_pool3d", x3, [2, 2, 2], [1, 2, 2], [1, 0, 1], False, False)
    c.op("avg_pool3d_divisor", "avg_pool3d", x3, [2, 2, 2], divisor_override=5)
    c.op("adaptive_avg1d", "adaptive_avg_pool1d", x1, [4])
    c.op("adaptive_avg2d", "adaptive_avg_pool2d", x2, [1, 1])
    c.op("adaptive_avg2d_uneven", "adaptive_avg_pool2d", x2, [3, 4])
    c.op("adaptive_avg2d_one_int", "adaptive_avg_pool2d", x2, [2, 2], attrs={"output_size": 2})
    c.op("adaptive_avg2d_enlarging", "_adaptive_avg_pool2d", f32(1, 2, 2, 3), [4, 5])
    c.op("adaptive_avg2d_unbatched", "adaptive_avg_pool2d", f32(3, 5, 5), [2, 2])
    c.op("adaptive_avg2d_bf16", "adaptive_avg_pool2d", bf16(1, 2, 4, 4), [1, 1])
    c.op("adaptive_avg3d", "adaptive_avg_pool3d", x3, [2, 3, 1])
    c.op("adaptive_max1d", "adaptive_max_pool1d", x1, [4])
    c.op("adaptive_max2d", "adaptive_max_pool2d", x2, [3, 2])
    c.op("adaptive_max2d_values", "adaptive_max_pool2d", x2, [1, 1], outputs=[0])
    c.op("adaptive_max3d", "adaptive_max_pool3d", x3, [2, 2, 2])
    c.op("adaptive_max2d_f64", "adaptive_max_pool2d", f64(1, 2, 5, 5), [2, 3])

    def unpool(b):
        pooled, indices = b.op("max_pool2d_with_indices", b.input(x2), [2, 2])
        return [b.op("max_unpool2d", pooled, indices, [7, 6])]

    c.graph("max_unpool2d", unpool)


def elementwise(c):
    x, y = f32(3, 4), f32(3, 4)
    for name in "add sub mul div copysign".split():
        c.op(name, f"{name}.Tensor", x, y)
    for name in "maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2".split():
        c.op(name, name, x, y)
    for name in (
        "neg abs exp exp2 expm1 sin cos tan asin acos atan sinh cosh asinh erf erfc sign sgn "
        "floor ceil round trunc frac square reciprocal sinc i0 deg2rad rad2deg"
    ).split():
        c.op(name, name, f32(2, 5, low=-0.95, high=0.95) if name[:1] == "a" else x)
    for name in "sqrt rsqrt log log2 log10 log1p acosh lgamma digamma".split():
        low, high = (1.1, 3.0) if name == "acosh" else (0.5, 3.0)
        c.op(name, name, f32(2, 5, low=low, high=high))
    c.op("atanh", "atanh", f32(6, low=-0.9, high=0.9))
    c.op("erfinv", "erfinv", f32(6, low=-0.9, high=0.9))
    for name in "sqrt exp log sin erf".split():
        c.op(name + "_f64", name, f64(6, low=0.5, high=3))
    for name in "neg abs sqrt exp sin".split():
        c.op(name + "_bf16", name, bf16(8, low=0.5, high=3))
    c.op("sqrt_negative", "sqrt", values([-1.0, -0.0, 0.0, 4.0, INF, NAN]))
    c.op("exp_i64", "exp", i64(5))
    c.op("abs_i64_lowest", "abs", values([-(2**62), 2**62, -1, 0], "int64"))
    c.op("add_alpha", "add.Tensor", x, y, alpha=-2.5)
    c.op("add_full_attrs", "add.Tensor", x, y, full=True)
    c.op("add_broadcast", "add.Tensor", f32(2, 1, 4), f32(3, 1))
    c.op("add_number", "add.Tensor", x, 1.5)
    c.op("add_int_number", "add.Tensor", x, 3)
    c.op("add_number_alpha", "add.Tensor", x, 1.5, alpha=2)
    c.op("add_scalar_overload", "add.Scalar", x, 1.5, 2)
    c.op("add_0d_tensors", "add.Tensor", f32(), f32())
    c.op("add_0d_f64_to_f32", "add.Tensor", x, f64())
    c.op("add_i64_f32", "add.Tensor", i64(3, 4), y)
    c.op("add_i32_i64", "add.Tensor", i32(4), i64(4))
    c.op("add_bool_bool", "add.Tensor", boolean(6), boolean(6))
    c.op("add_i64_float_number", "add.Tensor", i64(4), 0.5)
    c.op(
        "add_i64_big", "add.Tensor", values([2**53, 2**62, -(2**62)], "int64"),
        values([1, 1, -1], "int64"),
    )
    c.op("add_u8_wraps", "add.Tensor", values([250, 255, 1], "uint8"), values([10, 1, 1], "uint8"))
    c.op("add_i8_wraps", "add.Tensor", values([127, -128, 1], "int8"), values([1, -1, 1], "int8"))
    c.op("add_bf16", "add.Tensor", bf16(3, 4), bf16(4))
    c.op("add_bf16_f32", "add.Tensor", bf16(3, 4), f32(3, 4))
    c.op("add_f64", "add.Tensor", f64(3, 4), f64(3, 4))
    c.op("add_empty", "add.Tensor", f32(0, 4), f32(1))
    c.op("add_in_place", "add_.Tensor", x, y, alpha=2)
    c.op("add_in_place_number", "add_.Tensor", x, 0.5)
    c.op("sub_alpha", "sub.Tensor", x, y, alpha=3)
    c.op("sub_scalar", "sub.Scalar", x, 1, 0.5)
    c.op("sub_in_place", "sub_.Tensor", x, f32(4))
    c.op("rsub", "rsub.Tensor", x, y, alpha=2)
    c.op("rsub_scalar", "rsub.Scalar", x, 1)
    c.op("rsub_scalar_alpha", "rsub.Scalar", x, 1.5, 2)
    c.op("mul_number", "mul.Tensor", x, 0.5)
    c.op("mul_infinity", "mul.Tensor", values([-1.0, 0.0, 2.0]), INF)
    c.op("mul_minus_infinity", "mul.Scalar", values([-1.0, 3.0, 2.0]), -INF)
    c.op("mul_bf16_number", "mul.Tensor", bf16(8), 0.3)
    c.op("mul_bool_f32", "mul.Tensor", boolean(3, 4), y)
    c.op("mul_in_place", "mul_.Tensor", x, f32(3, 1))
    c.op("div_number", "div.Tensor", x, 3)
    c.op("div_i64_i64", "div.Tensor", i64(6), i64(6, low=1))
    c.op("div_by_zero", "div.Tensor", values([1.0, -1.0, 0.0, NAN]), values([0.0, 0.0, 0.0, 1.0]))
    c.op("div_floor", "div.Tensor_mode", x, y, rounding_mode="floor")
    c.op("div_trunc_i64", "div.Tensor_mode", i64(8), i64(8, low=1), rounding_mode="trunc")
    c.op(
        "div_mode_none", "div.Tensor_mode", x, y, rounding_mode=None, attrs={"rounding_mode": None}
    )
    c.op("div_scalar_mode", "div.Scalar_mode", x, 0.75, rounding_mode="floor")
    c.op("div_in_place", "div_.Tensor", x, positive(4))
    c.op("div_f64", "div.Tensor", f64(5), positive(5, dtype="float64"))
    c.op("floor_divide", "floor_divide", i64(8), i64(8, low=1))
    c.op("remainder", "remainder.Tensor", x, y)
    c.op("remainder_scalar", "remainder.Scalar", i64(8), 4)
    c.op("remainder_scalar_tensor", "remainder.Scalar_Tensor", 7, i64(5, low=1))
    c.op("fmod", "fmod.Tensor", x, y)
    c.op("fmod_scalar", "fmod.Scalar", x, 0.75)
    c.op("pow_tensor", "pow.Tensor_Tensor", positive(3, 4), y)
    c.op("pow_scalar", "pow.Tensor_Scalar", x, 3)
    c.op("pow_half", "pow.Tensor_Scalar", positive(5), 0.5)
    c.op("pow_scalar_base", "pow.Scalar", 2, x)
    c.op("pow_i64", "pow.Tensor_Scalar", i64(6), 5)
    c.op("pow_in_place", "pow_.Scalar", x, 2)
    c.op("sqrt_in_place", "sqrt_", positive(5))
    c.op("neg_in_place", "neg_", x)
    c.op("exp_in_place", "exp_", x)
    c.op("round_decimals", "round.decimals", x, decimals=1)
    c.op("round_half_even", "round", values([0.5, 1.5, 2.5, -0.5, -1.5]))
    c.op("clamp", "clamp", x, -0.5, 0.75)
    c.op("clamp_min_only", "clamp", x, 0)
    c.op("clamp_max_only", "clamp", x, max=0.25)
    c.op("clamp_infinite", "clamp", values([-INF, -1.0, 2.0, INF, NAN]), -INF, 1.0)
    c.op("clamp_null_min", "clamp", x, None, 0.25, full=True)
    c.op("clamp_crossed", "clamp", x, 1.0, -1.0)
    c.op("clamp_i64", "clamp", i64(8), -3, 3)
    c.op("clamp_bf16", "clamp", bf16(8), -0.5, 0.5)
    c.op("clamp_in_place", "clamp_", x, min=-0.5)
    c.op("clamp_tensors", "clamp.Tensor", x, f32(3, 4, low=-1, high=0), f32(4, low=0, high=1))
    c.op("clamp_tensor_max", "clamp.Tensor", x, None, f32(3, 4))
    c.op("clamp_tensor_min", "clamp.Tensor", x, f32(3, 4), attrs={"_none_args": ["max"]})
    c.op("clamp_min", "clamp_min", x, 0.5)
    c.op("clamp_max_tensor", "clamp_max.Tensor", x, y)
    c.op("logical_and", "logical_and", boolean(6), i64(6, low=0, high=2))
    c.op("logical_not", "logical_not", i64(6, low=0, high=2))
    c.op("logical_xor", "logical_xor", f32(4), boolean(4))
    c.op("bitwise_and", "bitwise_and.Tensor", i64(8), i64(8))
    c.op("bitwise_or_bool", "bitwise_or.Tensor", boolean(8), boolean(8))
    c.op("bitwise_xor_scalar", "bitwise_xor.Scalar", i32(8), 5)
    c.op("bitwise_not", "bitwise_not", u8(6))
    c.op("bitwise_not_bool", "bitwise_not", boolean(6))
    c.op("shift_left", "bitwise_left_shift.Tensor", i64(5), i64(5, low=0, high=4))
    c.op("lshift", "__lshift__.Scalar", i64(5), 3)
    c.op("and_dunder", "__and__.Tensor", boolean(5), boolean(5))
    c.op("gcd", "gcd", i64(6, low=1, high=60), i64(6, low=1, high=60))
    c.op("nan_to_num", "nan_to_num", values([NAN, INF, -INF, 1.5]))
    c.op("nan_to_num_values", "nan_to_num", values([NAN, INF, -INF, 1.5]), 7, None, -9.5)
    c.op("xlogy", "xlogy.Tensor", values([0.0, 0.0, 2.0]), values([0.0, 3.0, 1.5]))
    c.op("xlogy_number", "xlogy.Scalar_Other", positive(4), 2.5)
    c.op("heaviside", "heaviside", values([-1.0, 0.0, 2.0]), f32(1))
    c.op("signbit", "signbit", values([-0.0, 0.0, -3.0, NAN]))
    c.op("ldexp", "ldexp.Tensor", x, i64(3, 4, low=-3, high=4))
    c.op("float_power", "float_power.Tensor_Scalar", f32(5), 2)
    c.op("polygamma", "polygamma", 2, positive(4))


def shape(c):
    x = f32(2, 3, 4)
    c.op("view", "view", x, [6, 4])
    c.op("view_minus_one", "view", x, [2, -1])
    c.op("view_0d", "view", f32(1, 1), [])
    c.op("view_bf16", "view", bf16(2, 3, 4), [4, 6])
    c.op("view_dtype", "view.dtype", f32(6), dtype("int32"))
    c.op("view_dtype_wider", "view.dtype", bf16(2, 4), dtype("int64"))
    c.op("reshape", "reshape", x, [4, -1, 2])
    c.op("reshape_empty", "reshape", f32(0, 4), [2, 0, 3])
    c.op("reshape_bool", "reshape", boolean(2, 3), [3, 2])
    c.op("view_as", "view_as", x, f32(6, 4))
    c.op("reshape_as", "reshape_as", x, f32(24))
    c.op("permute", "permute", x, [2, 0, 1])
    c.op("permute_negative", "permute", x, [-1, 0, -2])
    c.op("permute_rank_5", "permute", f32(2, 1, 3, 2, 2), [4, 0, 3, 1, 2])
    c.op("permute_i64", "permute", i64(2, 3), [1, 0])
    c.op("transpose", "transpose.int", x, 1, 2)
    c.op("transpose_negative", "transpose.int", x, 0, -1)
    c.op("transpose_0d", "transpose.int", f32(), 0, -1)
    c.op("transpose_in_place", "transpose_", x, 0, 1)
    c.op("t", "t", f32(3, 4))
    c.op("t_1d", "t", f32(3))
    c.op("t_bf16", "t", bf16(3, 4))
    c.op("swapaxes", "swapaxes", x, 0, 2)
    c.op("movedim", "movedim.int", x, 0, 2)
    c.op("movedim_list", "movedim.intlist", x, [0, 1], [2, 0])
    c.op("mt", "mT", x)
    c.op("flatten", "flatten.using_ints", x)
    c.op("flatten_tail", "flatten.using_ints", x, 1)
    c.op("flatten_middle", "flatten.using_ints", f32(2, 3, 2, 2), 1, 2)
    c.op("flatten_0d", "flatten.using_ints", f32())
    c.op("unflatten", "unflatten.int", f32(2, 6), 1, [2, -1])
    c.op("ravel", "ravel", x)
    c.op("squeeze", "squeeze", f32(1, 3, 1))
    c.op("squeeze_dim", "squeeze.dim", f32(1, 3, 1), -1)
    c.op("squeeze_dim_not_one", "squeeze.dim", f32(1, 3, 1), 1)
    c.op("squeeze_in_place", "squeeze_.dim", f32(1, 3), 0)
    c.op("unsqueeze", "unsqueeze", x, 1)
    c.op("unsqueeze_end", "unsqueeze", x, -1)
    c.op("unsqueeze_0d", "unsqueeze", f32(), 0)
    c.op("unsqueeze_in_place", "unsqueeze_", x, 0)
    c.op("expand", "expand", f32(1, 3, 1), [2, -1, 4])
    c.op("expand_new_dims", "expand", f32(3), [2, 2, 3])
    c.op("expand_implicit", "expand", f32(1, 3), [4, 3], implicit=True)
    c.op("expand_0d", "expand", f32(), [2, 3])
    c.op("expand_bool", "expand", boolean(3, 1), [3, 2])
    c.op("expand_as", "expand_as", f32(3, 1), f32(3, 5))
    c.op("broadcast_to", "broadcast_to", f32(3), [2, 3])
    c.op("broadcast_tensors", "broadcast_tensors", [f32(3, 1), f32(2), f32()])
    c.op("repeat", "repeat", f32(2, 3), [2, 1, 2])
    c.op("repeat_zero", "repeat", f32(2, 3), [0, 2])
    c.op("tile", "tile", f32(2, 3), [2])
    c.op("repeat_interleave", "repeat_interleave.self_int", f32(2, 3), 2, 1)
    c.op("repeat_interleave_flat", "repeat_interleave.self_int", f32(2, 3), 2)
    c.op(
        "repeat_interleave_tensor", "repeat_interleave.self_Tensor", f32(3, 2),
        values([1, 0, 2], "int64"), 0,
    )
    c.op("narrow", "narrow", x, 2, 1, 2)
    c.op("unfold", "unfold", f32(2, 7), 1, 3, 2)
    c.op("as_strided", "as_strided", f32(12), [2, 3], [4, 2], 1)
    c.op("diagonal", "diagonal", f32(3, 4))
    c.op("diagonal_dims", "diagonal", x, 1, 2, 0)
    c.op("diag", "diag", f32(3), 1)
    c.op("diag_embed", "diag_embed", f32(2, 3), -1)
    c.op("diagflat", "diagflat", f32(2, 2))
    c.op("rot90", "rot90", f32(2, 3), 1, [0, 1])
    c.op("contiguous", "contiguous", x)
    c.op(
        "contiguous_channels_last", "contiguous", f32(1, 2, 3, 3),
        memory_format=form("channels_last"),
    )
    c.op("alias", "alias", x)
    c.op("detach", "detach", x)
    c.op("atleast_3d", "atleast_3d", f32(4))
    c.op("vander", "vander", values([1.0, 2.0, 3.0]), 4)

    def strided(b):
        y = b.op("transpose.int", b.input(x), 0, 2)
        z = b.op("reshape", y, [4, 6])
        return [z, b.op("view", b.op("contiguous", y), [3, 8])]

    c.graph("reshape_of_a_transpose", strided)


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


def softmax_attention(c):
    x = f32(2, 3, 5, low=-4, high=4)
    c.op("softmax", "softmax.int", x, -1)
    c.op("softmax_middle", "softmax.int", x, 1)
    c.op("softmax_dtype", "softmax.int", f32(2, 5), 1, dtype("float64"))
    c.op("softmax_full_attrs", "softmax.int", x, 0, full=True)
    c.op("softmax_f64", "softmax.int", f64(2, 5), -1)
    c.op("softmax_bf16", "softmax.int", bf16(3, 7), -1)
    c.op("softmax_bf16_to_f32", "softmax.int", bf16(3, 7), -1, dtype("float32"))
    c.op("softmax_0d", "softmax.int", f32(), 0)
    c.op("softmax_empty", "softmax.int", f32(0, 4), 1)
    c.op("softmax_masked", "softmax.int", values([[1.0, -INF, 2.0], [-INF, -INF, 0.0]]), 1)
    c.op("softmax_all_masked", "softmax.int", values([[-INF, -INF], [1.0, 2.0]]), 1)
    c.op("softmax_large", "softmax.int", values([[1e4, 1e4 + 1, -1e4]]), 1)
    c.op("softmax_internal", "_softmax", x, -1, False)
    c.op("log_softmax", "log_softmax.int", x, -1)
    c.op("log_softmax_dim0", "log_softmax.int", x, 0)
    c.op("log_softmax_bf16", "log_softmax.int", bf16(3, 7), -1)
    c.op("log_softmax_internal", "_log_softmax", f64(3, 4), 1, False)
    c.op(
        "masked_softmax", "_masked_softmax", f32(2, 4), boolean(2, 4), 1, 1, outputs=[0]
    )
    q, k, v = f32(1, 2, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4)
    c.op("attention_113", "_scaled_dot_product_attention", q, k, v)
    c.op("attention_113_weights", "_scaled_dot_product_attention", q, k, v, f32(3, 5), 0.0, True)
    c.op("attention_113_causal", "_scaled_dot_product_attention", q, k, v, None, 0, True, True)
    # query, key and value are one tensor in self-attention
    def multi_head(b):
        x = b.input(f32(2, 3, 4))
        w_in, b_in = b.weight(f32(12, 4), "qkv_weight"), b.weight(f32(12), "qkv_bias")
        w_out, b_out = b.weight(f32(4, 4), "proj_weight"), b.weight(f32(4), "proj_bias")
        op = "_native_multi_head_attention"
        return b.op(op, x, x, x, 4, 2, w_in, b_in, w_out, b_out, None, True)

    c.graph("native_multi_head", multi_head, atol=1e-5)

    def written_out(b, kind):
        q, k, v = (b.input(kind(2, 2, 3, 4), name) for name in ("q", "k", "v"))
        scores = b.op("matmul", q, b.op("transpose.int", k, -2, -1))
        scores = b.op("mul.Tensor", scores, 0.5)
        mask = b.op("full", [3, 3], -INF)
        scores = b.op("add.Tensor", scores, b.op("triu", mask, 1))
        weights = b.op("softmax.int", scores, -1)
        return [weights, b.op("matmul", weights, v)]

    c.graph("written_out", lambda b: written_out(b, f32))
    c.graph("written_out_f64", lambda b: written_out(b, f64))


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


def casts_memory(c):
    special = values([1.0, -1.5, 1e-40, 3.4e38, INF, -INF, NAN, 0.1, 1.00390625, 1.01171875, -0.0])
    exact = values([1.0, -2.5, 3.99, -3.99, 100.7, 0.0])
    c.op("f32_to_bf16", "to.dtype", special, dtype("bfloat16"))
    c.op("f32_to_f16", "to.dtype", special, dtype("float16"))
    c.op("f32_to_f64", "to.dtype", special, dtype("float64"))
    c.op("f32_to_bool", "to.dtype", special, dtype("bool"))
    for kind in "int8 uint8 int16 int32 int64".split():
        source = values([1.0, 2.5, 3.99, 100.7, 0.0]) if kind == "uint8" else exact
        c.op(f"f32_to_{kind}", "to.dtype", source, dtype(kind))
    for kind in "float32 float64 float16 int64".split():
        c.op(f"bf16_to_{kind}", "to.dtype", bf16(9), dtype(kind))
    c.op(
        "bf16_nan_to_f32", "to.dtype", values([NAN, INF, 1e-40, -0.0], "bfloat16"), dtype("float32")
    )
    c.op("f64_to_bf16", "to.dtype", f64(9), dtype("bfloat16"))
    c.op("f64_to_f32", "to.dtype", values([0.1, 1e-300, 1e300, INF], "float64"), dtype("float32"))
    c.op("f16_to_bf16", "to.dtype", f16(9), dtype("bfloat16"))
    c.op("i64_to_f32", "to.dtype", values([2**24 + 1, -(2**53) - 1, 7], "int64"), dtype("float32"))
    c.op("i64_to_bf16", "to.dtype", values([257, -259, 1000003], "int64"), dtype("bfloat16"))
    c.op("i64_to_i32", "to.dtype", values([2**31 + 5, -7], "int64"), dtype("int32"))
    c.op("i64_to_u8", "to.dtype", values([256, -1, 77], "int64"), dtype("uint8"))
    c.op("i16_to_f32", "to.dtype", i16(6), dtype("float32"))
    c.op("i8_to_i64", "to.dtype", i8(6), dtype("int64"))
    c.op("u8_to_f32", "to.dtype", u8(6), dtype("float32"))
    c.op("bool_to_f32", "to.dtype", boolean(6), dtype("float32"))
    c.op("bool_to_i64", "to.dtype", boolean(6), dtype("int64"))
    c.op("i64_to_bool", "to.dtype", i64(6, low=0, high=2), dtype("bool"))
    c.op("same_dtype", "to.dtype", f32(3), dtype("float32"))
    c.op("same_dtype_copy", "to.dtype", f32(3), dtype("float32"), False, True)
    c.op("to_full_attrs", "to.dtype", f32(3), dtype("bfloat16"), full=True)
    c.op("to_0d", "to.dtype", f32(), dtype("bfloat16"))
    c.op("to_empty", "to.dtype", f32(0, 2), dtype("int64"))
    c.op(
        "to_dtype_layout", "to.dtype_layout", f32(4), dtype=dtype("float64"), layout=layout(),
        device=device(), pin_memory=False,
    )
    c.op(
        "to_dtype_layout_meta", "to.dtype_layout", f32(4), dtype=dtype("bfloat16"), device=device(),
        attrs={"device": "meta"},
    )
    c.op(
        "to_device_meta", "to.device", f32(4), device(), dtype("float64"), attrs={"device": "meta"}
    )
    c.op(
        "to_dtype_layout_full_attrs", "to.dtype_layout", f32(4), dtype=dtype("float32"),
        device=device(), full=True,
    )
    c.op("to_other", "to.other", f32(4), bf16(1))
    c.op("to_copy", "_to_copy", f32(4), dtype=dtype("bfloat16"))
    c.op("to_copy_plain", "_to_copy", bf16(4))
    c.op(
        "to_copy_format", "_to_copy", f32(1, 2, 2, 3), dtype=dtype("float64"),
        memory_format=form("channels_last"),
    )
    c.op(
        "to_copy_meta", "_to_copy", i64(4), dtype=dtype("float32"), device=device(),
        attrs={"device": "meta"},
    )
    c.op("clone", "clone", f32(2, 3))
    c.op("clone_channels_last", "clone", f32(1, 2, 2, 3), memory_format=form("channels_last"))
    c.op("clone_contiguous", "clone", bf16(2, 3), memory_format=form("contiguous_format"))
    c.op("clone_bool", "clone", boolean(5))
    c.op("type_as", "type_as", i64(4), f32(1))
    c.op("cast_float", "_cast_Float", i64(4))
    c.op("copy", "copy", f32(2, 3), i64(3))
    c.op("copy_in_place", "copy_", bf16(2, 3), f32(3))
    c.op("lift_fresh", "lift_fresh", f32(3))
    c.op("detach_in_place", "detach_", f32(3))
    c.op("fill", "fill.Scalar", f32(2, 3), 2.5)
    c.op("fill_tensor", "fill.Tensor", i64(4), values(3, "int64"))
    c.op("fill_in_place", "fill_.Scalar", bf16(4), INF)
    c.op("zero_in_place", "zero_", f32(4))

    def there_and_back(b):
        y = b.op("to.dtype", b.input(bf16(6)), dtype("float32"))
        return [y, b.op("to.dtype", y, dtype("bfloat16"))]

    c.graph("bf16_there_and_back", there_and_back)

    def through_views(b):
        y = b.op("permute", b.input(bf16(2, 3, 2)), [2, 0, 1])
        z = b.op("to.dtype", y, dtype("float64"))
        return [b.op("clone", y), b.op("contiguous", z), y]

    c.graph("cast_of_a_permute", through_views)


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


def misc(c):
    x, y, z = f32(3, 4), f32(3, 4), positive(3, 4)
    image = f32(1, 2, 4, 5)
    c.op("dropout_eval", "dropout", x, 0.5, False, exact=True)
    c.op("dropout_int_p", "dropout", x, 0, True, attrs={"p": 0})
    c.op("dropout_in_place", "dropout_", x, 0.25, False, exact=True)
    c.op("feature_dropout", "feature_dropout", f32(2, 3, 4), 0.5, False, exact=True)
    c.op("alpha_dropout", "alpha_dropout", x, 0.5, False, exact=True)
    c.op("native_dropout_eval", "native_dropout", x, 0.5, False)
    c.op("sort", "sort", x)
    c.op("sort_descending", "sort", x, 0, True)
    c.op("sort_stable", "sort.stable", i64(8, low=0, high=3), stable=True, dim=0, descending=True)
    c.op("sort_i64", "sort", values([[5, 1, 9], [3, 8, 2]], "int64"), 1)
    c.op("argsort", "argsort", x, -1, True)
    c.op("msort", "msort", x)
    c.op("topk", "topk", x, 2)
    c.op("topk_smallest", "topk", f32(5, 3), 3, 0, False, True)
    c.op("topk_bf16", "topk", values([3.0, 1.0, 2.0, 7.0], "bfloat16"), 2)
    c.op("topk_values_only", "topk", x, 1, outputs=[0])
    c.op("lerp_scalar", "lerp.Scalar", x, y, 0.25)
    c.op("lerp_scalar_int", "lerp.Scalar", x, y, 2)
    c.op("lerp_tensor", "lerp.Tensor", x, y, f32(4, low=0, high=1))
    c.op("addcmul", "addcmul", x, y, z)
    c.op("addcmul_value", "addcmul", x, f32(3, 1), z, value=-0.5)
    c.op("addcmul_in_place", "addcmul_", x, y, z, value=2)
    c.op("addcdiv", "addcdiv", x, y, z, value=0.75)
    c.op("roll", "roll", x, [1, -1], [0, 1])
    c.op("roll_flat", "roll", x, [3])
    c.op("roll_one_int", "roll", x, [1], [1], attrs={"shifts": 1, "dims": 1})
    c.op("flip", "flip", x, [0, -1])
    c.op("fliplr", "fliplr", x)
    c.op("tril", "tril", x)
    c.op("triu_diagonal", "triu", f32(2, 3, 3), 1)
    c.op("tril_bool", "tril", boolean(4, 4), -1)
    c.op("pixel_shuffle", "pixel_shuffle", f32(1, 8, 2, 3), 2)
    c.op("pixel_unshuffle", "pixel_unshuffle", f32(1, 2, 4, 6), 2)
    c.op("channel_shuffle", "channel_shuffle", f32(1, 6, 2, 2), 3)
    c.op("nearest1d", "upsample_nearest1d", f32(1, 2, 4), [7])
    c.op("nearest2d", "upsample_nearest2d", image, [8, 10])
    c.op("nearest2d_scales", "upsample_nearest2d", image, [6, 7], 1.5, 1.5)
    c.op("nearest2d_vec", "upsample_nearest2d.vec", image, None, [2.0, 1.5])
    c.op(
        "nearest2d_vec_int_factors", "upsample_nearest2d.vec", image, None, [2.0, 2.0],
        attrs={"scale_factors": [2, 2]},
    )
    c.op("nearest2d_vec_size", "upsample_nearest2d.vec", image, [5, 3], None, full=True)
    c.op("nearest3d", "upsample_nearest3d.vec", f32(1, 1, 2, 2, 2), None, [2.0, 1.0, 2.0])
    c.op("nearest_exact2d", "_upsample_nearest_exact2d", image, [7, 7])
    c.op("bilinear2d", "upsample_bilinear2d", image, [7, 8], False)
    c.op("bilinear2d_corners", "upsample_bilinear2d.vec", image, [3, 9], True, None)
    c.op("bilinear2d_factors", "upsample_bilinear2d.vec", image, None, False, [2.0, 2.0])
    c.op("bicubic2d", "upsample_bicubic2d", image, [6, 7], False)
    c.op("linear1d", "upsample_linear1d", f32(1, 2, 4), [9], True)
    c.op("trilinear3d", "upsample_trilinear3d", f32(1, 1, 2, 3, 2), [3, 4, 5], False)
    c.op("bilinear2d_aa", "_upsample_bilinear2d_aa", image, [2, 3], False)
    c.op("grid_sampler", "grid_sampler", image, f32(1, 3, 3, 2, low=-1.2, high=1.2), 0, 0, False)
    c.op(
        "grid_sampler_nearest", "grid_sampler_2d", image, f32(1, 3, 3, 2, low=-1, high=1), 1, 1,
        True,
    )
    c.op("grid_sampler_3d", "grid_sampler_3d", f32(1, 1, 2, 3, 4), f32(1, 2, 2, 2, 3), 0, 1, False)
    c.op("affine_grid", "affine_grid_generator", f32(1, 2, 3), [1, 1, 3, 4], False)
    c.op("constant_pad", "constant_pad_nd", x, [1, 2])
    c.op("constant_pad_value", "constant_pad_nd", x, [1, 0, 0, 2], -INF)
    c.op("constant_pad_negative", "constant_pad_nd", x, [-1, 2], 3)
    c.op("pad_reflect", "pad", image, [1, 2, 2, 1], "reflect")
    c.op("pad_constant", "pad", image, [1, 1], "constant", 0.5)
    c.op("pad_default_mode", "pad", i64(4), [1, 1])
    c.op("reflection_pad1d", "reflection_pad1d", f32(2, 5), [2, 1])
    c.op("reflection_pad2d", "reflection_pad2d", image, [1, 1, 2, 0])
    c.op("replication_pad2d", "replication_pad2d", image, [1, 2, 0, 3])
    c.op("replication_pad3d", "replication_pad3d", f32(1, 2, 2, 2), [1, 1, 0, 1, 1, 0])
    c.op("circular_pad", "_pad_circular", f32(1, 2, 4), [1, 2])
    c.op("one_hot", "one_hot", i64(3, low=0, high=4), 5)
    c.op("cdist", "cdist", f32(3, 4), f32(2, 4))
    c.op("cdist_p1", "cdist", f32(3, 4), f32(2, 4), 1)
    c.op("cdist_inf", "cdist", f32(3, 4), f32(2, 4), INF)
    c.op("pdist", "pdist", f32(4, 3))
    c.op("cosine_similarity", "cosine_similarity", x, y)
    c.op("pairwise_distance", "pairwise_distance", x, y, 1, 1e-6, True)
    c.op("im2col", "im2col", image, [2, 2], [1, 1], [0, 0], [1, 1])
    c.op("col2im", "col2im", f32(1, 8, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])
    c.op("bernoulli_sure", "bernoulli.p", x, 1.0)
    c.op("randint_sure", "randint.low", 3, 4, [2, 2], dtype=dtype("int64"))
    c.op("randperm_one", "randperm", 1, attrs={"device": "meta"})
    c.op("mse_loss", "mse_loss", x, y)
    c.op("mse_loss_none", "mse_loss", x, y, 0)
    c.op("l1_loss_sum", "l1_loss", x, y, 2)
    c.op("smooth_l1", "smooth_l1_loss", x, y, 1, 0.5)
    c.op("huber", "huber_loss", x, y, 1, 2)
    c.op("bce", "binary_cross_entropy", f32(4, low=0.1, high=0.9), f32(4, low=0, high=1))
    c.op(
        "bce_weight", "binary_cross_entropy", f32(4, low=0.1, high=0.9), f32(4, low=0, high=1),
        f32(4), 2,
    )
    c.op(
        "bce_logits_pos_weight", "binary_cross_entropy_with_logits", f32(2, 3),
        f32(2, 3, low=0, high=1), None, positive(3),
    )
    c.op(
        "bce_logits_weight", "binary_cross_entropy_with_logits", f32(2, 3),
        f32(2, 3, low=0, high=1), positive(3), None, 0,
    )
    c.op("kl_div", "kl_div", x, z, 2, log_target=True)
    c.op("cross_entropy", "cross_entropy_loss", x, i64(3, low=0, high=4))
    c.op(
        "cross_entropy_smoothing", "cross_entropy_loss", x, i64(3, low=0, high=4), None, 1, -100,
        0.25,
    )
    c.op("nll_loss_weight", "nll_loss", x, i64(3, low=0, high=4), positive(4))
    c.op("nll_loss_forward", "nll_loss_forward", x, i64(3, low=0, high=4), None, 1, -100)
    c.op(
        "margin_ranking", "margin_ranking_loss", f32(4), f32(4), values([1.0, -1.0, 1.0, -1.0]), 0.5
    )
    c.op("foreach_add_lists", "_foreach_add.List", [f32(2), f32(3)], [f32(2), f32(3)], alpha=2)
    c.op("foreach_mul_scalars", "_foreach_mul.ScalarList", [f32(2), f32(3)], [2, 0.5])
    c.op("foreach_sqrt", "_foreach_sqrt", [positive(2), positive(3)])
    c.op(
        "segment_reduce", "segment_reduce", f32(5), "sum", lengths=values([2, 3], "int64"),
        outputs=[0],
    )

    def complex_product(b):
        left = b.op("view_as_complex", b.input(f32(3, 2), "left"))
        right = b.op("view_as_complex", b.input(f32(3, 2), "right"))
        product = b.op("mul.Tensor", left, right)
        return [b.op("view_as_real", product), b.op("abs", product)]

    c.graph("complex_product", complex_product)

    def spectrum(b):
        y = b.op("fft_rfft", b.input(f32(2, 8)), None, -1, "ortho")
        return [b.op("view_as_real", y), b.op("fft_irfft", y, 8, norm="ortho")]

    c.graph("real_fft", spectrum, atol=2e-6)


def creation(c):
    c.op("full", "full", [2, 3], 1.5)
    c.op("full_int", "full", [2], 7)
    # Called directly, 1.13 takes the bool for an integer.
    c.op("full_bool", "full", [2], True, newer=True)
    c.op("full_bool_dtype", "full", [2], True, dtype=dtype("bool"))
    c.op("full_infinity", "full", [2], -INF)
    c.op("full_bf16", "full", [3], 0.3, dtype=dtype("bfloat16"))
    c.op("full_0d", "full", [], 2.5)
    c.op(
        "full_meta", "full", [2, 2], 1, dtype=dtype("float32"), layout=layout(), device=device(),
        pin_memory=False, attrs={"device": "meta"},
    )
    c.op("full_full_attrs", "full", [2], 3.0, full=True)
    c.op("zeros", "zeros", [2, 3])
    c.op("zeros_empty", "zeros", [0, 3])
    c.op("zeros_u8", "zeros", [4], dtype=dtype("uint8"))
    c.op("ones_f64", "ones", [2], dtype=dtype("float64"), device=device())
    c.op("ones_bool", "ones", [2, 2], dtype=dtype("bool"))
    c.op("arange", "arange", 5)
    c.op("arange_float", "arange", 2.5)
    c.op(
        "arange_dtype", "arange", 4, dtype=dtype("float32"), device=device(),
        attrs={"device": "meta"},
    )
    c.op("arange_start", "arange.start", 2, 7)
    c.op("arange_step", "arange.start_step", 1, 10, 3)
    c.op("arange_down", "arange.start_step", 5, -4, -2)
    c.op("arange_float_step", "arange.start_step", 0, 1, 0.25)
    c.op("arange_i32", "arange.start", -2, 3, dtype=dtype("int32"))
    c.op("full_like", "full_like", f32(2, 3), 2)
    c.op(
        "full_like_format", "full_like", f32(1, 2, 2, 2), 0.5, dtype=dtype("float64"),
        memory_format=form("preserve_format"),
    )
    c.op("zeros_like_i64", "zeros_like", f32(2), dtype=dtype("int64"))
    c.op("ones_like_bf16", "ones_like", bf16(3))
    c.op("new_zeros", "new_zeros", f32(1), [2, 2])
    c.op("new_full", "new_full", i64(1), [3], 9)
    c.op("new_ones", "new_ones", f64(1), [2], dtype=dtype("bool"))
    c.op("eye", "eye", 3)
    c.op("eye_m", "eye.m", 2, 4, dtype=dtype("int64"))
    c.op("scalar_tensor", "scalar_tensor", 2.5)
    c.op("scalar_tensor_i64", "scalar_tensor", 7, dtype=dtype("int64"), device=device())
    c.op("linspace", "linspace", -1, 1, 5, exact=False)
    c.op("logspace", "logspace", 0, 2, 3, 10.0, exact=False)
    c.op("tril_indices", "tril_indices", 3, 4, -1)
    c.op("triu_indices", "triu_indices", 3, 3)
    c.op("hann_window", "hann_window", 6, exact=False)
    c.op("hamming_window", "hamming_window.periodic_alpha", 5, False, 0.5, exact=False)

    def filled(b):
        blank = b.op("empty.memory_format", [2, 2])
        return [b.op("fill.Scalar", blank, 4.0), b.op("zero_", blank)]

    c.graph("empty_then_filled", filled)


def structure(c):
    """What the form of the document demands, whatever the op."""

    def readers(b):
        y = b.op("mul.Tensor", b.input(f32(3, 4)), 2.0)
        before = b.op("sub.Tensor", y, 1.0)
        changed = b.op("relu_", y)
        after = b.op("add.Tensor", y, 1.0)
        return [before, changed, after]

    c.graph("in_place_with_other_readers", readers)

    def chain(b):
        y = b.op("add.Tensor", b.input(f32(4)), 0.5)
        first = b.op("mul_.Tensor", y, 3.0)
        second = b.op("add_.Tensor", first, y)
        third = b.op("clamp_", second, 0.0)
        return [y, first, second, third]

    c.graph("in_place_chain", chain)

    def on_input(b):
        x = b.input(f32(5))
        y = b.op("neg_", x)
        return [y, x, b.op("exp", x)]

    c.graph("in_place_on_an_input", on_input)

    def on_weight(b):
        w = b.weight(f32(3, 4), "layer.weight")
        y = b.op("mul_.Tensor", w, 0.5)
        return [y, b.op("linear", b.input(f32(2, 4)), w)]

    c.graph("in_place_on_a_weight", on_weight)

    def on_view(name, view):
        def build(b):
            y = b.op("mul.Tensor", b.input(f32(4, 6)), 1.5)
            part = view(b, y)
            changed = b.op("add_.Tensor", part, 10.0)
            return [changed, y, part, b.op("sum", y)]

        c.graph(f"in_place_on_a_{name}", build, atol=1e-5)

    on_view("transpose", lambda b, y: b.op("t", y))
    on_view("slice", lambda b, y: b.op("slice.Tensor", y, 1, 1, 4, 2))
    on_view("select", lambda b, y: b.op("select.int", y, 0, 2))
    on_view("reshape", lambda b, y: b.op("view", y, [2, 12]))
    on_view("chunk", lambda b, y: b.op("chunk", y, 2, 1)[1])
    on_view("unbind", lambda b, y: b.op("unbind.int", y)[3])
    on_view("detach", lambda b, y: b.op("detach", y))
    on_view("dropout", lambda b, y: b.op("dropout", y, 0.5, False))
    on_view("contiguous", lambda b, y: b.op("contiguous", y))

    def on_expanded(b):
        y = b.op("expand", b.input(f32(3, 1)), [3, 4])
        return [b.op("relu_", y), y]

    c.graph("in_place_on_an_expand", on_expanded)

    def list_member(b):
        parts = b.op("split.Tensor", b.input(f32(6)), 2)
        changed = b.op("mul_.Tensor", parts[1], 2.0)
        return [b.op("cat", [parts[0], changed, parts[1], parts[2]])]

    c.graph("in_place_on_a_list_member", list_member)

    def repeated(b):
        x = b.input(f32(3))
        y = b.op("mul.Tensor", x, x)
        return [y, b.op("cat", [x, y, x]), b.op("add.Tensor", y, y)]

    c.graph("operands_twice", repeated)

    def pass_through(b):
        x, w = b.input(f32(3)), b.weight(f32(3), "scale")
        return [x, b.op("mul.Tensor", x, w), w]

    c.graph("inputs_and_weights_as_outputs", pass_through)
    c.graph("no_node", lambda b: [b.input(i64(4))])

    def unused(b):
        b.input(f32(2), "unused")
        return [b.op("relu", b.input(f32(3), "used"))]

    c.graph("unused_input", unused)

    def same_output_twice(b):
        y = b.op("relu", b.input(f32(3)))
        return [y, b.op("neg", y), y]

    c.graph("one_output_twice", same_output_twice)

    def last(b):
        return [b.op("chunk", b.input(f32(6)), 3)[2]]

    def negative(document, builder):
        document["nodes"][-1]["attrs"] = {"index": -1}

    c.graph("getitem_negative", last, negative)

    def list_name(document, builder):
        # torch.export's names for a list of one tensor.
        for node in document["nodes"]:
            for entry in node["inputs"] + node["outputs"]:
                if entry["name"] == "chunk":
                    entry["name"] = "chunk_0"

    c.graph("list_of_one", lambda b: [b.op("chunk", b.input(f32(4)), 1)[0]], list_name)

    def bare(document, builder):
        for node in document["nodes"]:
            for entry in node["inputs"]:
                entry.pop("producer_node", None)
                entry.pop("producer_output_idx", None)
                entry.pop("dtype", None)
        for entry in document["graph_outputs"]:
            entry.pop("producer_node", None)
            entry.pop("producer_output_idx", None)

    c.graph("mentions_without_producers_and_dtypes", readers, bare)

    def set_grad(b):
        x, y = b.input(f32(3, 4), "x"), b.input(f32(4), "y")
        return [b.op("relu", b.op("add.Tensor", x, y))]

    def wrap(document, builder):
        body = {k: v for k, v in document.items() if k not in ("weights", "weight_name_mapping")}
        document["nodes"] = [
            {
                "name": "relu",
                "op_type": "wrap_with_set_grad_enabled",
                "inputs": [exporter.describe(value, True) for value in builder.inputs],
                "outputs": [dict(document["graph_outputs"][0])],
                "attrs": {"enabled": False, "body": body},
            }
        ]

    c.graph("set_grad_enabled", set_grad, wrap)
    c.op("null_attrs", "conv2d", f32(1, 2, 4, 4), weight(f32(3, 2, 3, 3)), attrs={"bias": None})
    c.op("attrs_for_newer_keywords", "argsort", f32(5), attrs={"_metadata": {"seq": 1}})

    for kind in DTYPES.split():
        data = [True, False, True] if kind == "bool" else [1, 2, 3]
        data = [0.5, 0.1, -3.25] if kind.startswith(("float", "bfloat")) else data

        def constant(b, kind=kind, data=data):
            held = b.constant(values(data, kind))
            x = b.input(
                Spec(kind, (3,), 0, 2) if "float" not in kind else Spec(kind, (3,), -2.0, 2.0)
            )
            return [b.op("where.self", b.input(boolean(3), "choice"), x, held), held]

        c.graph(f"constant_{kind}", constant, constants_in_file=False, exact=True)
        c.graph(f"constant_{kind}_in_file", constant, lambda d, b: d.pop("constants"), exact=True)
    c.graph(
        "constant_not_finite",
        lambda b: [b.op("mul.Tensor", b.input(f32(4)), b.constant(values([INF, -INF, NAN, 1.0])))],
        constants_in_file=False,
    )
    c.graph(
        "constant_0d",
        lambda b: [b.op("add.Tensor", b.input(i64(4)), b.constant(values(2**53 + 1, "int64")))],
        constants_in_file=False,
    )
    c.graph(
        "constant_empty",
        lambda b: [b.op("cat", [b.input(f32(2)), b.constant(f32(0))])],
        constants_in_file=False,
    )


def after_convolution(c):
    """What reads a convolution's result, which blocked channels make no plain tensor."""

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


def newer(c):
    sdpa = "scaled_dot_product_attention"
    q, k, v = f32(2, 2, 3, 4), f32(2, 2, 5, 4), f32(2, 2, 5, 6)
    mask = values(
        [[[True, False, True, True, False], [False, True, False, True, True], [True] * 5]], "bool"
    )
    blocked = values([[0.0, -INF, 0.5, 1.0, -INF], [-INF] * 5, [0.25] * 5])
    c.op("sdpa", sdpa, q, k, v)
    c.op("sdpa_3d", sdpa, f32(2, 3, 4), f32(2, 5, 4), f32(2, 5, 4))
    c.op("sdpa_2d", sdpa, f32(3, 4), f32(5, 4), f32(5, 4))
    c.op("sdpa_full_attrs", sdpa, q, k, v, full=True)
    c.op("sdpa_bool_mask", sdpa, q, k, v, mask)
    c.op("sdpa_float_mask", sdpa, q, k, v, f32(2, 1, 3, 5))
    c.op("sdpa_blocked_row", sdpa, q, k, v, blocked)
    c.op("sdpa_causal", sdpa, q, k, v, None, 0.0, True)
    c.op(
        "sdpa_causal_square", sdpa, f32(1, 2, 4, 8), f32(1, 2, 4, 8), f32(1, 2, 4, 8),
        is_causal=True,
    )
    c.op("sdpa_scale", sdpa, q, k, v, scale=0.25)
    c.op("sdpa_mask_scale", sdpa, q, k, v, mask, scale=1, full=True)
    c.op("sdpa_gqa", sdpa, f32(1, 4, 3, 4), f32(1, 2, 5, 4), f32(1, 2, 5, 4), enable_gqa=True)
    c.op("sdpa_f64", sdpa, f64(1, 2, 3, 4), f64(1, 2, 5, 4), f64(1, 2, 5, 4), is_causal=True)
    c.op("sdpa_bf16", sdpa, bf16(1, 2, 3, 4), bf16(1, 2, 5, 4), bf16(1, 2, 5, 4), atol=8e-3)
    c.op(
        "sdpa_bf16_mask", sdpa, bf16(1, 2, 3, 4), bf16(1, 2, 5, 4), bf16(1, 2, 5, 4), mask,
        atol=8e-3,
    )
    c.op("sdpa_broadcast_keys", sdpa, q, f32(1, 1, 5, 4), f32(1, 1, 5, 4))
    flash = "_scaled_dot_product_flash_attention_for_cpu"
    c.op("flash", flash, q, k, f32(2, 2, 5, 4))
    c.op("flash_causal", flash, f32(1, 2, 4, 4), f32(1, 2, 4, 4), f32(1, 2, 4, 4), 0.0, True)
    c.op("flash_mask", flash, q, k, f32(2, 2, 5, 4), attn_mask=f32(2, 1, 3, 5), scale=0.75)
    c.op("flash_output_only", flash, q, k, f32(2, 2, 5, 4), 0, outputs=[0])
    stats = (weight(f32(3), "mean"), weight(positive(3), "var"))
    bn = "_native_batch_norm_legit_no_training"
    c.op(
        "batch_norm", bn, f32(2, 3, 4, 4), weight(f32(3)), weight(f32(3), "bias"), *stats, 0.1,
        1e-5, newer=True,
    )
    c.op(
        "batch_norm_plain", bn, f32(2, 3, 4), None, None, *stats, 0.1, 1e-5, newer=True, outputs=[0]
    )
    c.op(
        "batch_norm_slid", bn, f32(2, 3, 4), None, None, *stats, 0.1, 1e-5, newer=True, outputs=[0],
        drop=("_none_args",),
    )

    def unread(b):
        affine = weight(f32(3)), weight(f32(3), "bias")
        return [b.op(bn, f32(2, 3, 4), *affine, *stats, 0.1, 1e-5, newer=True)[0]]

    def meta_shapes(document, builder):
        # Traced with meta tensors, the statistics that nobody reads have the running ones' shape.
        unused = {entry["name"] for entry in document["nodes"][0]["outputs"][1:]}
        for node in document["nodes"]:
            for entry in node["inputs"] + node["outputs"]:
                if entry["name"] in unused:
                    entry["shape"] = [3]

    c.graph("batch_norm_meta_shapes", unread, meta_shapes)
    c.op(
        "batch_norm_no_stats", "_native_batch_norm_legit.no_stats", f32(2, 3, 4), weight(f32(3)),
        weight(f32(3), "bias"), True, 0.1, 1e-5, newer=True,
    )
    c.op("rms_norm", "rms_norm", f32(2, 3, 6), [6], weight(f32(6)))
    c.op("rms_norm_plain", "rms_norm", f32(2, 6), [6])
    c.op("rms_norm_eps", "rms_norm", f32(2, 3, 4), [3, 4], weight(f32(3, 4)), 1e-3)
    c.op("rms_norm_plain_eps", "rms_norm", f32(2, 6), [6], None, 1)
    c.op("rms_norm_bf16", "rms_norm", bf16(2, 8), [8], weight(bf16(8)))
    c.op("rms_norm_f64", "rms_norm", f64(2, 5), [5], weight(f64(5)))
    c.op("safe_softmax", "_safe_softmax", blocked, -1)
    c.op("unsafe_view", "_unsafe_view", f32(2, 6), [3, -1], newer=True, exact=True)
    x = f32(2, 3, 4)
    copies = {"exact": True}
    c.op("view_copy", "view_copy", x, [4, 6], **copies)
    c.op("view_copy_bf16", "view_copy", bf16(2, 6), [-1], **copies)
    c.op("view_copy_dtype", "view_copy.dtype", f32(4), dtype("int32"), **copies)
    c.op("permute_copy", "permute_copy", x, [2, 0, 1], **copies)
    c.op("transpose_copy", "transpose_copy.int", x, 0, -1, **copies)
    c.op("t_copy", "t_copy", f32(2, 3), **copies)
    c.op("expand_copy", "expand_copy", f32(3, 1), [2, -1, 4], **copies)
    c.op("slice_copy", "slice_copy.Tensor", x, 1, 1, None, **copies)
    c.op("select_copy", "select_copy.int", x, 2, -1, **copies)
    c.op("unsqueeze_copy", "unsqueeze_copy", x, -1, **copies)
    c.op("squeeze_copy", "squeeze_copy", f32(1, 3, 1), **copies)
    c.op("squeeze_copy_dim", "squeeze_copy.dim", f32(1, 3, 1), 0, **copies)
    c.op("squeeze_copy_dims", "squeeze_copy.dims", f32(1, 3, 1), [0, 2], **copies)
    c.op("squeeze_dims", "squeeze.dims", f32(1, 3, 1, 1), [0, 1, -1], **copies)
    c.op("split_copy", "split_copy.Tensor", x, 2, 1, **copies)
    c.op("split_with_sizes_copy", "split_with_sizes_copy", x, [1, 2], 1, **copies)
    c.op("unbind_copy", "unbind_copy.int", x, 1, **copies)
    c.op("alias_copy", "alias_copy", x, **copies)
    c.op("detach_copy", "detach_copy", x, **copies)
    c.op("diagonal_copy", "diagonal_copy", x, 0, 1, 2, **copies)
    c.op("as_strided_copy", "as_strided_copy", f32(12), [2, 3], [5, 2], 1, **copies)
    c.op("unfold_copy", "unfold_copy", f32(7), 0, 3, 2, **copies)
    c.op("lift_fresh_copy", "lift_fresh_copy", i16(4), **copies)
    c.op("sym_size", "sym_size.int", x, -1, newer=True)
    c.op("sym_numel", "sym_numel", x, newer=True)
    c.op("unsafe_index", "_unsafe_index.Tensor", x, [None, values([2, 0], "int64")], **copies)
    c.op("unsafe_index_put", "_unsafe_index_put", f32(4), [values([2, 2], "int64")], f32(2), True)
    c.op("prelu_kernel", "_prelu_kernel", f32(2, 3), f32(1, 3))
    c.op("var_float_correction", "var.correction", x, [1], correction=1.0, newer=True)
    c.op("var_no_correction", "var.correction", x, newer=True)
    c.op(
        "std_float_correction", "std.correction", x, [0, 2], correction=0.0, keepdim=True,
        newer=True,
    )
    c.op("var_mean_float_correction", "var_mean.correction", x, [1], correction=0.0, newer=True)
    c.op("any_dims", "any.dims", boolean(2, 3, 2), [0, 2])
    c.op("any_dims_null", "any.dims", f32(2, 2), None, True, attrs={"dim": None})
    c.op("all_dims", "all.dims", boolean(2, 2, 2), [-1, 0], True)
    c.op("nonzero_static", "nonzero_static", values([[0, 3], [4, 0]], "int64"), size=3)

    def metadata(b):
        x = b.input(f32(2, 3))
        op = "_assert_tensor_metadata"
        b.op(op, x, None, None, dtype("float32"), newer=True)
        b.op(op, x, [2, 3], None, dtype("float32"), device=device(), layout=layout(), newer=True)
        return [b.op("relu", x)]

    def on_meta(document, builder):
        document["nodes"][1]["attrs"]["device"] = "meta"

    c.graph("assert_tensor_metadata", metadata)
    c.graph("assert_tensor_metadata_meta", metadata, on_meta)

    def scalars(b):
        x = b.input(f32(2, 3))
        b.op("_assert_scalar", 1, "has to hold")
        b.op("_assert_scalar", True, "holds")
        b.op("_assert_async.msg", b.op("all", b.op("le.Scalar", x, 9)), "small")
        return [b.op("relu", x)]

    c.graph("assert_scalar", scalars)
    c.op("functional_assert_scalar", "_functional_assert_scalar", 3, "positive", f32(2))

    def decomposed_linear(b):
        x = b.input(f32(2, 3, 4))
        flat = b.op("view", x, [6, 4])
        w = b.op("permute", b.weight(f32(5, 4), "layer.weight"), [1, 0])
        y = b.op("addmm", b.weight(f32(5), "layer.bias"), flat, w)
        return [b.op("_unsafe_view", y, [2, 3, 5], newer=True)]

    c.graph("decomposed_linear", decomposed_linear)


def models(c):
    nn, functional = torch.nn, torch.nn.functional

    class Siamese(nn.Module):
        """One encoder, two inputs."""

        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.fc = nn.Linear(16, 6)

        def encode(self, x):
            x = functional.relu(self.norm(self.conv(x)), inplace=True)
            return self.fc(functional.adaptive_avg_pool2d(x, 2).flatten(1))

        def forward(self, left, right):
            left, right = self.encode(left), self.encode(right)
            return (left - right).abs().sum(1), functional.cosine_similarity(left, right)

    class MultiTask(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh())
            self.classes, self.value, self.gate = nn.Linear(8, 3), nn.Linear(8, 1), nn.Linear(8, 8)

        def forward(self, x):
            h = self.body(x)
            classes = self.classes(h)
            return {
                "classes": functional.log_softmax(classes, -1),
                "best": classes.argmax(-1),
                "value": self.value(h * torch.sigmoid(self.gate(h))).squeeze(-1),
            }

    class DeepResidual(nn.Module):
        def __init__(self, depth=8):
            super().__init__()
            self.first = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(depth))
            self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(depth))

        def forward(self, x):
            for conv, norm in zip(self.first, self.norms):
                y = norm(conv(x))
                y += x
                x = functional.relu(y, inplace=True) * 0.5
            return x

    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(4))
            self.last = nn.Conv2d(11, 4, 1)

        def forward(self, x):
            parts = [x]
            for conv in self.convs:
                parts.append(functional.relu(conv(torch.cat(parts, 1))))
            return functional.avg_pool2d(self.last(torch.cat(parts, 1)), 2)

    class SelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            q, k, v = (p.view(n, t, 2, d // 2).transpose(1, 2) for p in (q, k, v))
            weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // 2), dim=-1)
            return self.out((weights @ v).transpose(1, 2).reshape(n, t, d)), weights

    class CrossAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True)

        def forward(self, query, memory, padding):
            return self.attention(query, memory, memory, key_padding_mask=padding)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(8)
            self.attention = SelfAttention()
            self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

        def forward(self, x):
            x = x + self.attention(self.before(x))[0]
            return x + self.narrow(functional.gelu(self.wide(self.after(x))))

    class Unrolled(nn.Module):
        """A recurrent cell written out over time, its states collected."""

        def __init__(self):
            super().__init__()
            self.read, self.carry = nn.Linear(3, 5), nn.Linear(5, 5, bias=False)

        def forward(self, x):
            h, states = torch.zeros(x.shape[0], 5), []
            for step in x.unbind(1):
                h = torch.tanh(self.read(step) + self.carry(h))
                states.append(h)
            return torch.stack(states, 1), h

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
            self.middle = nn.Linear(6, 6)
            self.head.weight = self.table.weight

        def forward(self, tokens):
            return self.head(torch.tanh(self.middle(self.table(tokens))))

    class Einsum(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Parameter(torch.empty(6, 2, 3)) for _ in range(3))

        def forward(self, x):
            q, k, v = (torch.einsum("bti,ihd->bhtd", x, w) for w in (self.q, self.k, self.v))
            weights = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
            return torch.einsum("bhqk,bhkd->bqhd", weights, v).flatten(2)

    class Constants(nn.Module):
        """Lifted constants of every dtype, from attributes and from forward."""

        def __init__(self):
            super().__init__()
            for kind in DTYPES.split():
                data = [1, 0, 1] if kind == "bool" else [1, 2, 3]
                setattr(self, f"as_{kind}", torch.tensor(data, dtype=getattr(torch, kind)))

        def forward(self, x):
            total = x + self.as_float32 * torch.tensor([0.5, INF, -2.0]).clamp(max=4.0)
            for part in (self.as_bfloat16, self.as_float16, self.as_float64):
                total = total + part.float()
            whole = self.as_int8 + self.as_uint8 + self.as_int16 + self.as_int32 + self.as_int64
            return torch.where(self.as_bool, total, 0.0), whole, whole * torch.tensor(2**40)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 3, batch_first=True)

        def forward(self, x):
            y, (h, _) = self.lstm(x)
            return self.gru(y)[0], h

    class Gated(nn.Module):
        """Squeeze and excitation on depthwise convolutions, activations in place."""

        def __init__(self):
            super().__init__()
            self.wide, self.deep = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, 2, 1, groups=8)
            self.less, self.more = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, x):
            x = functional.hardswish(
                self.norm(self.deep(functional.relu6(self.wide(x), inplace=True)))
            )
            gate = functional.silu(self.less(x.mean((2, 3), keepdim=True)), inplace=True)
            return x * functional.hardsigmoid(self.more(gate))

    class Unet(nn.Module):
        """Down, up by a transposed convolution and by interpolation, skip connections."""

        def __init__(self):
            super().__init__()
            self.first, self.down = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, 2, 1)
            self.up, self.last = nn.ConvTranspose2d(6, 4, 2, 2), nn.Conv2d(10, 2, 1)

        def forward(self, x):
            high = functional.leaky_relu(self.first(x), 0.1)
            low = functional.elu(self.down(high))
            wide = functional.interpolate(low[:, :2], scale_factor=2.0, mode="bilinear")
            return self.last(torch.cat([high, self.up(low), wide], 1))

    class Mixed(nn.Module):
        """Integer, bool and floating-point work on one input."""

        def forward(self, tokens, x):
            keep = (tokens != 0) & (tokens < 7)
            count = keep.sum(-1, keepdim=True).clamp(min=1)
            pooled = (x * keep.unsqueeze(-1)).sum(1) / count
            order = torch.argsort(count.squeeze(-1), descending=True)
            return pooled[order], torch.cumsum(keep.long(), -1) * keep

    tol = {"rtol": 1e-5, "atol": 1e-5}
    c.model("siamese_encoder", Siamese(), f32(2, 1, 6, 6), f32(2, 1, 6, 6), **tol)
    c.model("multi_task", MultiTask(), f32(4, 6), **tol)
    c.model("deep_residual", DeepResidual(), f32(1, 4, 5, 5), **tol)
    c.model("dense_block", Dense(), f32(1, 3, 6, 6), **tol)
    c.model("self_attention", SelfAttention(), f32(2, 4, 8), **tol)
    c.model(
        "cross_attention", CrossAttention(), f32(2, 3, 8), f32(2, 5, 6),
        values([[False] * 5, [False, False, True, False, True]], "bool"), **tol,
    )
    c.model("transformer_block", Block(), f32(2, 4, 8), **tol)
    c.model("transformer_block_f64", Block().double(), f64(1, 3, 8), rtol=1e-12, atol=1e-12)
    c.model("unrolled_rnn", Unrolled(), f32(2, 4, 3), **tol)
    c.model("tied_weights", Tied(), i64(2, 4, low=0, high=9), **tol)
    c.model("einsum_attention", Einsum(), f32(2, 4, 6), **tol)
    c.model("bf16_block", Block().bfloat16(), bf16(2, 4, 8), rtol=2e-2, atol=2e-2)
    c.model("bf16_residual", DeepResidual(2).bfloat16(), bf16(1, 4, 5, 5), rtol=2e-2, atol=2e-2)
    c.model("lifted_constants", Constants(), f32(2, 3), **tol)
    c.model("lifted_constants_inline", Constants(), f32(2, 3), constants_in_file=False, **tol)
    c.model("lstm_gru", Recurrent(), f32(2, 4, 4), **tol)
    c.model("gated_depthwise", Gated(), f32(1, 3, 8, 8), **tol)
    c.model("unet", Unet(), f32(1, 2, 8, 8), **tol)
    c.model("masked_pooling", Mixed(), i64(3, 5, low=0, high=10), f32(3, 5, 4), **tol)


# Arguments that name PyTorch's objects; functions, since torch is imported late.


def dtype(name):
    return getattr(torch, name)


def form(name):
    return getattr(torch, name)


def layout():
    return torch.strided


def device():
    return torch.device("cpu")


# Name of the file pair, function, whether results are copies and so exact.
CATEGORIES = [
    ("convolution", convolution, False),
    ("linear", linear, False),
    ("activation", activation, False),
    ("normalization", normalization, False),
    ("pooling", pooling, False),
    ("elementwise", elementwise, False),
    ("shape", shape, True),
    ("concat_split", concat_split, True),
    ("reduction", reduction, False),
    ("softmax_attention", softmax_attention, False),
    ("embedding", embedding, False),
    ("indexing", indexing, False),
    ("comparison", comparison, False),
    ("casts_memory", casts_memory, True),
    ("rnn", rnn, False),
    ("misc", misc, False),
    ("creation", creation, True),
    ("structure", structure, False),
    ("after_convolution", after_convolution, False),
    ("newer_ops", newer, False),
    ("models", models, False),
]


# --------------------------------------------------------------------------------------------- main


def parse_options(argv):
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Make the corpus of op cases: documents, inputs and PyTorch's results.",
        epilog="""\
Examples:
  make_op_corpus.py -o testdata/ops
  make_op_corpus.py -o scratch --category pooling --category rnn

Needs PyTorch 1.13 (Debian: python3-torch). If this interpreter cannot import it, $PYTHON, python3
and /usr/bin/python3 are tried.

Exit status: 0 done; 1 a case cannot be made, or I/O; 2 wrong usage.""",
    )
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="folder to write to; made if missing"
    )
    parser.add_argument(
        "--category",
        action="append",
        metavar="NAME",
        choices=[name for name, _, _ in CATEGORIES],
        help="write this one only; repeatable (default: all)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all values (default %(default)s)")
    return parser.parse_args(argv)


def make_corpus(options):
    writers = {}
    total = 0
    for name, function, exact in CATEGORIES:
        if options.category and name not in options.category:
            continue
        category = Category(name, options.seed, exact)
        function(category)
        total += len(category.cases)
        print(f"{PROGRAM}: {name}: {len(category.cases)} cases", file=sys.stderr)
        text, tensors = category.text(), category.tensors
        writers[f"{name}.json"] = lambda file, text=text: file.write(text.encode())
        writers[f"{name}.safetensors"] = lambda file, tensors=tensors: exporter.write_safetensors(
            file, tensors
        )
    exporter.write_files(options.output, writers)
    print(f"{PROGRAM}: {total} cases", file=sys.stderr)


def main(argv):
    global torch
    options = parse_options(argv)
    try:
        exporter.PROGRAM = PROGRAM
        exporter.__file__ = os.path.abspath(__file__)  # what to run again with another interpreter
        exporter.load_torch(False)
        torch = exporter.torch
        torch.set_num_threads(1)
        torch.manual_seed(options.seed)
        with torch.no_grad():
            make_corpus(options)
    except exporter.UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""Tiny networks, each for some part of the IR format or for one family of fusion patterns.

MODELS lists the functions of which testdata/models/small/ holds complete exports.
"""

import torch
import torch.nn.functional as F
from torch import nn


def conv_bn(inputs, outputs, kernel=3, stride=1, groups=1, padding=None):
    padding = kernel // 2 if padding is None else padding
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


# ------------------------------------------------------------------------------- convolution networks


class Residual(nn.Module):
    """Two basic blocks as in ResNet: add_ and relu_ in place, a shortcut with and without conv."""

    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 8, 7, 2)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.first_1, self.first_2 = conv_bn(8, 8), conv_bn(8, 8)
        self.second_1, self.second_2 = conv_bn(8, 16, stride=2), conv_bn(16, 16)
        self.shortcut = conv_bn(8, 16, 1, 2)
        self.fc = nn.Linear(16, 10)

    @staticmethod
    def block(first, second, x, shortcut):
        out = second(F.relu(first(x), inplace=True))
        out += shortcut
        return F.relu(out, inplace=True)

    def forward(self, x):
        x = self.pool(F.relu(self.stem(x), inplace=True))
        x = self.block(self.first_1, self.first_2, x, x)
        x = self.block(self.second_1, self.second_2, x, self.shortcut(x))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, (1, 1)), 1))


class Depthwise(nn.Module):
    """Inverted residuals as in MobileNetV2: depthwise + pointwise convs with hardtanh_."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, 8, stride=2), nn.ReLU6(inplace=True))
        self.expand = nn.Sequential(conv_bn(8, 24, 1), nn.ReLU6(inplace=True))
        self.depthwise = nn.Sequential(conv_bn(24, 24, groups=24), nn.ReLU6(inplace=True))
        self.project = conv_bn(24, 8, 1)
        self.down = nn.Sequential(conv_bn(8, 8, stride=2, groups=8), nn.ReLU6())
        self.fc = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.project(self.depthwise(self.expand(x)))
        return self.fc(self.down(x).mean([2, 3]))


class SqueezeExcite(nn.Module):
    """Channel gates with silu, sigmoid, hardswish and hardsigmoid."""

    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 16, stride=2)
        self.reduce, self.grow = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.middle = conv_bn(16, 16, 5, groups=16)
        self.reduce_2, self.grow_2 = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = F.silu(self.stem(x), inplace=True)
        gate = self.grow(F.silu(self.reduce(F.adaptive_avg_pool2d(x, 1))))
        x = torch.sigmoid(gate) * x
        x = F.hardswish(self.middle(x))
        gate = self.grow_2(F.relu(self.reduce_2(x.mean((2, 3), keepdim=True))))
        x = x * F.hardsigmoid(gate)
        return self.fc(x.mean((2, 3)))


class Inception(nn.Module):
    """Branches that meet in cat, with avg_pool2d and one-sided kernels; no single chain."""

    def __init__(self):
        super().__init__()
        self.stem = conv_bn(3, 8)
        self.branch_1 = conv_bn(8, 8, 1)
        self.branch_3 = nn.Sequential(conv_bn(8, 4, 1), nn.ReLU(True), conv_bn(4, 8))
        self.wide = nn.Conv2d(8, 4, (1, 7), padding=(0, 3))
        self.tall = nn.Conv2d(4, 4, (7, 1), padding=(3, 0))
        self.pooled = conv_bn(8, 4, 1)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.stem(x), inplace=True)
        parts = [
            F.relu(self.branch_1(x), inplace=True),
            F.relu(self.branch_3(x), inplace=True),
            F.relu(self.tall(self.wide(x))),
            self.pooled(F.avg_pool2d(x, 3, stride=1, padding=1)),
            F.max_pool2d(x, 3, stride=1, padding=1),
        ]
        x = torch.cat(parts, 1)
        x = F.avg_pool2d(x, 3, 2, ceil_mode=True, count_include_pad=False)
        return self.fc(x.mean((2, 3)))


class ConvKinds(nn.Module):
    """Every kind of convolution: 1-D, 3-D, transposed, dilated, grouped, padding by name."""

    def __init__(self):
        super().__init__()
        self.dilated = nn.Conv2d(4, 8, 3, padding=2, dilation=2)
        self.grouped = nn.Conv2d(8, 8, 3, padding="same", groups=2)
        self.strided = nn.Conv2d(8, 6, (3, 2), stride=(2, 1), padding=(1, 0), bias=False)
        self.up = nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1)
        self.line = nn.Conv1d(4, 4, 3, padding=1)
        self.volume = nn.Conv3d(1, 2, 3, padding=1)

    def forward(self, x):
        y = self.up(self.strided(self.grouped(self.dilated(x))))
        return self.line(y.flatten(2)), self.volume(y.unsqueeze(1)).amax(dim=1)


# ----------------------------------------------------------------------------- dense and attention


class Mlp(nn.Module):
    """linear, addmm with its own alpha and beta, gelu both ways, layer_norm with and without weights."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(24, 48)
        self.norm = nn.LayerNorm(48)
        self.weight = nn.Parameter(torch.randn(48, 24) * 0.1)
        self.bias = nn.Parameter(torch.randn(24) * 0.1)
        self.last = nn.Linear(24, 10, bias=False)

    def forward(self, x):
        x = self.norm(F.gelu(self.first(x)))
        x = torch.addmm(self.bias, x, self.weight, beta=0.5, alpha=2.0)
        x = F.layer_norm(F.gelu(x, approximate="tanh"), [24], eps=1e-6)
        return torch.log_softmax(self.last(x), dim=-1)


def attention(query, key, value, mask):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return torch._C._nn._scaled_dot_product_attention(query, key, value, mask)[0]


class SelfAttention(nn.Module):
    """Attention twice: as one op with an additive mask, and written out with matmul and softmax."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.qkv_1, self.qkv_2 = nn.Linear(32, 96), nn.Linear(32, 96)
        self.out_1, self.out_2 = nn.Linear(32, 32), nn.Linear(32, 32)
        mask = torch.full((12, 12), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    @staticmethod
    def heads(qkv):
        batch, tokens, width = qkv.shape
        return qkv.reshape(batch, tokens, 3, 4, width // 12).permute(2, 0, 3, 1, 4).unbind(0)

    def forward(self, x):
        context = attention(*self.heads(self.qkv_1(self.norm(x))), self.mask)
        x = x + self.out_1(context.transpose(1, 2).flatten(2))
        query, key, value = self.heads(self.qkv_2(x))
        scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
        context = torch.softmax(scores + self.mask, dim=-1) @ value
        return x + self.out_2(context.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    """PyTorch's own encoder layer, whose fused eval kernel must not appear, with a padding mask."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(24, 2, 32, batch_first=True)

    def forward(self, x, padding):
        return self.layer(x, src_key_padding_mask=padding)


class Lstm(nn.Module):
    """A two-layer LSTM: Tensor[] arguments and three outputs."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True)
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        y, (hidden, cell) = self.lstm(x)
        return self.fc(y), hidden, cell


class Gru(nn.Module):
    """A bidirectional GRU with a given initial state; only its first output is used."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 8, bidirectional=True)

    def forward(self, x, state):
        return torch.tanh(self.gru(x, state)[0])


# ------------------------------------------------------------------------------ parts of the format


class TiedWeights(nn.Module):
    """One tensor under two state-dict keys, read three times."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.head = nn.Linear(16, 20, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(x) + F.linear(x.relu(), self.embedding.weight)


class SeveralOutputs(nn.Module):
    """Outputs in a dict and a list; one is also read further on, one is a reshaped input."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return {"hidden": hidden, "heads": [self.second(hidden), hidden.sum(-1)], "flat": x.reshape(-1)}


class MultiOutput(nn.Module):
    """Two inputs; ops with several outputs, some unused: split, chunk, unbind, topk, max, var_mean."""

    def forward(self, left, right):
        a, b, c = torch.split(left, [2, 3, 3], dim=1)
        d, _ = right.chunk(2, dim=1)
        values, indices = torch.topk(left, 3, dim=1)
        largest, where = right.max(dim=1)
        smallest = left.min(dim=0, keepdim=True).values
        first, _, last, _ = left.unbind(0)
        variance, mean = torch.var_mean(left, dim=1, unbiased=False)
        return a.sum(1) + d.sum(1), torch.cat([b, c], 1), values * 2, indices, largest, where, (
            smallest + first * last
        ), variance / (mean.abs() + 1.0)


class PlainNorms(nn.Module):
    """Normalisation without affine parameters: None stands before other tensors."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.batch = nn.BatchNorm2d(8, affine=False)
        self.bias = nn.Parameter(torch.randn(8) * 0.1)
        self.group = nn.GroupNorm(2, 8, affine=False)
        self.affine_group = nn.GroupNorm(4, 8)

    def forward(self, x):
        x = torch.relu(self.batch(self.conv(x)))
        # A bias without a weight: None in the middle.
        x = F.batch_norm(x, self.batch.running_mean, self.batch.running_var, None, self.bias)
        x = self.affine_group(self.group(x))
        return F.layer_norm(x, [6, 6]), F.instance_norm(x)


class LiftedConstants(nn.Module):
    """Constants from an attribute, from torch.tensor in forward, and from creation ops."""

    def __init__(self):
        super().__init__()
        self.scale = torch.tensor([0.5, 1.0, 2.0, float("inf")])
        self.rows = torch.tensor([3, 0, 2])
        self.register_buffer("shift", torch.tensor([0.25, -0.25, 0.0, 1.0]))

    def forward(self, x):
        x = torch.minimum(x * self.shift + torch.tensor([1.0, 2.0, 3.0, 4.0]), self.scale)
        x = x.index_select(0, self.rows)
        ramp = torch.arange(4, dtype=torch.float32)
        keep = torch.tensor([True, False, True, True])
        return torch.where(keep, x + ramp, torch.zeros(3, 4)), torch.full((2, 2), 7, dtype=torch.int64)


class IndexNone(nn.Module):
    """Advanced indexing with None in its Tensor?[] argument, and index_put."""

    def __init__(self):
        super().__init__()
        self.register_buffer("columns", torch.tensor([4, 1, 1]))
        self.register_buffer("rows", torch.tensor([[0], [2]]))

    def forward(self, x):
        a = x[:, self.columns]
        b = x[:, :, self.columns]
        c = x[self.rows, :, self.columns]
        d = x.index_put((self.rows[:, 0],), x[0] * 0.5, accumulate=True)
        return a, b, c, d


class InPlaceReader(nn.Module):
    """In-place ops whose input has another reader: before, after, and through a view."""

    def forward(self, x):
        y = x * 2.0
        before = y - 1.0
        view = y.view(-1)
        y.relu_()
        y.add_(x, alpha=0.5)
        after = view * 3.0
        kept = x + 1.0
        z = kept.sigmoid()
        kept.mul_(z)
        return before, after, kept + z


class InPlaceView(nn.Module):
    """Writes into parts of a tensor, which become scatters."""

    def forward(self, x):
        y = x.clone()
        y[:, 0] = 1.5
        y[1:3, 2:] *= 2.0
        y.transpose(0, 1)[3].clamp_(min=-0.5)
        first, second = y.chunk(2, dim=1)
        total = first + second
        y[:, 1].copy_(total[:, 0])
        return y, total


class ScalarMath(nn.Module):
    """Scalar operands on both sides, None and infinite arguments, comparisons."""

    def forward(self, x):
        a = (1 - x) * 3 + x / 4
        b = 2.0 / (x.abs() + 1) - x**2 + 2**x
        c = torch.clamp(a, max=1.0) + torch.clamp(b, -0.5)
        d = x.masked_fill(x > 0.5, float("-inf"))
        e = torch.where(x <= 0, x, 0.25 * x).floor() // 2
        return c, torch.softmax(d, -1), e, (x != 0) & ~(x >= 1), torch.nan_to_num(d, neginf=-9.0)


class Dtypes(nn.Module):
    """Conversions between dtypes, and integer and bool arithmetic."""

    def forward(self, x, n):
        half = x.to(torch.bfloat16) * 1.5
        wide = half.double() + n
        small = (x * 10).to(torch.int8)
        return half, wide, small, (n % 3 == 0).any(dim=0), n.float().to(x.dtype) @ x, small.sum()


class Shapes(nn.Module):
    """Ops that move elements: permute, slice, expand, pad, stack, roll, unfold, interpolate."""

    def forward(self, x):
        y = x.permute(0, 2, 3, 1).contiguous()[:, 1:-1, ::2]
        z = F.pad(x, (1, 1, 0, 2), value=0.5).roll((1, -1), (2, 3))
        up = F.interpolate(x, scale_factor=2, mode="nearest")
        smooth = F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=False)
        stacked = torch.stack([x[:, 0], x[:, 1]], dim=-1).squeeze(0)
        wide = x.mean(1, keepdim=True).expand(-1, 3, -1, -1).reshape(1, -1)
        return y, z, up, smooth, stacked, wide, F.pixel_shuffle(z, 2)


class Empty(nn.Module):
    """No op at all: an input that is an output."""

    def forward(self, x):
        return x


# --------------------------------------------------------------------------------------------- SPECs


def residual(batch=1):
    return Residual(), (torch.randn(batch, 3, 32, 32),)


def residual_bf16(batch=1):
    return Residual().bfloat16(), (torch.randn(batch, 3, 32, 32).bfloat16(),)


def depthwise(batch=1):
    return Depthwise(), (torch.randn(batch, 3, 24, 24),)


def squeeze_excite(batch=1):
    return SqueezeExcite(), (torch.randn(batch, 3, 24, 24),)


def inception(batch=1):
    return Inception(), (torch.randn(batch, 3, 16, 16),)


def conv_kinds(batch=1):
    return ConvKinds(), (torch.randn(batch, 4, 8, 10),)


def mlp(batch=4):
    return Mlp(), (torch.randn(batch, 24),)


def mlp_bf16(batch=4):
    return Mlp().bfloat16(), (torch.randn(batch, 24).bfloat16(),)


def self_attention(batch=2):
    return SelfAttention(), (torch.randn(batch, 12, 32),)


def encoder(batch=2):
    padding = torch.zeros(batch, 9, dtype=torch.bool)
    padding[-1, 6:] = True
    return Encoder(), (torch.randn(batch, 9, 24), padding)


def lstm(batch=2):
    return Lstm(), (torch.randn(batch, 7, 8),)


def gru(batch=3):
    return Gru(), (torch.randn(5, batch, 6), torch.randn(2, batch, 8))


def tied_weights(batch=2):
    return TiedWeights(), (torch.randint(0, 20, (batch, 6)),)


def several_outputs(batch=3):
    return SeveralOutputs(), (torch.randn(batch, 8),)


def multi_output():
    return MultiOutput(), (torch.randn(4, 8), torch.randn(4, 6))


def plain_norms(batch=2):
    return PlainNorms(), (torch.randn(batch, 3, 6, 6),)


def lifted_constants():
    return LiftedConstants(), (torch.randn(4, 4),)


def index_none():
    return IndexNone(), (torch.randn(3, 5, 6),)


def in_place_reader():
    return InPlaceReader(), (torch.randn(3, 5),)


def in_place_view():
    return InPlaceView(), (torch.randn(4, 6),)


def scalar_math():
    return ScalarMath(), (torch.randn(3, 7),)


def dtypes():
    return Dtypes(), (torch.randn(5, 5), torch.randint(-20, 20, (5, 5)))


def shapes():
    return Shapes(), (torch.randn(1, 4, 6, 8),)


def empty():
    return Empty(), (torch.randn(2, 3),)


MODELS = [
    residual,
    residual_bf16,
    depthwise,
    squeeze_excite,
    inception,
    conv_kinds,
    mlp,
    mlp_bf16,
    self_attention,
    encoder,
    lstm,
    gru,
    tied_weights,
    several_outputs,
    multi_output,
    plain_norms,
    lifted_constants,
    index_none,
    in_place_reader,
    in_place_view,
    scalar_math,
    dtypes,
    shapes,
    empty,
]

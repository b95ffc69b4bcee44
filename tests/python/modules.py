# SPDX-License-Identifier: Apache-2.0
"""Modules in the forms of today: what libraries of models write, in plain PyTorch.

graphs/NAME.txt is what torch.export makes of the function NAME here. Each returns (model, args, kwargs).
"""

import collections
import dataclasses
import functools
import typing

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LENGTH, WORDS = 16, 2, 6, 32
HAS_ATTENTION = hasattr(F, "scaled_dot_product_attention")  # asked now: while the exporter traces, 1.13 has some of it


@dataclasses.dataclass
class EncoderOutput(collections.OrderedDict):
    """A mapping of the fields that are not None, as the results of transformers' models are."""

    last_hidden_state: torch.Tensor = None
    pooler_output: typing.Optional[torch.Tensor] = None
    hidden_states: typing.Optional[tuple] = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)


class Attention(nn.Module):
    def __init__(self, heads_of_keys=HEADS):
        super().__init__()
        self.heads_of_keys = heads_of_keys
        keys = WIDTH // HEADS * heads_of_keys
        self.q, self.k, self.v = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, keys), nn.Linear(WIDTH, keys)
        self.o = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask, rotate=None):
        shape = (*x.shape[:-1], -1, WIDTH // HEADS)
        q, k, v = (linear(x).view(shape).transpose(1, 2) for linear in (self.q, self.k, self.v))
        if rotate is not None:
            q, k = rotate(q), rotate(k)
        if self.heads_of_keys < HEADS:
            k, v = repeated(k), repeated(v)
        y = attend(q, k, v, mask)
        return self.o(y.transpose(1, 2).reshape(*x.shape[:-1], -1).contiguous())


def attend(q, k, v, mask):
    if HAS_ATTENTION:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=q.shape[-1] ** -0.5)
    scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ v


def repeated(x):
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, HEADS // heads, length, width).reshape(batch, HEADS, length, width)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm_1, self.norm_2 = Attention(), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, mask):
        x = self.norm_1(x + self.attention(x, mask))
        return self.norm_2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.register_buffer("position_ids", torch.arange(LENGTH).expand(1, -1), persistent=False)
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, input_ids=None, attention_mask=None, output_hidden_states=False):
        x = self.words(input_ids) + self.places(self.position_ids[:, : input_ids.shape[1]])
        mask = attention_mask[:, None, None, :].to(torch.bool).expand(-1, 1, input_ids.shape[1], -1)
        states = (x,)
        for layer in self.layers:
            x = layer(x, mask)
            states = (*states, x)
        return EncoderOutput(x, None, states if output_hidden_states else None)


def encoder():
    """A text encoder with a mask; of its results one is None, and one is a tuple."""
    mask = torch.ones(1, LENGTH, dtype=torch.int64)
    mask[:, -1] = 0
    inputs = {"input_ids": torch.randint(WORDS, (1, LENGTH)), "attention_mask": mask, "output_hidden_states": True}
    return Encoder(), (), inputs


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        width = WIDTH // HEADS
        self.register_buffer("inv_freq", 1 / 10000 ** (torch.arange(0, width, 2) / width), persistent=False)

    @torch.no_grad()
    def forward(self, x, positions):
        frequencies = self.inv_freq[None, :, None].float().expand(positions.shape[0], -1, 1).to(x.device)
        with torch.autocast(device_type="cpu", enabled=False):
            angles = (frequencies.float() @ positions[:, None, :].float()).transpose(1, 2)
            angles = torch.cat((angles, angles), dim=-1)
            cos, sin = angles.cos(), angles.sin()
        return cos.to(dtype=x.dtype), sin.to(dtype=x.dtype)


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        kind = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(kind)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.rotary = nn.Embedding(WORDS, WIDTH), Rotary()
        self.norm_1, self.attention, self.norm_2 = RMSNorm(), Attention(1), RMSNorm()
        self.gate, self.up, self.down = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, input_ids, position_ids):
        x = self.words(input_ids)
        cos, sin = self.rotary(x, position_ids)
        mask = torch.arange(input_ids.shape[1]) <= torch.arange(input_ids.shape[1])[:, None]

        def rotate(y):
            first, second = y.chunk(2, dim=-1)
            return y * cos[:, None] + torch.cat((-second, first), dim=-1) * sin[:, None]

        x = x + self.attention(self.norm_1(x), mask[None, None], rotate)
        y = self.norm_2(x)
        x = x + self.down(F.silu(self.gate(y)) * self.up(y))
        return {"logits": self.head(x)}


def decoder():
    """Grouped heads, and a table of rotations without gradients and autocast."""
    positions = torch.arange(LENGTH)[None]
    return Decoder(), (torch.randint(WORDS, (1, LENGTH)),), {"position_ids": positions}


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
            y = torch.softmax(self.first(x), dim=-1)
            with torch.autocast(device_type="cpu", enabled=False):
                y = y + self.second(x)
            return torch.cat([y, self.second(y)], dim=-1)


def mixed():
    """Products in bfloat16, the rest in float32, as autocast has it."""
    return Mixed(), (torch.randn(3, WIDTH),), {}


class Experts(nn.Module):
    """Tokens sorted by expert, and one grouped product for all of them."""

    def __init__(self, count=4):
        super().__init__()
        self.count, self.gate = count, nn.Linear(WIDTH, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, 2 * WIDTH, WIDTH) / 4)
        self.down = nn.Parameter(torch.randn(count, WIDTH, WIDTH) / 4)

    def forward(self, hidden_states):
        x = hidden_states.reshape(-1, WIDTH)
        weights, chosen = torch.topk(self.gate(x).softmax(-1, dtype=torch.float32), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        experts, order = torch.sort(chosen.reshape(-1), stable=True)
        counts = torch.histc(experts.float(), bins=self.count, min=0, max=self.count - 1)
        ends = counts.cumsum(0, dtype=torch.int32)
        gate, up = grouped(x[order // 2], self.up.transpose(-2, -1), ends).chunk(2, dim=-1)
        y = grouped(F.silu(gate) * up, self.down.transpose(-2, -1), ends) * weights.reshape(-1)[order][:, None]
        result = torch.zeros_like(x)
        result.index_add_(0, order // 2, y)
        return result.reshape(hidden_states.shape)


def grouped(a, b, ends):
    """Each row by the matrix of its group, by the op that transformers has for it on CPUs."""
    if hasattr(torch.library, "custom_op"):
        return grouped_op()(a, b, ends)
    rows = torch.arange(a.shape[0])
    return (a[:, None] @ b[(rows[:, None] >= ends).sum(-1)])[:, 0]


@functools.lru_cache()
def grouped_op():
    def product(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
        result, begin = input.new_zeros(input.shape[0], weight.shape[2]), 0
        for group, end in enumerate(offs.tolist()):
            result[begin:end] = input[begin:end] @ weight[group]
            begin = end
        return result

    op = torch.library.custom_op("transformers::grouped_mm_fallback", product, mutates_args=())
    op.register_fake(lambda input, weight, offs: input.new_empty(input.shape[0], weight.shape[2]))
    return op


def experts():
    """A mixture of four experts, of which each token has two."""
    return Experts(), (torch.randn(1, LENGTH, WIDTH),), {}


# ---------------------------------------------------------------------------------------------------------- graphs

NODES = 5
EDGES = torch.tensor([[0, 1, 2, 2, 3, 1, 0, 4], [1, 0, 1, 3, 2, 1, 3, 3]])


def by_target(rows, target, nodes, reduce="sum"):
    """What edges bring to each node, as PyTorch Geometric's scatter() computes it."""
    index = target.view(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
    zeros = rows.new_zeros((nodes, *rows.shape[1:]))
    if reduce == "max":
        return zeros.scatter_reduce_(0, index, rows, reduce="amax", include_self=False)
    total = zeros.scatter_add_(0, index, rows)
    if reduce == "sum":
        return total
    count = rows.new_zeros(nodes)
    count.scatter_add_(0, target, rows.new_ones(rows.shape[0]))
    return total / count.clamp(min=1).view(-1, *[1] * (rows.dim() - 1))


def with_remaining_loops(edges, nodes):
    loops = torch.arange(nodes).view(1, -1).repeat(2, 1)
    return torch.cat([edges[:, edges[0] != edges[1]], loops], dim=1)


class SAGEConv(nn.Module):
    """These three do what PyTorch Geometric's of the same names do, with the same weights, where that is not installed."""

    def __init__(self, inputs, outputs, aggr="mean", normalize=False):
        super().__init__()
        self.aggr, self.normalize = aggr, normalize
        self.lin_l, self.lin_r = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, x, edge_index):
        rows = x.index_select(0, edge_index[0])
        y = self.lin_l(by_target(rows, edge_index[1], x.shape[0], self.aggr)) + self.lin_r(x)
        return F.normalize(y, dim=-1) if self.normalize else y


class GCNConv(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin, self.bias = nn.Linear(inputs, outputs, bias=False), nn.Parameter(torch.randn(outputs))

    def forward(self, x, edge_index, edge_weight=None):
        edges = with_remaining_loops(edge_index, x.shape[0])
        weight = torch.ones(edges.shape[1])
        if edge_weight is not None:
            weight = torch.cat([edge_weight[edge_index[0] != edge_index[1]], torch.ones(x.shape[0])])
        scale = by_target(weight, edges[1], x.shape[0]).pow_(-0.5)
        scale.masked_fill_(scale == float("inf"), 0)
        weight = scale[edges[0]] * weight * scale[edges[1]]
        rows = weight.view(-1, 1) * self.lin(x).index_select(0, edges[0])
        return by_target(rows, edges[1], x.shape[0]) + self.bias


class GATConv(nn.Module):
    def __init__(self, inputs, outputs, heads=1, concat=True):
        super().__init__()
        self.heads, self.concat, self.lin = heads, concat, nn.Linear(inputs, heads * outputs, bias=False)
        self.att_src, self.att_dst = (nn.Parameter(torch.randn(1, heads, outputs)) for _ in range(2))
        self.bias = nn.Parameter(torch.randn(heads * outputs if concat else outputs))

    def forward(self, x, edge_index):
        edges = with_remaining_loops(edge_index, x.shape[0])
        h = self.lin(x).view(-1, self.heads, self.lin.out_features // self.heads)
        score = (h * self.att_src).sum(-1).index_select(0, edges[0]) + (h * self.att_dst).sum(-1).index_select(0, edges[1])
        score = F.leaky_relu(score, 0.2)
        most = by_target(score.detach(), edges[1], x.shape[0], "max").index_select(0, edges[1])
        power = (score - most).exp()
        total = by_target(power, edges[1], x.shape[0]) + 1e-16
        rows = (power / total.index_select(0, edges[1])).unsqueeze(-1) * h.index_select(0, edges[0])
        y = by_target(rows, edges[1], x.shape[0])
        return (y.view(x.shape[0], -1) if self.concat else y.mean(1)) + self.bias


def conv(name):
    try:
        import torch_geometric.nn

        return getattr(torch_geometric.nn, name)
    except ImportError:
        return globals()[name]


class Network(nn.Module):
    def __init__(self, first, second, function=F.relu, last=None):
        super().__init__()
        self.conv1, self.conv2, self.function, self.last = first, second, function, last

    def forward(self, x, edge_index):
        x = self.function(self.conv1(x, edge_index))
        x = self.conv2(F.dropout(x, training=self.training), edge_index)
        return self.last(x) if self.last else x


def network(first, second, *functions):
    return Network(first, second, *functions), (torch.randn(NODES, 6), EDGES), {}


def sage():
    return network(conv("SAGEConv")(6, 8), conv("SAGEConv")(8, 4))


def sage_max():
    return network(conv("SAGEConv")(6, 8, aggr="max"), conv("SAGEConv")(8, 4, aggr="max"))


def gcn():
    return network(conv("GCNConv")(6, 8), conv("GCNConv")(8, 4), F.relu, lambda x: F.log_softmax(x, dim=1))


def gat():
    return network(conv("GATConv")(6, 4, heads=2), conv("GATConv")(8, 4, heads=1), F.elu)


GRAPHS = ["encoder", "decoder", "mixed", "experts", "sage", "sage_max", "gcn", "gat"]

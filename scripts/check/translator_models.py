# SPDX-License-Identifier: Apache-2.0
"""Encoders with decoders of random weights, computed the way that today's libraries do and exporters trace it.

CONFIGS has a tiny one of each kind: T5 (biases of scores by buckets of distances, made in the first layer and passed on),
BART, Marian, Pegasus and M2M100 (positions learned, sinusoidal, or counted from ids; norms before or behind) and Whisper
(convolutions over features). Attention is written as bmm of planes, as matmul, or as exporters write the op; masks as a
condition, by triu, or concatenated; positions are given, or made of the number of past rows.

export() writes the files that optimum does: encoder_model.onnx, decoder_model.onnx for the first step,
decoder_with_past_model.onnx for others. reference() says what PyTorch chooses.
"""

import math
import os
import warnings

import torch
from torch import nn

functional = nn.functional
LOWEST = torch.finfo(torch.float32).min
PARTS = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")


class Config:
    def __init__(self, kind, **changes):
        self.kind = kind
        self.width, self.heads, self.size, self.inner, self.layers, self.words, self.gain = 16, 2, 8, 32, 2, 53, 1.5
        self.any_steps = False  # steps of any number of tokens, not of one
        self.places, self.offset, self.scale = 64, 2, 1.0  # of tables by position; of embeddings
        self.gated = False  # of T5
        self.counted = False  # of T5: positions by cache_position, as later versions have it
        self.post, self.sinus, self.key_bias = True, False, True
        self.attention, self.positions, self.mask = "bmm", "arange", "condition"
        self.features = 0  # of a sound; 0: the source is ids
        self.given_positions = False
        self.__dict__.update(changes)


def t5(**changes):
    return Config(T5, **changes)


def bart(**changes):
    return Config(Bart, **changes)


def marian(**changes):
    return bart(**{"sinus": True, "offset": 0, "scale": 4.0, **changes})


def whisper(**changes):
    return bart(
        **{"features": 4, "post": False, "offset": 0, "key_bias": False, "places": 96, "positions": "slice", **changes}
    )


def linear(inputs, outputs, has_bias=True, gain=1.0):
    layer = nn.Linear(inputs, outputs, bias=has_bias)
    layer.weight.data = gain * torch.randn(outputs, inputs) / inputs**0.5
    if has_bias:
        layer.bias.data = 0.2 * torch.randn(outputs)
    return layer


def layer_norm(width):
    norm = nn.LayerNorm(width)
    norm.weight.data += 0.2 * torch.randn(width)
    norm.bias.data += 0.2 * torch.randn(width)
    return norm


# ---- T5 ----


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.2 * torch.randn(width))

    def forward(self, x):
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6))


def bucket_of(apart, both_ways, count=8, farthest=20):
    """Exact ones for near keys, wider ones by the logarithm for others."""
    result = 0
    if both_ways:
        count //= 2
        result = result + (apart > 0).to(torch.long) * count
        apart = torch.abs(apart)
    else:
        apart = -torch.min(apart, torch.zeros_like(apart))
    exact = count // 2
    far = exact + (torch.log(apart.float() / exact) / math.log(farthest / exact) * (count - exact)).to(torch.long)
    far = torch.min(far, torch.full_like(far, count - 1))
    return result + torch.where(apart < exact, apart, far)


class T5Attention(nn.Module):
    def __init__(self, config, is_decoder, has_bias):
        super().__init__()
        self.config, self.is_decoder, self.has_bias = config, is_decoder, has_bias
        inner = config.heads * config.size
        self.query, self.key, self.value = (linear(config.width, inner, False, config.gain) for _ in range(3))
        self.out = linear(inner, config.width, False, config.gain)
        if has_bias:
            self.table = nn.Embedding(8, config.heads)
            self.table.weight.data *= 2

    def bias_of(self, rows, keys, places):
        row = (torch.arange(rows, dtype=torch.long) if places is None else places)[:, None]
        key = torch.arange(keys, dtype=torch.long)[None, :]
        return self.table(bucket_of(key - row, not self.is_decoder)).permute([2, 0, 1]).unsqueeze(0)

    def forward(self, x, mask, source=None, past=None, bias=None, all_rows=None, places=None):
        """`all_rows` are those of the decoder's own keys, which cross attention is told."""
        config = self.config
        batch, new = x.shape[:2]
        heads = lambda y: y.view(batch, -1, config.heads, config.size).transpose(1, 2)
        query = heads(self.query(x))
        is_cross = source is not None or all_rows is not None
        if is_cross and past is not None:
            key, value = past
        else:
            key, value = (heads(part(source if is_cross else x)) for part in (self.key, self.value))
        rows = new
        if past is not None:
            rows = rows + (all_rows if is_cross else past[0].shape[2])
            if not is_cross:
                key, value = (torch.cat([old, fresh], dim=2) for old, fresh in zip(past, (key, value)))
        scores = torch.matmul(query, key.transpose(3, 2))
        if bias is None:
            keys = key.shape[2] if is_cross else rows
            if self.has_bias:
                bias = self.bias_of(rows, keys, places if config.counted else None)
            else:
                bias = torch.zeros((1, config.heads, new if config.counted else rows, keys))
            if past is not None or (config.counted and self.has_bias):
                bias = bias[:, :, -x.size(1) :, :]
            bias = bias + (mask[:, :, :, : key.shape[-2]] if config.counted else mask)
        weights = functional.softmax((scores + bias).float(), dim=-1).type_as(scores)
        mixed = torch.matmul(weights, value).transpose(1, 2).contiguous()
        return self.out(mixed.view(batch, -1, config.heads * config.size)), (key, value), bias


class T5Feed(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = RmsNorm(config.width)
        self.wide = linear(config.width, config.inner, False)
        self.gate = linear(config.width, config.inner, False) if config.gated else None
        self.out = linear(config.inner, config.width, False)

    def forward(self, x):
        y = self.norm(x)
        wide = self.wide(y)
        if self.gate is None:
            return x + self.out(functional.relu(wide))
        bent = torch.tanh(math.sqrt(2.0 / math.pi) * (wide + 0.044715 * torch.pow(wide, 3.0)))
        return x + self.out(0.5 * wide * (1.0 + bent) * self.gate(y))


class T5(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.words, config.width)
        norm = lambda: RmsNorm(config.width)
        self.encoder = nn.ModuleList(
            nn.ModuleList([norm(), T5Attention(config, False, i == 0), T5Feed(config)]) for i in range(config.layers)
        )
        self.decoder = nn.ModuleList(
            nn.ModuleList(
                [norm(), T5Attention(config, True, i == 0), norm(), T5Attention(config, True, False), T5Feed(config)]
            )
            for i in range(config.layers)
        )
        self.encoder_norm, self.decoder_norm = norm(), norm()

    def source_mask(self, mask):
        return (1.0 - mask[:, None, None, :].to(torch.float32)) * LOWEST

    def encode(self, ids, mask):
        x = self.words(ids)
        hidden, bias = self.source_mask(mask), None
        for norm, attention, feed in self.encoder:
            mixed, _, bias = attention(norm(x), hidden, bias=bias)
            x = feed(x + mixed)
        return self.encoder_norm(x)

    def mask_of(self, batch, new, past_rows, has_past, places):
        if self.config.counted:
            hidden = torch.full((new, past_rows + new), fill_value=LOWEST)
            if self.config.any_steps or new != 1:
                hidden = torch.triu(hidden, diagonal=1)
            hidden = hidden * (torch.arange(past_rows + new) > places.reshape(-1, 1))
            return hidden[None, None, :, :].expand(batch, 1, -1, -1)
        given = torch.ones(batch, past_rows + new)
        order = torch.arange(new)
        seen = (order[None, None, :].repeat(batch, new, 1) <= order[None, :, None]).to(given.dtype)
        if has_past:
            seen = torch.cat([torch.ones((batch, new, given.shape[1] - new)), seen], axis=-1)
        return (1.0 - seen[:, None, :, :] * given[:, None, None, :]) * LOWEST

    def decode(self, ids, source, mask, past, places=None):
        x = self.words(ids)
        batch, new = ids.shape
        past_rows = past[0][0].shape[2] if past is not None else 0
        if places is None:
            places = torch.arange(past_rows, past_rows + new)
        hidden = self.mask_of(batch, new, past_rows, past is not None, places)
        unseen = self.source_mask(mask)
        bias = cross_bias = None
        present = []
        for i, (norm, attention, cross_norm, cross, feed) in enumerate(self.decoder):
            own, given = (None, None) if past is None else (past[i][:2], past[i][2:])
            mixed, kept, bias = attention(norm(x), hidden, past=own, bias=bias, places=places)
            x = x + mixed
            mixed, crossed, cross_bias = cross(
                cross_norm(x), unseen, source=source, past=given, bias=cross_bias, all_rows=kept[0].shape[2]
            )
            x = feed(x + mixed)
            present.append(kept + tuple(crossed))
        x = self.decoder_norm(x) * (self.config.width**-0.5)
        return functional.linear(x, self.words.weight), present


# ---- BART and its kin ----


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.key = linear(config.width, config.width, config.key_bias, config.gain)
        self.value, self.query = (linear(config.width, config.width, True, config.gain) for _ in range(2))
        self.out = linear(config.width, config.width)

    def forward(self, x, mask, source=None, past=None, is_cross=False):
        config = self.config
        batch, new, width = x.shape
        heads = lambda y: y.view(batch, -1, config.heads, config.size).transpose(1, 2).contiguous()
        if is_cross and past is not None:
            key, value = past
        else:
            key, value = (heads(part(source if is_cross else x)) for part in (self.key, self.value))
            if past is not None:
                key, value = (torch.cat([old, fresh], dim=2) for old, fresh in zip(past, (key, value)))
        kept = key, value
        scale = config.size**-0.5
        if config.attention == "bmm":  # of planes, batch and heads in one
            planes = lambda y: y.reshape(batch * config.heads, -1, config.size)
            query, key, value = planes(heads(self.query(x) * scale)), planes(key), planes(value)
            scores = torch.bmm(query, key.transpose(1, 2))
            if mask is not None:
                scores = scores.view(batch, config.heads, new, key.size(1)) + mask
                scores = scores.view(batch * config.heads, new, key.size(1))
            mixed = torch.bmm(functional.softmax(scores, dim=-1), value)
            mixed = mixed.view(batch, config.heads, new, config.size).transpose(1, 2)
        else:
            query = heads(self.query(x))
            if config.attention == "op":  # as exporters write the op
                scores = torch.matmul(query * math.sqrt(scale), key.transpose(2, 3) * math.sqrt(scale))
            else:
                scores = torch.matmul(query, key.transpose(2, 3)) * scale
            if mask is not None:
                scores = scores + mask[:, :, :, : key.shape[-2]]
            mixed = torch.matmul(functional.softmax(scores, dim=-1), value).transpose(1, 2).contiguous()
        return self.out(mixed.reshape(batch, new, width)), kept


class Bart(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.words, config.width)
        count = config.places + config.offset
        self.source_places, self.places = nn.Embedding(count, config.width), nn.Embedding(count, config.width)
        if config.sinus:
            angle = torch.arange(count)[:, None] / 10000 ** (torch.arange(0, config.width, 2)[None] / config.width)
            for table in (self.source_places, self.places):
                table.weight.data = torch.cat([torch.sin(angle), torch.cos(angle)], 1)
        self.encoder_norm, self.decoder_norm = layer_norm(config.width), layer_norm(config.width)
        norm = lambda: layer_norm(config.width)
        block = lambda: [
            norm(), Attention(config), norm(), linear(config.width, config.inner), linear(config.inner, config.width),
        ]  # fmt: skip
        self.encoder = nn.ModuleList(nn.ModuleList(block()) for _ in range(config.layers))
        self.decoder = nn.ModuleList(
            nn.ModuleList([*block(), norm(), Attention(config)]) for _ in range(config.layers)
        )
        if config.features:
            self.first = nn.Conv1d(config.features, config.width, 3, padding=1)
            self.second = nn.Conv1d(config.width, config.width, 3, stride=2, padding=1)
        self.register_buffer("head_bias", 0.1 * torch.randn(1, config.words))

    def part(self, x, norm, function):
        return norm(x + function(x)) if self.config.post else x + function(norm(x))

    def feed(self, wide, out):
        bend = functional.silu if self.config.sinus else functional.gelu
        return lambda y: out(bend(wide(y)))

    def source_mask(self, mask, rows):
        batch, keys = mask.shape
        hidden = 1.0 - mask[:, None, None, :].expand(batch, 1, rows, keys).to(torch.float32)
        return hidden.masked_fill(hidden.to(torch.bool), LOWEST)

    def encode(self, source, mask=None):
        config = self.config
        unseen = None
        if config.features:
            x = functional.gelu(self.second(functional.gelu(self.first(source)))).permute(0, 2, 1)
            x = x + self.source_places.weight
        else:
            batch, rows = source.shape
            place = torch.arange(0, rows, dtype=torch.long)
            if not config.sinus:
                place = place.expand(batch, -1)
            x = self.words(source) * config.scale + self.source_places(place + config.offset)
            if config.post and not config.sinus:
                x = self.encoder_norm(x)
            unseen = self.source_mask(mask, rows)
        for norm, attention, feed_norm, wide, out in self.encoder:
            x = self.part(x, norm, lambda y: attention(y, unseen)[0])
            x = self.part(x, feed_norm, self.feed(wide, out))
        return x if config.post else self.encoder_norm(x)

    def place_rows(self, ids, past_rows, places):
        config = self.config
        batch, new = ids.shape
        if config.positions == "slice":
            return self.places.weight[past_rows : past_rows + new]
        if config.positions == "ids":  # of ids that are no padding
            counts = ids.ne(1).int()
            count = (torch.cumsum(counts, dim=1).type_as(counts) + past_rows) * counts
            place = count.long() + 1
            return self.places.weight.index_select(0, place.view(-1)).view(batch, new, config.width)
        if config.positions == "counted":
            if config.features:
                return self.places.weight[places.unsqueeze(0)]
            return self.places(places.unsqueeze(0).expand(batch, -1) + config.offset)
        place = torch.arange(past_rows, past_rows + new, dtype=torch.long)
        return self.places(place if config.sinus else place.expand(batch, -1) + config.offset)

    def mask_of(self, batch, new, past_rows, has_past, places):
        config = self.config
        is_single = not config.any_steps and new == 1
        if config.mask == "triu":
            hidden = torch.full((new, past_rows + new), fill_value=LOWEST)
            if not is_single:
                hidden = torch.triu(hidden, diagonal=1)
            hidden = hidden * (torch.arange(past_rows + new) > places.reshape(-1, 1))
        elif config.mask == "none" and is_single:
            return None
        else:
            hidden = torch.full((new, new), LOWEST)
            order = torch.arange(hidden.size(-1))
            hidden = hidden.masked_fill(order < (order + 1).view(hidden.size(-1), 1), 0)
            if has_past:
                hidden = torch.cat([torch.zeros(new, past_rows), hidden], dim=-1)
        return hidden[None, None, :, :].expand(batch, 1, -1, -1)

    def decode(self, ids, source, mask, past, places=None):
        config = self.config
        batch, new = ids.shape
        past_rows = past[0][0].shape[2] if past is not None else 0
        if places is None:
            places = torch.arange(past_rows, past_rows + new)
        x = self.words(ids) * config.scale + self.place_rows(ids, past_rows, places)
        if config.post and not config.sinus:
            x = self.decoder_norm(x)
        hidden = self.mask_of(batch, new, past_rows, past is not None, places)
        unseen = None if mask is None else self.source_mask(mask, new)
        present = []
        for i, (norm, attention, feed_norm, wide, out, cross_norm, cross) in enumerate(self.decoder):
            own, given = (None, None) if past is None else (past[i][:2], past[i][2:])
            kept = []

            def attend(y, layer, mask, **options):
                mixed, rows = layer(y, mask, **options)
                kept.extend(rows)  # noqa: B023
                return mixed

            x = self.part(x, norm, lambda y: attend(y, attention, hidden, past=own))
            x = self.part(x, cross_norm, lambda y: attend(y, cross, unseen, source=source, past=given, is_cross=True))
            x = self.part(x, feed_norm, self.feed(wide, out))
            present.append(tuple(kept))
        if not config.post:
            x = self.decoder_norm(x)
        return functional.linear(x, self.words.weight) + self.head_bias, present


counted = {"positions": "counted", "mask": "triu"}
tiny = {"width": 8, "size": 4, "inner": 8, "layers": 1, "words": 31, "gain": 2.0, "any_steps": True}
CONFIGS = {
    "t5-tiny": t5(**tiny),
    "m2m-tiny": marian(offset=2, post=False, positions="ids", places=96, **tiny),
    "t5": t5(),
    "t5-steps": t5(any_steps=True),
    "t5-gated": t5(gated=True, size=4),
    "t5-counted": t5(counted=True),
    "t5-counted-steps": t5(counted=True, any_steps=True),
    "bart": bart(),
    "bart-unmasked": bart(mask="none"),
    "bart-steps": bart(any_steps=True),
    "bart-op": bart(attention="op", mask="none"),
    "bart-op-steps": bart(attention="op", any_steps=True, **counted),
    "bart-matmul": bart(attention="matmul", **counted),
    "marian": marian(),
    "marian-steps": marian(any_steps=True),
    "pegasus": marian(post=False),
    "m2m": marian(offset=2, post=False, positions="ids"),
    "m2m-steps": marian(offset=2, post=False, positions="ids", any_steps=True),
    "whisper": whisper(),
    "whisper-unmasked": whisper(mask="none"),
    "whisper-steps": whisper(any_steps=True),
    "whisper-op": whisper(attention="op", given_positions=True, **counted),
    "whisper-op-steps": whisper(attention="op", given_positions=True, any_steps=True, **counted),
    "whisper-matmul-steps": whisper(attention="matmul", any_steps=True, **counted),
}


def build(name, seed=0):
    torch.manual_seed(seed)
    config = CONFIGS[name]
    return config.kind(config).eval()


def flat(layers):
    return tuple(tensor for layer in layers for tensor in layer)


class Part(nn.Module):
    """A model whose forward() is any function of another one."""

    def __init__(self, model, function):
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *inputs):
        return self.function(self.model, *inputs)


def encode(model, *inputs):
    return model.encode(*inputs)


def first_step(model, ids, *rest):
    mask, source = rest if len(rest) == 2 else (None, rest[0])
    logits, present = model.decode(ids, source, mask, None)
    return (logits, *flat(present))


def later_step(model, *inputs):
    rest = list(inputs)
    mask = None if model.config.features else rest.pop(0)
    ids = rest.pop(0)
    places = rest.pop() if model.config.given_positions else None
    past = [tuple(rest[i : i + len(PARTS)]) for i in range(0, len(rest), len(PARTS))]
    logits, present = model.decode(ids, None, mask, past, places)
    return (logits, *(tensor for layer in present for tensor in layer[:2]))


def export(name, folder, opset=14):
    """The three files of one configuration."""
    warnings.filterwarnings("ignore")
    os.makedirs(folder, exist_ok=True)
    model = build(name)
    config = model.config
    batch, tokens, rows = "batch_size", "decoder_sequence_length", "encoder_sequence_length"

    def write(function, file, inputs, outputs, axes):
        names = [*inputs, *outputs]
        torch.onnx.export(
            Part(model, function), tuple(inputs.values()), f"{folder}/{file}.onnx", opset_version=opset,
            input_names=list(inputs), output_names=outputs, dynamic_axes={n: a for n, a in axes.items() if n in names},
        )  # fmt: skip

    count = config.places if config.features else 7
    if config.features:
        inputs = {"input_features": torch.randn(2, config.features, 2 * count)}
    else:
        inputs = {"input_ids": torch.randint(2, config.words, (2, count)), "attention_mask": torch.ones(2, count).long()}
    axes = {n: {0: batch, 1: rows} for n in ("input_ids", "attention_mask", "last_hidden_state")}
    axes["input_features"] = {0: batch, 2: rows}
    if config.features:
        axes["last_hidden_state"] = {0: batch}
    write(encode, "encoder_model", inputs, ["last_hidden_state"], axes)
    source = model.encode(*inputs.values()).detach()

    present = [f"present.{i}.{part}" for i in range(config.layers) for part in PARTS]
    own = [n for n in present if ".decoder." in n]
    axes = {n: {0: batch, 1: tokens} for n in ("input_ids", "logits")}
    axes |= {n: {0: batch, 1: rows} for n in ("encoder_attention_mask", "encoder_hidden_states")}
    axes |= {n: {0: batch, 2: tokens if n in own else f"{rows}_out"} for n in present}
    mask = {} if config.features else {"encoder_attention_mask": torch.ones(2, count).long()}
    ids = torch.randint(2, config.words, (2, 5))
    write(first_step, "decoder_model", {"input_ids": ids, **mask, "encoder_hidden_states": source}, ["logits", *present], axes)

    logits, kept = model.decode(ids, source, mask.get("encoder_attention_mask"), None)
    new = 3 if config.any_steps else 1
    past = {n.replace("present", "past_key_values"): tensor.detach() for n, tensor in zip(present, flat(kept))}
    places = {"cache_position": torch.arange(5, 5 + new)} if config.given_positions else {}
    if config.any_steps:
        axes["cache_position"] = {0: tokens}
    else:
        axes |= {n: {0: batch} for n in ("input_ids", "logits")}
    axes |= {n: {0: batch, 2: f"past_{tokens}" if ".decoder." in n else f"{rows}_out"} for n in past}
    axes |= {n: {0: batch, 2: f"past_{tokens} + {tokens if config.any_steps else 1}"} for n in own}
    inputs = {**mask, "input_ids": torch.randint(2, config.words, (2, new)), **past, **places}
    write(later_step, "decoder_with_past_model", inputs, ["logits", *own], axes)
    return model


@torch.no_grad()
def reference(model, source, count, start, ids_behind=()):
    """The ids that follow id `start`, the least margin with which one was chosen, and their negative log-likelihood.

    Ids that are given are read in place of those that are chosen."""
    if model.config.features:
        hidden, mask = model.encode(source), None
    else:
        mask = torch.ones(1, len(source)).long()
        hidden = model.encode(torch.tensor([source]), mask)
    ids, margin, likelihood, past = [start], float("inf"), 0.0, None
    for place in range(count):
        given = None if past is None else torch.tensor([place])
        logits, past = model.decode(torch.tensor([[ids[-1]]]), hidden if past is None else None, mask, past, given)
        best, second = torch.topk(logits[0, -1], 2).values
        ids.append(ids_behind[place] if ids_behind else int(logits[0, -1].argmax()))
        margin = min(margin, float(best - second))
        likelihood -= float(torch.log_softmax(logits[0, -1].double(), -1)[ids[-1]])
    return ids[1:], margin, likelihood

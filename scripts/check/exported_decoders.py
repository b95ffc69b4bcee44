#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that decoders which PyTorch's exporter wrote to ONNX, with caches that grow, choose the ids that PyTorch does.

The models are small, with random weights, and written as transformers wrote theirs: GPT-2, OPT, LLaMA, GPT-J, one head of
keys for all, Gemma 2, Falcon, GPT-NeoX, MPT, BLOOM, Qwen 3, Mistral, gpt-oss, GPT-BigCode, GPT-2 with stacks of
caches, GPT-Neo, CTRL, StableLM, and attentions of equations and of two softmaxes. What differs is how they mask, turn, cut
and stack.

Output: a line for each model and opset: "ok" with the bytes of states that were copied, or why not.
Exits 1 if one is wrong or refused.

Needs the programs in build/bin, or $BIN, and python3-torch.

Usage: exported_decoders.py [NAME...]
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.nn import functional as F

BIN = os.path.abspath(os.environ.get("BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin")))
VOCABULARY, WIDTH, HEADS, LAYERS, PLACES, NEW = 64, 32, 4, 2, 64, 16
HEAD = WIDTH // HEADS
LOWEST = torch.finfo(torch.float32).min
PROMPT = [3, 9, 27, 14, 50, 2]


def heads(x):
    return x.view(x.shape[0], x.shape[1], -1, HEAD).transpose(1, 2)


def halves_turned(x):
    return torch.cat((-x[..., x.shape[-1] // 2 :], x[..., : x.shape[-1] // 2]), dim=-1)


def pairs_turned(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def filled_mask(ids, mask, past):
    """Minus the largest number where a row may not look: a triangle beside zeros, and the mask of ones, added."""
    batch, new = ids.shape
    rows = torch.arange(new)
    triangle = torch.full((new, new), LOWEST).masked_fill(rows < (rows + 1).view(new, 1), 0.0)
    triangle = torch.cat([torch.zeros(new, past), triangle], dim=-1)[None, None].expand(batch, 1, new, new + past)
    hidden = 1.0 - mask[:, None, None, :].expand(batch, 1, new, new + past).to(torch.float32)
    return hidden.masked_fill(hidden.to(torch.bool), LOWEST) + triangle


def assigned_mask(ids, mask, past, window=None):
    """As transformers 4.38 to 4.52 made it: the lowest number times a comparison, and what the mask hides assigned."""
    batch, total = mask.shape
    rows = torch.arange(past, past + ids.shape[1]).reshape(-1, 1)
    hidden = torch.arange(total) > rows
    if window is not None:
        hidden = hidden | (torch.arange(total) <= rows - window)
    result = (torch.full((ids.shape[1], total), LOWEST) * hidden)[None, None].expand(batch, 1, -1, -1).clone()
    blank = (result[:, :, :, :total] + mask[:, None, None, :]) == 0
    result[:, :, :, :total] = result[:, :, :, :total].masked_fill(blank, LOWEST)
    return result


class Norm(nn.Module):
    """Of the root of the mean square."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Decoder(nn.Module):
    positions, keys, caches, rows_at, batch_at = False, HEADS, ("key", "value"), 2, 0

    def __init__(self, inner=F.gelu):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.LayerNorm(WIDTH),
                    "qkv": nn.Linear(WIDTH, WIDTH + 2 * self.keys * HEAD),
                    "out": nn.Linear(WIDTH, WIDTH),
                    "norm2": nn.LayerNorm(WIDTH),
                    "up": nn.Linear(WIDTH, 2 * WIDTH),
                    "down": nn.Linear(2 * WIDTH, WIDTH),
                }
            )
            for _ in range(LAYERS)
        )
        self.last = nn.LayerNorm(WIDTH)
        self.inner = inner
        frequencies = 1.0 / 10000 ** (torch.arange(0, HEAD, 2).float() / HEAD)
        self.register_buffer("frequencies", frequencies)
        angles = torch.outer(torch.arange(PLACES).float(), frequencies)
        self.register_buffer("cos", torch.cat((angles, angles), -1).cos()[None, None])
        self.register_buffer("sin", torch.cat((angles, angles), -1).sin()[None, None])
        self.register_buffer("below", torch.tril(torch.ones(PLACES, PLACES, dtype=torch.uint8))[None, None])

    def empty(self, rows=0):
        return [torch.zeros(1, self.keys, rows, HEAD) for _ in range(2 * LAYERS)]

    def start(self, ids, _past):
        return self.words(ids)

    def bias(self, _ids, _mask, _past):
        return None

    def turn(self, x, _turns):
        return x

    def turns(self, _ids, _past, _positions):
        return None

    def scored(self, scores, _bias):
        return scores

    def joined(self, past, layer, keys, values, presents):
        presents += [torch.cat((past[2 * layer], keys), dim=2), torch.cat((past[2 * layer + 1], values), dim=2)]
        return presents[-2:]

    def attended(self, query, keys, values, bias):
        repeats = HEADS // self.keys
        if repeats != 1:
            shape = (query.shape[0], self.keys, repeats, -1, HEAD)
            keys = keys[:, :, None].expand(*shape).reshape(query.shape[0], HEADS, keys.shape[2], HEAD)
            values = values[:, :, None].expand(*shape).reshape(query.shape[0], HEADS, values.shape[2], HEAD)
        scores = self.scored(torch.matmul(query, keys.transpose(2, 3)) / math.sqrt(HEAD), bias)
        result = torch.matmul(F.softmax(scores, dim=-1), values)
        return result.transpose(1, 2).contiguous().view(result.shape[0], -1, WIDTH)

    def forward(self, ids, mask, *rest):
        positions = rest[0] if self.positions else None
        past = rest[1:] if self.positions else rest
        rows = past[0].shape[2]
        x, bias, turns, presents = self.start(ids, rows), self.bias(ids, mask, rows), self.turns(ids, rows, positions), []
        for i, layer in enumerate(self.layers):
            query, keys, values = layer["qkv"](layer["norm"](x)).split([WIDTH, self.keys * HEAD, self.keys * HEAD], dim=2)
            query, keys = self.turn(heads(query), turns), self.turn(heads(keys), turns)
            keys, values = self.joined(past, i, keys, heads(values), presents)
            x = x + layer["out"](self.attended(query, keys, values, bias))
            x = x + layer["down"](self.inner(layer["up"](layer["norm2"](x))))
        return (self.last(x) @ self.words.weight.t(), *presents)


class Gpt2(Decoder):
    """A triangle of bytes is cut, scores are chosen by it, and the mask of ones is added as zeros."""

    def start(self, ids, past):
        places = torch.arange(past, ids.shape[1] + past).unsqueeze(0).view(-1, ids.shape[1])
        return self.words(ids) + F.embedding(places, self.words.weight)

    def bias(self, ids, mask, past):
        shown = self.below[:, :, past : past + ids.shape[1], : past + ids.shape[1]].to(torch.bool)
        return shown, (1.0 - mask.view(ids.shape[0], -1)[:, None, None, :].to(torch.float32)) * LOWEST

    def scored(self, scores, bias):
        return torch.where(bias[0], scores, torch.full([], LOWEST)) + bias[1]


class Opt(Decoder):
    """Planes are joined, and scores are bounded from below."""

    def bias(self, ids, mask, past):
        return filled_mask(ids, mask, past)

    def attended(self, query, keys, values, bias):
        batch, _, new, _ = query.shape
        flat = lambda x: x.reshape(batch * HEADS, -1, HEAD)  # noqa: E731
        scores = torch.bmm(flat(query) * HEAD**-0.5, flat(keys).transpose(1, 2))
        scores = torch.max(scores.view(batch, HEADS, new, -1) + bias, torch.tensor(LOWEST))
        shares = F.softmax(scores.view(batch * HEADS, new, -1), dim=-1)
        return torch.bmm(shares, flat(values)).view(batch, HEADS, new, HEAD).transpose(1, 2).reshape(batch, new, WIDTH)


class Llama(Decoder):
    """Tables of turns are cut to all rows, and rows are taken by position."""

    positions, keys = True, 2
    turned = staticmethod(halves_turned)

    def bias(self, ids, mask, past):
        return filled_mask(ids, mask, past)

    def scored(self, scores, bias):
        return scores + bias

    def turns(self, ids, past, positions):
        rows = past + ids.shape[1]
        taken = lambda table: table[:, :, :rows].squeeze(1).squeeze(0)[positions].unsqueeze(1)  # noqa: E731
        return taken(self.cos), taken(self.sin)

    def turn(self, x, turns):
        return x * turns[0] + self.turned(x) * turns[1]


class GptJ(Llama):
    keys = HEADS
    turned = staticmethod(pairs_turned)


class OneHead(Llama):
    keys = 1


class Gemma(Llama):
    """Turns are a product of positions, scores are capped, words are scaled."""

    def start(self, ids, _past):
        return self.words(ids) * WIDTH**0.5

    def turns(self, ids, past, positions):
        angles = (self.frequencies[None, :, None] @ positions[:, None, :].float()).transpose(1, 2)
        angles = torch.cat((angles, angles), -1)
        return angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)

    def scored(self, scores, bias):
        return torch.tanh(scores / 50.0) * 50.0 + bias


class Falcon(Llama):
    """Turns are computed for all rows, of which the new ones are cut."""

    positions, keys = False, 1

    def turns(self, ids, past, _positions):
        rows = past + ids.shape[1]
        angles = torch.einsum("i,j->ij", torch.arange(rows, dtype=torch.float32), self.frequencies)
        angles = torch.cat((angles, angles), -1)
        return angles.cos()[None][:, past:rows][:, None], angles.sin()[None][:, past:rows][:, None]


class NeoX(Gpt2):
    """Half of a head is turned, by rows that are gathered."""

    def turns(self, ids, past, _positions):
        places = torch.arange(past, ids.shape[1] + past).unsqueeze(0).view(-1, ids.shape[1])
        half = HEAD // 2
        index = places[:, None, :, None].repeat(1, 1, 1, half)
        take = lambda table: torch.gather(table[..., :half].repeat(index.shape[0], 1, 1, 1), 2, index)  # noqa: E731
        return take(self.cos), take(self.sin)

    def turn(self, x, turns):
        first, rest = x[..., : HEAD // 2], x[..., HEAD // 2 :]
        return torch.cat((first * turns[0] + halves_turned(first) * turns[1], rest), dim=-1)


class Mpt(Decoder):
    """The last columns of a table of slopes are added, and a mask of bool fills."""

    def __init__(self):
        super().__init__()
        slopes = 2.0 ** (-8 / HEADS * torch.arange(1, HEADS + 1))
        self.register_buffer("slopes", torch.arange(1 - PLACES, 1).float()[None, None] * slopes[:, None, None])

    def bias(self, ids, mask, past):
        new = ids.shape[1]
        hidden = torch.arange(new + past)[None] > torch.arange(new)[:, None] + past
        hidden = (hidden[None, None] | ~mask[:, None, None, :].bool()).expand(ids.shape[0], 1, new, new + past)
        return self.slopes[:, :, -(new + past) :], hidden

    def scored(self, scores, bias):
        return (scores + bias[0]).masked_fill(bias[1], LOWEST)


class Bloom(Decoder):
    """Slopes times places that are counted from the mask."""

    def bias(self, ids, mask, past):
        slopes = torch.pow(torch.tensor(2 ** (-8 / HEADS)), torch.arange(1, 1 + HEADS).float())
        places = ((mask.cumsum(dim=-1) - 1) * mask)[:, None, :]
        return (slopes[..., None] * places)[:, :, None], filled_mask(ids, mask, past)

    def scored(self, scores, bias):
        return scores + bias[0] + bias[1]


class Qwen3(Gemma):
    """Heads are normed before they are turned; a part of the mask is assigned."""

    window = None

    def __init__(self):
        super().__init__()
        self.head_norm = Norm(HEAD)

    def start(self, ids, _past):
        return self.words(ids)

    def turn(self, x, turns):
        return super().turn(self.head_norm(x), turns)

    def bias(self, ids, mask, past):
        return assigned_mask(ids, mask, past, self.window)

    def scored(self, scores, bias):
        return scores + bias


class Mistral(Qwen3):
    window = 5


class GptOss(Mistral):
    """A sink behind the scores, and all of them less the largest."""

    def __init__(self):
        super().__init__()
        self.sinks = nn.Parameter(torch.randn(1, HEADS, 1, 1))

    def attended(self, query, keys, values, bias):
        batch, _, new, _ = query.shape
        shape = (batch, self.keys, HEADS // self.keys, -1, HEAD)
        keys, values = (x[:, :, None].expand(*shape).reshape(batch, HEADS, x.shape[2], HEAD) for x in (keys, values))
        scores = torch.matmul(query, keys.transpose(2, 3)) / math.sqrt(HEAD) + bias
        scores = torch.cat((scores, self.sinks.expand(batch, -1, new, -1)), dim=-1)
        shares = F.softmax(scores - scores.max(dim=-1, keepdim=True).values, dim=-1)[..., :-1]
        return torch.matmul(shares, values).transpose(1, 2).reshape(batch, new, WIDTH)


class BigCode(Gpt2):
    """Keys and values are one cache, which is split; scores have the heads between rows and keys."""

    keys, caches, rows_at = 1, ("key_value",), 1

    def empty(self, rows=0):
        return [torch.zeros(1, rows, 2 * HEAD) for _ in range(LAYERS)]

    def forward(self, ids, mask, *past):
        batch, new = ids.shape
        rows = past[0].shape[1]
        shown = self.below[0, :, rows : rows + new, : rows + new].bool() * mask.view(batch, 1, -1).bool()
        x, presents = self.start(ids, rows), []
        for i, layer in enumerate(self.layers):
            query, fresh = layer["qkv"](layer["norm"](x)).split([WIDTH, 2 * HEAD], dim=2)
            presents.append(torch.cat((past[i], fresh), dim=-2))
            keys, values = presents[-1].split((HEAD, HEAD), dim=-1)
            scores = torch.bmm(query.reshape(batch, new * HEADS, HEAD), keys.transpose(-1, -2)) / math.sqrt(HEAD)
            scores = torch.where(shown.unsqueeze(2), scores.view(batch, new, HEADS, -1), torch.full([], LOWEST))
            shares = F.softmax(scores, dim=-1).view(batch, new * HEADS, -1)
            x = x + layer["out"](torch.bmm(shares, values).view(batch, new, WIDTH))
            x = x + layer["down"](self.inner(layer["up"](layer["norm2"](x))))
        return (self.last(x) @ self.words.weight.t(), *presents)


class Gpt2Stacked(Gpt2):
    """Keys and values of a layer are one tensor: parts are taken of it, and put behind one another."""

    caches, rows_at, batch_at = ("key_value",), 3, 1

    def empty(self, rows=0):
        return [torch.zeros(2, 1, self.keys, rows, HEAD) for _ in range(LAYERS)]

    def parts(self, past):
        return [part for layer in past for part in (layer[0], layer[1])]

    def stacked(self, parts):
        return [torch.stack(parts[2 * i : 2 * i + 2]) for i in range(LAYERS)]

    def forward(self, ids, mask, *past):
        logits, *parts = super().forward(ids, mask, *self.parts(past))
        return (logits, *self.stacked(parts))


class Gpt2Unbound(Gpt2Stacked):
    """Parts are those of a split."""

    def parts(self, past):
        return [part for layer in past for part in layer.unbind(0)]


class Gpt2Turned(Gpt2Stacked):
    """As transformers 2 and 3 had it: new keys are put beside turned ones, and turned back for the stack."""

    def joined(self, past, layer, keys, values, presents):
        turned = torch.cat((past[2 * layer].transpose(-2, -1), keys.transpose(-2, -1)), dim=-1)
        presents += [turned.transpose(-2, -1), torch.cat((past[2 * layer + 1], values), dim=-2)]
        return presents[-2:]


class Gpt2Layers(Gpt2Stacked):
    """Keys and values of all layers are one tensor."""

    caches, rows_at, batch_at = ("key_values",), 4, 2

    def empty(self, rows=0):
        return [torch.stack([torch.zeros(2, 1, self.keys, rows, HEAD) for _ in range(LAYERS)])]

    def parts(self, past):
        return super().parts([past[0][i] for i in range(LAYERS)])

    def stacked(self, parts):
        return [torch.stack(super().stacked(parts))]


class GptNeo(Gpt2):
    """The table of a window is cut."""

    def __init__(self):
        super().__init__()
        square = torch.ones(PLACES, PLACES, dtype=torch.bool)
        self.register_buffer("below", torch.bitwise_xor(torch.tril(square), torch.tril(square, -5))[None, None])


class Ctrl(Gpt2):
    """Scores are made low, and no more."""

    def bias(self, ids, mask, past):
        shown, hidden = super().bias(ids, mask, past)
        return (1.0 - shown.float()) * -1e4 + hidden.clamp(-1e4)

    def scored(self, scores, bias):
        return scores + bias


class StableLm(Llama):
    """Each head is normed by itself."""

    def __init__(self):
        super().__init__()
        self.head_norms = nn.ModuleList(nn.LayerNorm(HEAD) for _ in range(HEADS))
        for norm in self.head_norms:
            nn.init.normal_(norm.weight, 1, 0.3)

    def turn(self, x, turns):
        parts = torch.split(x, 1, dim=1)
        return super().turn(torch.cat([norm(part) for norm, part in zip(self.head_norms, parts)], 1), turns)


class Equations(GptJ):
    """Heads are mixed before the softmax, and products are equations."""

    def __init__(self):
        super().__init__()
        self.mixture = nn.Parameter(torch.eye(HEADS) + 0.2 * torch.randn(HEADS, HEADS))

    def attended(self, query, keys, values, bias):
        scores = torch.einsum("bhqd,bhkd->bhqk", query, keys) / math.sqrt(HEAD)
        shares = F.softmax(torch.einsum("bhqk,hg->bgqk", scores, self.mixture) + bias, dim=-1)
        return torch.einsum("bhqk,bhkd->bqhd", shares, values).reshape(query.shape[0], -1, WIDTH)


class Differential(GptJ):
    """Weights of one softmax less a part of another."""

    def attended(self, query, keys, values, bias):
        pairs = zip(query.split(HEAD // 2, -1), keys.split(HEAD // 2, -1))
        shares = [F.softmax(q @ k.transpose(2, 3) / math.sqrt(HEAD // 2) + bias, dim=-1) for q, k in pairs]
        result = (shares[0] - 0.3 * shares[1]) @ values
        return result.transpose(1, 2).reshape(result.shape[0], -1, WIDTH)


MODELS = {
    "gpt2": Gpt2, "opt": Opt, "llama": Llama, "gptj": GptJ, "one_head": OneHead, "gemma": Gemma, "falcon": Falcon,
    "neox": NeoX, "mpt": Mpt, "bloom": Bloom, "qwen3": Qwen3, "mistral": Mistral, "gpt_oss": GptOss, "bigcode": BigCode,
    "gpt2_stacked": Gpt2Stacked, "gpt2_unbound": Gpt2Unbound, "gpt2_turned": Gpt2Turned, "gpt2_layers": Gpt2Layers,
    "gpt_neo": GptNeo, "ctrl": Ctrl, "stablelm": StableLm, "equations": Equations, "differential": Differential,
}  # fmt: skip


def arguments(model, ids, past):
    rows = past[0].shape[model.rows_at]
    mask = torch.ones(1, rows + ids.shape[1], dtype=torch.long)
    return [ids, mask] + [torch.arange(rows, rows + ids.shape[1])[None]] * model.positions + past


def export(model, path, opset):
    caches = [f"{layer}.{what}" for layer in range(LAYERS) for what in model.caches][: len(model.empty())]
    names = ["input_ids", "attention_mask"] + ["position_ids"] * model.positions
    sizes = {name: {0: "batch_size", 1: "sequence_length"} for name in [*names, "logits"]}
    sizes["attention_mask"][1] = "total_sequence_length"
    for cache in caches:
        sizes[f"past_key_values.{cache}"] = {model.batch_at: "batch_size", model.rows_at: "past_sequence_length"}
        sizes[f"present.{cache}"] = {model.batch_at: "batch_size", model.rows_at: "total_sequence_length"}
    torch.onnx.export(
        model, tuple(arguments(model, torch.tensor([PROMPT[:3]]), model.empty(5))), path, opset_version=opset,
        input_names=names + [f"past_key_values.{cache}" for cache in caches],
        output_names=["logits"] + [f"present.{cache}" for cache in caches], dynamic_axes=sizes,
    )  # fmt: skip


def reference(model):
    ids, past, chosen = torch.tensor([PROMPT]), model.empty(), []
    for _ in range(NEW):
        logits, *past = model(*arguments(model, ids, past))
        chosen.append(int(logits[0, -1].argmax()))
        ids = torch.tensor([chosen[-1:]])
    return chosen


def run(*command, text=None):
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError((result.stderr.strip().splitlines() or [f"exit {result.returncode}"])[-1])
    return result.stdout


def check(model, opset, folder):
    path, document, bundle, report = (f"{folder}/{name}" for name in ("m.onnx", "m.json", "m.npub", "report.json"))
    export(model, path, opset)
    run(f"{BIN}/npu-tag", "-q", "--states", "--capacity", str(PLACES // 2), path, "-o", document)
    with open(document, encoding="utf-8") as file:
        symbols = json.load(file)["npu"]["symbols"]
    sizes = [text for name in symbols for text in (["--bind", f"{name}=1"] if "batch" in name else ["--buckets", f"{name}=1,8"])]
    run(f"{BIN}/npu-compile", "-q", "--weights", path, *sizes, document, "-o", bundle)
    prompt = " ".join(map(str, PROMPT)) + "\n"
    streams = ["--tokens", "-", "--tokens-out", "-", "-o", report]
    ids = list(map(int, run(f"{BIN}/npu-run", "-q", bundle, "--generate", str(NEW), *streams, text=prompt).split()))
    if ids != reference(model):
        return f"{ids} instead of {reference(model)}"
    with open(report, encoding="utf-8") as file:
        copied = re.search('"state_copied_bytes": *([0-9]+)', file.read())
    return f"ok, {copied.group(1)} bytes copied"


def main():
    warnings.simplefilter("ignore")
    failed = False
    for name in sys.argv[1:] or MODELS:
        for opset in (13, 17):
            torch.manual_seed(3)
            model = MODELS[name]().eval()
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                try:
                    result = check(model, opset, folder)
                except RuntimeError as error:
                    result = str(error)
            failed = failed or not result.startswith("ok")
            print(f"{name:12} {opset}  {result}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Small encoders with decoders, whose keys and values of cross attention are buffers that encode() writes and decode() reads:
export_torch.py --state makes states of them, which the two documents share.

    translator  reads a text: ids of any number up to SOURCE; source_mask says which rows are there (T5, Marian)
    listener    reads features of a sound, always as many (Whisper)
"""

import torch
import torch.nn.functional as F
from torch import nn

WORDS = 61
SOURCE = 24  # rows of a source, at most
CAPACITY = 32  # positions of the decoder
BINS, FRAMES = 8, 32  # of features


def attention(query, key, value, mask=None):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return torch._C._nn._scaled_dot_product_attention(query, key, value, mask)[0]


class Attention(nn.Module):
    def __init__(self, width, heads, rows=None):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        if rows is not None:
            self.register_buffer("keys", torch.zeros(1, heads, rows, width // heads), persistent=False)
            self.register_buffer("values", torch.zeros(1, heads, rows, width // heads), persistent=False)

    def split(self, x):
        return x.view(1, x.shape[1], self.heads, -1).transpose(1, 2)

    def project(self, x):
        return self.split(self.key(x)), self.split(self.value(x))

    def attend(self, x, key, value, mask=None):
        context = attention(self.split(self.query(x)), key, value, mask)
        return self.out(context.transpose(1, 2).reshape(1, x.shape[1], -1))


class Mlp(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(width), Attention(width, heads), Mlp(width)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention.attend(y, *self.attention.project(y))
        return x + self.mlp(x)


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, rows):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.own, self.cross = Attention(width, heads, CAPACITY), Attention(width, heads, rows)
        self.mlp = Mlp(width)

    def forward(self, x, positions, mask, source_mask):
        y = self.norms[0](x)
        key, value = self.own.project(y)
        self.own.keys.index_copy_(2, positions, key)
        self.own.values.index_copy_(2, positions, value)
        x = x + self.own.attend(y, self.own.keys, self.own.values, mask)
        x = x + self.cross.attend(self.norms[1](x), self.cross.keys, self.cross.values, source_mask)
        return x + self.mlp(x)


class EncoderDecoder(nn.Module):
    """What both have: layers, and a decoder."""

    def __init__(self, width, heads, layers, rows):
        super().__init__()
        self.rows = rows
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(CAPACITY, width)
        self.encoder = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(width, heads, rows) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        # Attention that tells rows apart, and logits of some size.
        for name, parameter in self.named_parameters():
            if name.endswith(("query.weight", "key.weight")):
                parameter.data *= 4
            if name.startswith("norms.1.weight"):
                parameter.data.normal_()  # of both signs, or the shared table would repeat the last id
            if name.endswith("cross.out.weight"):
                parameter.data *= 3

    def remember(self, x):
        """Writes the keys and values of a source of x.shape[1] rows; those behind it are zero."""
        for layer in self.encoder:
            x = layer(x)
        x = self.norms[0](x)
        behind = self.rows - x.shape[1]
        for layer in self.decoder:
            key, value = layer.cross.project(x)
            layer.cross.keys.copy_(F.pad(key, (0, 0, 0, behind)))
            layer.cross.values.copy_(F.pad(value, (0, 0, 0, behind)))

    def decode(self, input_ids, cache_position):
        x = self.words(input_ids) + self.places(cache_position)
        mask = (torch.arange(CAPACITY)[None, :] <= cache_position[:, None])[None, None]
        source_mask = self.mask_of_source()
        for layer in self.decoder:
            x = layer(x, cache_position, mask, source_mask)
        return {"logits": self.norms[1](x) @ self.words.weight.t()}


class Translator(EncoderDecoder):
    def __init__(self, width=32, heads=2, layers=2):
        super().__init__(width, heads, layers, SOURCE)
        self.source_places = nn.Embedding(SOURCE, width)
        self.register_buffer("source_mask", torch.zeros(1, SOURCE, dtype=torch.int64), persistent=False)

    def encode(self, source_ids):
        rows = source_ids.shape[1]
        self.remember(self.words(source_ids) + self.source_places(torch.arange(rows)))
        self.source_mask.copy_(F.pad(torch.ones_like(source_ids), (0, SOURCE - rows)))

    def mask_of_source(self):
        return self.source_mask[:, None, None, :] > 0


class Listener(EncoderDecoder):
    def __init__(self, width=32, heads=2, layers=2):
        super().__init__(width, heads, layers, FRAMES // 2)
        self.first = nn.Conv1d(BINS, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.source_places = nn.Embedding(FRAMES // 2, width)

    def encode(self, features):
        x = F.gelu(self.second(F.gelu(self.first(features)))).transpose(1, 2)
        self.remember(x + self.source_places.weight)

    def mask_of_source(self):
        return None


def entries_of(model, source):
    text = torch.randint(0, WORDS, (1, CAPACITY))
    decode = (text, torch.arange(CAPACITY))
    return {"encode": (model.encode, (source,)), "decode": (model.decode, decode)}


def translator():
    return entries_of(Translator(), torch.randint(0, WORDS, (1, SOURCE)))


def listener():
    return entries_of(Listener(), torch.randn(1, BINS, FRAMES))


# ------------------------------------------------------------------------------------------------- as a program: references

START, IDS, LEAST_MARGIN = 1, 20, 0.02


def greedy(model, source):
    """(ids, logits) behind START, and the least distance of the two best logits of a step."""
    for layer in model.decoder:
        layer.own.keys.zero_()
        layer.own.values.zero_()
    model.encode(source)
    ids, logits, margin = [START], [], float("inf")
    for place in range(IDS):
        row = model.decode(torch.tensor([[ids[-1]]]), torch.tensor([place]))["logits"][0, 0]
        best = row.sort().values
        margin = min(margin, float(best[-1] - best[-2]))
        ids.append(int(row.argmax()))
        logits.append(row)
    return torch.tensor(ids[1:]), torch.stack(logits), margin


def references(model, draw, sizes):
    """Sources of some sizes whose ids do not hang on the last bits of a logit, the ids and their logits."""
    found = {}
    for i, size in enumerate(sizes):
        for _ in range(100):
            source = draw(size)
            ids, logits, margin = greedy(model, source)
            if margin > LEAST_MARGIN:
                break
        found.update({f"source.{i}": source, f"ids.{i}": ids, f"logits.{i}": logits})
    return found


def main():
    """translators.py FOLDER writes what PyTorch computes of the models that are exported.

    NAME.reference.safetensors: sources, ids and logits; NAME.ids: of each request SOURCE|IDS, or IDS; listener.features.npy
    """
    import os
    import sys

    import numpy

    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
    from export.torch_tensors import write_safetensors

    for make, draw, sizes in (
        (translator, lambda n: torch.randint(0, WORDS, (1, n)), (3, 8, 13, 16, 24)),
        (listener, lambda _: torch.randn(1, BINS, FRAMES), (FRAMES, FRAMES)),
    ):
        torch.manual_seed(0)  # as export_torch.py does
        model = make()["encode"][0].__self__.eval()
        with torch.no_grad():
            tensors = references(model, draw, sizes)
        base = os.path.join(sys.argv[1], make.__name__)
        with open(f"{base}.reference.safetensors", "wb") as file:
            write_safetensors(file, tensors)
        text = lambda key: " ".join(str(i) for i in tensors[key].reshape(-1).tolist())
        with open(f"{base}.ids", "w", encoding="utf-8") as file:
            for i in range(len(sizes)):
                file.write(f"{text(f'source.{i}')}|" if make is translator else "")
                file.write(text(f"ids.{i}") + "\n")
        if make is listener:
            numpy.save(f"{base}.features.npy", numpy.stack([tensors[f"source.{i}"].numpy() for i in range(len(sizes))]))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Models that remember, one for each way to write it; what is to become of them is in check_states.py."""

import torch
from torch import nn


class Lstm(nn.Module):
    """A recurrence by single steps, whose state is copied into buffers."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 5, num_layers=2, batch_first=True)
        self.register_buffer("hidden", torch.zeros(2, 1, 5))
        self.register_buffer("carry", torch.zeros(2, 1, 5))

    def forward(self, x):
        y, (hidden, carry) = self.cell(x, (self.hidden, self.carry))
        self.hidden.copy_(hidden)
        self.carry.copy_(carry)
        return y


class Rebound(nn.Module):
    """The same with a tuple that another one takes the place of."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 5, batch_first=True)
        self.state = (torch.zeros(1, 1, 5), torch.zeros(1, 1, 5))

    def forward(self, x):
        y, self.state = self.cell(x, self.state)
        return y


class Gru(nn.Module):
    """A buffer that another tensor takes the place of, and the old one returned."""

    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(6, 5)
        self.register_buffer("hidden", torch.zeros(1, 5), persistent=False)

    def forward(self, x):
        before = self.hidden
        self.hidden = self.cell(x, self.hidden)
        return {"change": self.hidden - before, "before": before}


class Window(nn.Module):
    """Convolutions over the last samples, shifted by concatenation; statistics, counters, and a state that is returned."""

    def __init__(self):
        super().__init__()
        self.conv = nn.ModuleList([nn.Conv1d(4, 6, 5), nn.Conv1d(6, 3, 3)])
        self.register_buffer("samples", torch.zeros(1, 4, 5))
        self.register_buffer("inner", torch.zeros(1, 6, 3))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("largest", torch.zeros(1, 4, 1))

    def forward(self, x):
        self.samples.copy_(torch.cat([self.samples[:, :, 1:], x], 2))
        y = self.conv[0](self.samples).relu()
        self.inner.copy_(torch.cat([self.inner[:, :, 1:], y], 2))
        self.count += 1
        self.mean.add_((x.mean((0, 2)) - self.mean) / self.count)
        self.largest.copy_(torch.maximum(self.largest, x.abs()))
        return {"y": self.conv[1](self.inner), "count": self.count, "mean": self.mean, "largest": self.largest * 2}


class Shifted(nn.Module):
    """A window that is shifted in its own memory, through views of it, and decays."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("decayed", torch.zeros(3, 4))

    def forward(self, x):
        self.rows[:-1] = self.rows[1:].clone()
        self.rows[-1] = x
        self.decayed.mul_(0.5)
        self.decayed.t()[0].add_(x)
        self.decayed[:, 2:].lerp_(self.rows[:2].t(), 0.25)
        return self.rows.sum(0), self.decayed * 1


class Rolled(nn.Module):
    """A ring whose place is a counter of its own, in a list of tensors."""

    def __init__(self):
        super().__init__()
        self.kept = [torch.zeros(4, 3), torch.zeros(1, dtype=torch.int64)]

    def forward(self, x):
        ring, place = self.kept
        ring.index_copy_(0, place, x)
        place.add_(1).remainder_(4)
        return ring.mean(0)


class Cached(nn.Module):
    """Rows written by an index, a counter that is overwritten before it is read, scratch memory that is filled first."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.register_buffer("keys", torch.zeros(1, 2, 12, 4))
        self.register_buffer("length", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("scratch", torch.zeros(12))

    def forward(self, ids, positions):
        self.length.copy_(positions[0])
        places = torch.arange(ids.shape[1]) + self.length
        x = self.words(ids).view(1, -1, 2, 4).transpose(1, 2)
        self.keys[:, :, places] = x
        self.length += ids.shape[1]
        self.scratch.zero_()
        self.scratch[:3] = 1.0
        seen = torch.arange(12)[None, :] <= places[:, None]
        scores = (x @ self.keys.transpose(2, 3)).masked_fill(~seen, -1e9) + self.scratch
        return {"logits": (scores.softmax(-1) @ self.keys).transpose(1, 2).reshape(1, -1, 8)}


class Later(nn.Module):
    """The first value is read behind the node that gives the next one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(3))

    def forward(self, x):
        new = torch.tanh(self.level + x)
        change = new - self.level
        self.level.copy_(new)
        return change


class Copied(nn.Module):
    """What a state takes is an input, and what two states take is one tensor."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(3))
        self.register_buffer("one", torch.zeros(3))
        self.register_buffer("other", torch.zeros(3))

    def forward(self, x):
        y = x + self.last - self.one * self.other
        self.last.copy_(x)
        self.one.copy_(y)
        self.other.copy_(y)
        return y


class Widened(nn.Module):
    """A state of another dtype than what it is given: it keeps its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(2, dtype=torch.int32))
        self.register_buffer("sum", torch.zeros(3, dtype=torch.float64))

    def forward(self, x):
        self.steps.copy_(self.steps + x.abs().ceil()[:2])
        self.sum.add_(x)
        return self.steps * 2, self.sum.float()


class Kept:
    """An object that is no module."""

    def __init__(self):
        self.rows = {"old": torch.zeros(2, 3), "flags": torch.zeros(3, dtype=torch.bool)}
        self.again = self


class Object(nn.Module):
    """States in an object of the user's, written through .data and by operators of Python."""

    def __init__(self):
        super().__init__()
        self.kept = Kept()

    def forward(self, x):
        old, flags = self.kept.rows["old"], self.kept.rows["flags"]
        old.data.copy_(torch.roll(old, 1, 0))
        old[:1] -= x
        flags |= x[0] > 1
        self.kept.rows = {"old": old, "flags": flags & (x[0] < 2)}
        return old.sum(0) + flags


# --------------------------------------------------------------------------------------------------------- refused


class Function(nn.Module):
    def __init__(self, function, **buffers):
        super().__init__()
        self.function = function
        for name, tensor in buffers.items():
            self.register_buffer(name, tensor)

    def forward(self, x):
        return self.function(self, x)


def unfolded():
    def forward(self, x):
        self.rows.unfold(0, 2, 2).add_(1)
        return self.rows.sum() + x

    return Function(forward, rows=torch.zeros(4)), (torch.randn(3),)


def shared():
    rows = torch.zeros(4, 3)

    def forward(self, x):
        self.rows[0] = self.rows[0] + x
        self.first.add_(x)
        return self.rows.sum(0)

    return Function(forward, rows=rows, first=rows[0]), (torch.randn(3),)


def retyped():
    def forward(self, x):
        self.level = self.level.double() + x
        return self.level.float()

    return Function(forward, level=torch.zeros(3)), (torch.randn(3),)


def begun():
    def forward(self, x):
        self.level.mul_(2)
        return self.level + x

    return Function(forward, level=torch.ones(3)), (torch.randn(3),)


def lazy():
    def forward(self, x):
        self.level = x if self.level is None else self.level + x
        return self.level * 1

    model = Function(forward)
    model.level = None
    return model, (torch.randn(3),)


def statistics():
    def forward(self, x):
        return nn.functional.batch_norm(x, self.mean, self.var, training=True)

    return Function(forward, mean=torch.zeros(3), var=torch.zeros(3)), (torch.randn(5, 3),)


def counted():
    def forward(self, x):
        self.place += 1
        return x + self.place

    model = Function(forward)
    model.place = 0
    return model, (torch.randn(3),)


def grown():
    def forward(self, x):
        self.rows = torch.cat([self.rows, x[None]])
        return self.rows.sum(0)

    return Function(forward, rows=torch.zeros(1, 3)), (torch.randn(3),)


def turned():
    def forward(self, x):
        return self.rows.unsqueeze_(0).sum(0) + x

    return Function(forward, rows=torch.zeros(3)), (torch.randn(3),)


def hidden():
    def forward(self, x):
        self.rows += x
        self.rows.detach().numpy()[:] *= 2
        return self.rows * 1

    return Function(forward, rows=torch.zeros(3)), (torch.randn(3),)


def trained():
    def forward(self, x):
        self.weight.add_(0.1)
        return x * self.weight

    model = Function(forward)
    model.weight = nn.Parameter(torch.ones(3), requires_grad=False)
    return model, (torch.randn(3),)


def lstm():
    return Lstm(), (torch.randn(1, 1, 6),)


def rebound():
    return Rebound(), (torch.randn(1, 1, 6),)


def gru():
    return Gru(), (torch.randn(1, 6),)


def window():
    return Window(), (torch.randn(1, 4, 1),)


def shifted():
    return Shifted(), (torch.randn(3),)


def rolled():
    return Rolled(), (torch.randn(1, 3),)


def cached():
    return Cached(), {"ids": torch.randint(0, 11, (1, 3)), "positions": torch.arange(3)}


def later():
    return Later(), (torch.randn(3),)


def copied():
    return Copied(), (torch.randn(3),)


def kept():
    return Object(), (torch.randn(1, 3),)


def widened():
    return Widened(), (torch.randn(3),)

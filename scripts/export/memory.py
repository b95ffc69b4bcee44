# SPDX-License-Identifier: Apache-2.0
"""What a model remembers between runs: its tensors that forward() changes, for --state.

Which they are is seen by running the model: a tensor whose place holds another one afterwards, or that was written. They
are put back after every run, so that the graph, the reference and the files all begin with what the model began with.
Costs one copy of the model's buffers and two runs.
"""

import torch

from export.errors import UserError
from export.models import run_model
from export.positions import is_consecutive
from export.structure import FlatModel


class Slot:
    """A place in a model that holds a tensor: a buffer, an attribute, or an item of an attribute."""

    def __init__(self, key, owner, path):
        self.key, self.owner, self.path = key, owner, path

    def get(self):
        """None where the model has something else by now."""
        item = self.owner
        for index in self.path:
            try:
                item = item[index]
            except (LookupError, TypeError):
                return None
        return item if isinstance(item, torch.Tensor) else None

    def put(self, tensor):
        put_into(self.owner, self.path, tensor)


def put_into(item, path, tensor):
    """What holds the tensor at a path afterwards: the item itself, or another tuple."""
    if not path:
        return tensor
    inner = put_into(item[path[0]], path[1:], tensor)
    if isinstance(item, tuple):
        items = [*item[: path[0]], inner, *item[path[0] + 1 :]]
        return type(item)(*items) if hasattr(item, "_fields") else tuple(items)
    item[path[0]] = inner
    return item


def slots_of(model):
    """All places of a model that hold tensors, but for parameters; a tensor in several of them is found in the first."""
    found = {}

    def add(key, owner, path, item):
        if isinstance(item, torch.nn.Parameter):
            return
        if isinstance(item, torch.Tensor):
            found.setdefault(id(item), Slot(key, owner, path))
        elif isinstance(item, (list, tuple, dict)):
            for inner, value in item.items() if isinstance(item, dict) else enumerate(item):
                add(f"{key}.{inner}", owner, (*path, inner), value)

    for place, module in model.named_modules():
        attributes = {name: item for name, item in vars(module).items() if name != "_buffers"}
        for owner, items in ((module._buffers, module._buffers), (vars(module), attributes)):
            for name, item in items.items():
                add(f"{place}.{name}".lstrip("."), owner, (name,), item)
    return {slot.key: slot for slot in found.values()}


class Memory:
    """The tensors of a model that forward() changes, and what they hold before the first run."""

    def __init__(self, model, inputs):
        self.model = model
        # Inputs whose elements follow each other, as positions do; and what was said of them.
        self.consecutive = {name for name, tensor in zip(inputs.names, inputs.tensors) if is_consecutive(tensor)}
        self.said = set()
        self.replaced = []  # keys of the states that have another tensor in their place after the last run
        self.slots = slots_of(model)
        self.first = {key: (slot.get(), slot.get().clone()) for key, slot in self.slots.items()}
        versions = {key: tensor._version for key, (tensor, _) in self.first.items()}
        run_model(model, inputs)
        self.changed = {key for key in self.slots if self.is_changed(key, versions[key])}
        for key in sorted(self.changed):
            if self.slots[key].get() is None:
                raise UserError(f"forward() makes '{key}' something else than a tensor, which is no state")
        made = set(slots_of(model)) - set(self.slots)
        kept = {key: slot.get() for key, slot in slots_of(model).items() if key in made}
        before = {key: (tensor._version, tensor.clone()) for key, tensor in kept.items()}
        run_model(model, inputs)
        now = slots_of(model)
        for key, tensor in kept.items():
            version, content = before[key]
            if key not in now or now[key].get() is not tensor or tensor._version != version or differ(tensor, content):
                raise UserError(
                    f"forward() makes '{key}' in the first run and changes it later; a state is there before: register it as "
                    "a buffer of zeros"
                )
        self.put_back()

    def is_changed(self, key, version):
        tensor, content = self.first[key]
        return self.slots[key].get() is not tensor or tensor._version != version or differ(tensor, content)

    def states(self):
        return [slot for key, slot in self.slots.items() if key in self.changed]

    def put_back(self):
        """The model's states as they were before the first run."""
        for key in self.changed:
            tensor, content = self.first[key]
            self.slots[key].put(tensor)
            tensor.copy_(content)


def differ(one, other):
    """Whether two tensors of one dtype and shape differ in a bit; NaN is equal to itself."""
    return one.shape != other.shape or bool(((one != other) & ~((one != one) & (other != other))).any())


class RememberingModel(FlatModel):
    """A FlatModel that also gives the tensors that forward() puts in place of a state's, behind its results.

    The states may be given behind the inputs, in the order of Memory.states(): the tracer does not see what is done to
    tensors that it knows as neither inputs nor parameters.
    """

    def __init__(self, model, inputs, memory):
        super().__init__(model, inputs)
        self.memory = memory

    def forward(self, *tensors):
        count, slots = len(self.inputs.tensors), self.memory.states()
        own = [slot.get() for slot in slots]
        given = tensors[count:] or own
        if given is not own:
            for slot, tensor in zip(slots, given):
                slot.put(tensor)
        results = super().forward(*tensors[:count])
        self.memory.replaced, new = [], []
        for slot, tensor, first in zip(slots, given, own):
            if slot.get() is not tensor:
                self.memory.replaced.append(slot.key)
                new.append(slot.get())
            if slot.get() is not first:
                slot.put(first)
        return (*results, *new)

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
from export.structure import FlatModel, named_outputs


class Attribute(str):
    """A step of a path that is an attribute of an object, where others are keys."""


class Slot:
    """A place in a model that holds a tensor or a number: a buffer, an attribute, or a part of one."""

    def __init__(self, key, owner, path):
        self.key, self.owner, self.path = key, owner, path

    def get(self):
        """None where the model has nothing by now."""
        item = self.owner
        for index in self.path:
            try:
                item = getattr(item, index) if isinstance(index, Attribute) else item[index]
            except (LookupError, TypeError, AttributeError):
                return None
        return item

    def put(self, tensor):
        put_into(self.owner, self.path, tensor)


def put_into(item, path, tensor):
    """What holds the tensor at a path afterwards: the item itself, or another tuple."""
    if not path:
        return tensor
    index = path[0]
    if isinstance(index, Attribute):
        setattr(item, index, put_into(getattr(item, index), path[1:], tensor))
        return item
    inner = put_into(item[index], path[1:], tensor)
    if isinstance(item, tuple):
        items = [*item[:index], inner, *item[index + 1 :]]
        return type(item)(*items) if hasattr(item, "_fields") else tuple(items)
    item[index] = inner
    return item


def slots_of(model, kinds=torch.Tensor):
    """All places of a model that hold tensors, parameters excepted, or what else is asked for; what several hold once."""
    found, seen = {}, set()

    def add(key, owner, path, item):
        if isinstance(item, (torch.nn.Parameter, torch.nn.Module, type)):
            return
        if isinstance(item, kinds):
            found.setdefault(id(item) if kinds is torch.Tensor else key, Slot(key, owner, path))
        elif isinstance(item, dict):
            parts = item.items()
        elif isinstance(item, (list, tuple)):
            parts = enumerate(item)
        elif is_own_object(item) and id(item) not in seen:
            seen.add(id(item))
            parts = [(Attribute(name), value) for name, value in vars(item).items()]
        else:
            return
        if not isinstance(item, kinds):
            for inner, value in list(parts):
                add(f"{key}.{inner}", owner, (*path, inner), value)

    for place, module in model.named_modules():
        attributes = {name: item for name, item in vars(module).items() if name not in ("_buffers", "training")}
        for owner, items in ((module._buffers, module._buffers), (vars(module), attributes)):
            for name, item in items.items():
                add(f"{place}.{name}".lstrip("."), owner, (name,), item)
    return {slot.key: slot for slot in found.values()}


def is_own_object(item):
    """Whether an attribute is an object of the user's, such as a cache that is no module."""
    owner = type(item).__module__.partition(".")[0]
    return hasattr(item, "__dict__") and not callable(item) and owner not in ("torch", "builtins", "collections")


class Memory:
    """The tensors of a model that forward() changes, and what they hold before the first run."""

    def __init__(self, model, inputs):
        self.model = model
        # Inputs whose elements follow each other, as positions do; and what was said of them.
        self.consecutive = {name for name, tensor in zip(inputs.names, inputs.tensors) if is_consecutive(tensor)}
        self.said = set()
        # Of models of several entries: what others have of what is changed, and what others change (entries.py).
        self.is_entry, self.kept, self.given = False, set(), set()
        self.start = []  # ids that a decoder begins with
        self.replaced = []  # keys of the states that have another tensor in their place after the last run
        numbers = {key: (slot, slot.get()) for key, slot in slots_of(model, (bool, int, float)).items()}
        self.slots = slots_of(model)
        self.first = {key: (slot.get(), slot.get().clone()) for key, slot in self.slots.items()}
        versions = {key: tensor._version for key, (tensor, _) in self.first.items()}
        run_model(model, inputs)
        self.changed = {key for key in self.slots if self.is_changed(key, versions[key])}
        for key in sorted(self.changed):
            if not isinstance(self.slots[key].get(), torch.Tensor):
                raise UserError(f"forward() makes '{key}' something else than a tensor, which is no state")
        for key, (slot, number) in numbers.items():
            if slot.get() != number:
                raise UserError(
                    f"forward() changes '{key}' from {number} to {slot.get()}, a number of Python's: only tensors are states, so "
                    "make it a buffer"
                )
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

    def two_steps(self, inputs):
        """What the model returns in the second of two steps from its first states, and what its states hold then."""
        run_model(self.model, inputs)
        results = [tensor.clone() for _, tensor in named_outputs(run_model(self.model, inputs))]
        states = {slot.key: slot.get().clone() for slot in self.states()}
        self.put_back()
        return results, states

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

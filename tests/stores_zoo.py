"""Both layouts of keys and values, written with a number for each token and read back."""
import numpy as np
import torch
from models_zoo import Held

from unspool.kernels.layer.pages import PAGE, Layout
from unspool.models.blocks import Pool
from unspool.models.pages import pages_of
from unspool.models.torch_store import store_of

LAYERS, WIDTH = 2, 3


class OnPages:
    """A pool with slabs of a few pages; every key of a token is its number, every value minus it.
    """

    layout = Layout(layers=LAYERS, kv_heads=2, size=6)

    def __init__(self, pages=3):
        slab = pages * self.layout.page
        self.pool = Pool(self.layout, slab, slab)

    def write(self, lease, start, numbers):
        text = pages_of(lease, self.pool)
        text.room(start, len(numbers))
        for token, number in enumerate(numbers, start):
            keys, values = self.parts(text, token // PAGE)
            keys[..., token % PAGE], values[..., token % PAGE, :] = number, -number

    def read(self, text, upto):
        """The numbers of the first tokens; all that is kept of a token is the same number."""
        assert text.table == text.addresses.ctypes.data
        out = []
        for page in range(-(-upto // PAGE)):
            number = text.numbers[page]
            assert (text.addresses[page] == self.pool.addresses[number]).all()
            assert text.addresses[page, 0] == self.pool.view(number).ctypes.data
            keys, values = self.parts(text, page)
            count = min(PAGE, upto - page * PAGE)
            found = keys[0, 0, 0, :count]
            assert (keys[..., :count] == found).all()
            assert (values[..., :count, :] == -found[:, None]).all()
            out += [int(number) for number in found]
        return out

    def parts(self, text, page):
        """Keys [layers, heads, padded, PAGE] and values [layers, heads, PAGE, padded]."""
        numbers = self.pool.view(text.numbers[page]).view(np.float32)
        shape = (*numbers.shape[:2], self.layout.padded, PAGE)
        return (numbers[:, :, 0].reshape(shape),
                numbers[:, :, 1].reshape(*shape[:2], PAGE, self.layout.padded))

    def states(self, numbers):
        return np.repeat(np.array(numbers, np.float32)[:, None], WIDTH, axis=1)

    def check(self, texts):
        """The pool's counts, and that all texts together have what is held."""
        self.pool.check()
        held = {page for text in texts for page in text.numbers}
        assert self.pool.held == len(held) * self.layout.page
        kept = sum(states.nbytes for states in self.pool.states.values())
        tables = sum(text.addresses.nbytes for text in texts)
        total = sum(text.nbytes for text in texts)
        assert abs(total - self.pool.held - kept - tables) <= len(texts)


class OnTorch:
    """Keys [tokens, 1, 2] and values [tokens, 2, 1] per layer."""

    def write(self, lease, start, numbers):
        store = store_of(lease)
        new = torch.tensor(numbers, dtype=torch.float64)
        for layer in range(LAYERS):
            keys, values = store.keep(layer, start, new.view(-1, 1, 1).expand(-1, 1, 2) + layer,
                                      -new.view(-1, 1, 1).expand(-1, 2, 1))
            assert keys.shape == (start + len(numbers), 1, 2)
            assert values.shape == (start + len(numbers), 2, 1)

    def read(self, store, upto):
        if not upto:
            return []
        found = []
        for layer in range(LAYERS):
            keys, values = store.read(layer, upto)
            found += [keys[:, 0, 0] - layer, keys[:, 0, 1] - layer, -values[:, 0, 0],
                      -values[:, 1, 0]]
        assert all(torch.equal(one, found[0]) for one in found)
        return [int(number) for number in found[0]]

    def states(self, numbers):
        return torch.tensor(numbers, dtype=torch.float64).view(-1, 1).expand(-1, WIDTH)

    def check(self, texts):
        """All texts together have what their parts take; nobody else holds one."""
        parts = {id(part): part for store in texts for part in store.parts}.values()
        assert abs(sum(t.nbytes for t in texts) - sum(p.nbytes for p in parts)) <= len(texts)
        for part in parts:
            assert set(part.holders) == {t for t in texts if part in t.parts}
            assert part.start % PAGE == 0


KINDS = {"pages": OnPages, "torch": OnTorch}


class Text:
    """A text beside the plain list of what it has to hold."""

    def __init__(self, kind, store=None, numbers=(), reserve=0, stated=True):
        self.kind, self.lease, self.numbers, self.stated = kind, Held(), list(numbers), stated
        self.lease.store, self.lease.reserve = store, reserve

    @property
    def store(self):
        return self.lease.store

    def write(self, start, numbers):
        """Over whatever stands from `start` on."""
        self.kind.write(self.lease, start, numbers)
        if self.stated:
            self.store.put_states(start, self.kind.states(numbers))
        self.numbers[start:] = numbers

    def share(self, length):
        return Text(self.kind, self.store.share(length), self.numbers[:length],
                    self.lease.reserve, self.stated)

    def check(self):
        assert self.kind.read(self.store, len(self.numbers)) == self.numbers
        if self.stated and self.numbers:
            states = self.store.states(len(self.numbers))
            assert states.tolist() == self.kind.states(self.numbers).tolist()

"""The one training loop: every method that has gradients hands it a module and a loss."""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from igcd.errors import IgcdError
from igcd.types import IntArray

Schedule = Literal["cosine", "steps"]
"""How the learning rate falls: along a cosine to zero, or to a tenth at each of the STEPS, as in ORCA."""

STEPS = (0.7, 0.9)
"""Shares of the training after which the learning rate drops."""


@dataclass(frozen=True)
class Optimization:
    """How to train: SGD whose learning rate falls. Defaults are the paper's."""

    n_epochs: int
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    batch_size: int = 128
    """Images per step, half of them labeled and half unlabeled where there are both."""
    schedule: Schedule = "cosine"

    def learning_rate_at(self, progress: float) -> float:
        """The learning rate when a share of the training is done.

        >>> [round(Optimization(1, schedule="cosine").learning_rate_at(share), 3) for share in (0, 0.5, 1)]
        [0.1, 0.05, 0.0]
        >>> [round(Optimization(1, schedule="steps").learning_rate_at(share), 3) for share in (0, 0.69, 0.7, 0.9)]
        [0.1, 0.1, 0.01, 0.001]
        """
        if self.schedule == "steps":
            return self.learning_rate * 0.1 ** sum(progress >= drop for drop in STEPS)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


@dataclass(frozen=True)
class Share:
    """What one of several processes computes of a batch: every n-th row of it, from its own number on."""

    number: int = 0
    n_processes: int = 1
    gather: Callable[[Tensor], Tensor] = lambda rows: rows[None]  # (n, ...) of each process -> (processes, n, ...)

    @property
    def part(self) -> slice:
        """The rows that this process computes."""
        return slice(self.number, None, self.n_processes)

    def whole(self, rows: Tensor, sizes: Sequence[int]) -> Tensor:
        """The rows of all processes in the order of the batch, which has groups of these sizes. (n, ...) -> (m, ...).

        Gradients flow back to the process that computed a row.
        """
        if self.n_processes == 1:
            return rows
        n_each = np.array([[len(range(own, size, self.n_processes)) for size in sizes] for own in self._numbers])
        n_most = int(n_each.sum(axis=1).max())
        padded = torch.cat([rows, rows.new_zeros(n_most - len(rows), *rows.shape[1:])])
        starts = n_each.cumsum(axis=1) - n_each  # (processes, groups)
        places = [
            (np.arange(size) % self.n_processes) * n_most
            + starts[np.arange(size) % self.n_processes, group]
            + np.arange(size) // self.n_processes
            for group, size in enumerate(sizes)
        ]
        return self.gather(padded).flatten(0, 1)[torch.from_numpy(np.concatenate(places)).to(rows.device)]

    @property
    def _numbers(self) -> range:
        return range(self.n_processes)


@dataclass(frozen=True)
class Batch:
    """One step: rows of the labeled and the unlabeled set, and the randomness their views are drawn with.

    Every process has the whole batch, draws for all of it, and computes the features of its `share`.
    """

    labeled_rows: IntArray  # (b,)
    unlabeled_rows: IntArray  # (u,)
    generator: torch.Generator
    share: Share = Share()


class Checkpoint(Protocol):
    """Where the state after each epoch is kept, so that a run that was killed goes on from there."""

    def load(self) -> tuple[int, dict[str, Tensor]]:
        """Epochs done and the state after them; 0 and nothing at the start."""
        ...

    def save(self, n_epochs_done: int, state: dict[str, Tensor]) -> None:
        """Keeps the state, whole or not at all."""
        ...


@dataclass(frozen=True)
class EpochReport:
    """What is reported about a finished epoch."""

    epoch: int
    n_epochs: int
    loss: float


def train(
    module: nn.Module,
    loss: Callable[[nn.Module, Batch, int], Tensor],
    *,
    n_labeled: int,
    n_unlabeled: int,
    optimization: Optimization,
    fabric: Fabric,
    seed: int,
    before_epoch: Callable[[int], None] = lambda _epoch: None,
    after_epoch: Callable[[EpochReport], None] = lambda _report: None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Trains `module` in place with `loss(module, batch, epoch)`, from the last checkpoint if there is one.

    What an epoch draws depends on the seed and the number of the epoch alone, so a run that was resumed draws what it
    would have drawn. With several processes each computes the features of its share of every batch, all compute the
    loss of the whole batch, and gradients are averaged: the answer is that of one process, but for rounding. A loss may
    leave out any part of the module, or use it outside of its forward pass.
    """
    fabric.to_device(module)
    optimizer = torch.optim.SGD(
        parameter_groups(module, weight_decay=optimization.weight_decay),
        lr=optimization.learning_rate,
        momentum=optimization.momentum,
    )
    n_done, state = checkpoint.load() if checkpoint else (0, {})
    if n_done:
        _restore(module, optimizer, state)
    for epoch in range(n_done, optimization.n_epochs):
        before_epoch(epoch)
        module.train()
        total, n_steps = 0.0, math.ceil((n_labeled + n_unlabeled) / optimization.batch_size)
        batches = draw_batches(n_labeled, n_unlabeled, optimization.batch_size, seed, epoch)
        for step, drawn in enumerate(batches):
            batch = replace(drawn, share=share_of(fabric))
            progress = (epoch + step / n_steps) / optimization.n_epochs
            for group in optimizer.param_groups:
                group["lr"] = optimization.learning_rate_at(progress)
            value = loss(module, batch, epoch)
            if not torch.isfinite(value):
                raise IgcdError(
                    f"the loss became {value.item()} in epoch {epoch + 1}, step {step + 1}; lower the learning rate "
                    f"(now {optimization.learning_rate}), or raise the temperatures"
                )
            optimizer.zero_grad()
            fabric.backward(value)
            _average_gradients(module, fabric)
            optimizer.step()
            total += value.item()
        _average([buffer for buffer in module.buffers() if buffer.is_floating_point()], fabric)
        if checkpoint and fabric.is_global_zero:
            checkpoint.save(epoch + 1, _state(module, optimizer))
        after_epoch(EpochReport(epoch, optimization.n_epochs, total / max(n_steps, 1)))
    module.eval()


def parameter_groups(module: nn.Module, *, weight_decay: float) -> list[dict[str, Any]]:
    """What is trained, as an optimizer takes it: matrices and kernels decay; biases and norms do not, as in SimGCD."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in trained if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in trained if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def numbered_generator(seed: int, number: int) -> torch.Generator:
    """The randomness of an epoch, or a stage, by its number. Of a seed beyond 44 bits the highest count no more."""
    return torch.Generator().manual_seed(((seed << 20) + number) % 2**64)


def draw_batches(n_labeled: int, n_unlabeled: int, batch_size: int, seed: int, epoch: int) -> Iterator[Batch]:
    """The batches of one epoch: as many images as there are, half labeled and half unlabeled where there are both.

    The smaller set is gone through again and again, in a new order each time, so that every batch has its half.
    """
    generator = numbered_generator(seed, epoch)
    n_steps = math.ceil((n_labeled + n_unlabeled) / batch_size)
    is_mixed = n_labeled > 0 and n_unlabeled > 0
    n_from_labeled = batch_size // 2 if is_mixed else batch_size * (n_labeled > 0)
    n_from_unlabeled = batch_size - n_from_labeled
    labeled = _draw_rows(n_labeled, n_steps * n_from_labeled, generator)
    unlabeled = _draw_rows(n_unlabeled, n_steps * n_from_unlabeled, generator)
    for step in range(n_steps):
        yield Batch(
            labeled[step * n_from_labeled : (step + 1) * n_from_labeled],
            unlabeled[step * n_from_unlabeled : (step + 1) * n_from_unlabeled],
            generator,
        )


def _draw_rows(n_rows: int, n_wanted: int, generator: torch.Generator) -> IntArray:
    """Rows in random order, again and again until there are enough."""
    if not n_rows or not n_wanted:
        return np.empty(0, dtype=np.int64)
    n_rounds = math.ceil(n_wanted / n_rows)
    return torch.cat([torch.randperm(n_rows, generator=generator) for _ in range(n_rounds)])[:n_wanted].numpy()


def share_of(fabric: Fabric) -> Share:
    """What this process computes of every batch."""
    if fabric.world_size == 1:
        return Share()

    def gather(rows: Tensor) -> Tensor:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # Fabric calls what PyTorch renames
            return cast("Tensor", fabric.all_gather(rows, sync_grads=True))

    return Share(fabric.global_rank, fabric.world_size, gather)


def _average_gradients(module: nn.Module, fabric: Fabric) -> None:
    """The mean over the processes, in place.

    Each has the loss of the whole batch, so a row that was gathered gets its gradient from all of them, and the mean
    brings it back to its size; and a parameter that the loss leaves out has no gradient in any of them. It stays
    without: a gradient of zero would let weight decay and momentum move it.
    """
    _average([parameter.grad for parameter in module.parameters() if parameter.grad is not None], fabric)


def _average(tensors: list[Tensor], fabric: Fabric) -> None:
    """Replaces tensors by their mean over the processes, in one message."""
    if fabric.world_size == 1 or not tensors:
        return
    together = cast("Tensor", fabric.all_reduce(torch.cat([tensor.flatten() for tensor in tensors]), reduce_op="mean"))
    sizes = [tensor.numel() for tensor in tensors]
    for tensor, mean in zip(tensors, torch.split(together, sizes), strict=True):
        tensor.copy_(mean.view_as(tensor))


def _state(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Parameters, buffers and momentum, by name."""
    state = {f"module.{name}": tensor.detach().clone() for name, tensor in module.state_dict().items()}
    for position, entry in optimizer.state_dict()["state"].items():
        if entry.get("momentum_buffer") is not None:
            state[f"momentum.{position}"] = entry["momentum_buffer"].clone()
    return state


def _restore(module: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Tensor]) -> None:
    module.load_state_dict(
        {name.removeprefix("module."): tensor for name, tensor in state.items() if name.startswith("module.")}
    )
    optimizer_state: dict[str, Any] = optimizer.state_dict()
    optimizer_state["state"] = {
        int(name.removeprefix("momentum.")): {"momentum_buffer": tensor}
        for name, tensor in state.items()
        if name.startswith("momentum.")
    }
    optimizer.load_state_dict(optimizer_state)

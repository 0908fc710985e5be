"""What S and R have in common: a few images per category, each with its id and whether its label was only guessed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from igcd.errors import IgcdError
from igcd.functional.grouping import distinct, rank_within_group


@dataclass(frozen=True)
class Account:
    """What is stored."""

    images: int
    categories: int
    pseudo_labeled: int  # images among them whose category is a guess
    bytes: int


class Entries:
    """At most `n_per_category` images of each category, each with one tensor (`content`) of equal shape.

    Labeled images go before pseudo-labeled ones and earlier ones before later ones when there are too many. An image
    added again replaces its former entry: that is how a revealed label corrects a guess.
    """

    def __init__(self, *, n_per_category: int) -> None:
        if n_per_category < 1:
            raise IgcdError(f"at least one image per category must be kept, got {n_per_category}; give 1 or more")
        self.n_per_category = n_per_category
        self.content = torch.empty(0)  # (n, ...)
        self.categories = torch.empty(0, dtype=torch.int64)  # (n,)
        self.is_pseudo = torch.empty(0, dtype=torch.bool)  # (n,)
        self.image_ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.image_ids)

    def add(self, content: Tensor, categories: Tensor, image_ids: Sequence[str], *, pseudo_labeled: bool) -> None:
        """Adds images, the most important of each category first. (n, ...), (n,), n."""
        n_new = len(image_ids)
        if len(content) != n_new or len(categories) != n_new or len(set(image_ids)) != n_new:
            raise IgcdError(
                f"each image added needs its content, category and own id, got {len(content)}, {len(categories)} and "
                f"{len(set(image_ids))} of {n_new}; pass one of each per image"
            )
        if n_new == 0:
            return
        if len(self) and content.shape[1:] != self.content.shape[1:]:
            raise IgcdError(
                f"what is added must have the shape of what is stored, {tuple(self.content.shape[1:])}, got "
                f"{tuple(content.shape[1:])}; a change of encoder or image size needs a new store"
            )
        replaced = set(image_ids)
        self._keep([image_id not in replaced for image_id in self.image_ids])
        stored = self.content.to(content.dtype) if len(self) == 0 else self.content
        self.content = torch.cat([stored.reshape(-1, *content.shape[1:]).to(content.device), content.to(stored.dtype)])
        self.categories = torch.cat([self.categories, categories.cpu()])
        self.is_pseudo = torch.cat([self.is_pseudo, torch.full((n_new,), pseudo_labeled)])
        self.image_ids += tuple(image_ids)
        self._trim()

    def remove(self, categories: Iterable[int]) -> None:
        """Forgets all images of these categories."""
        gone = torch.tensor(sorted(categories), dtype=torch.int64)
        self._keep((~torch.isin(self.categories, gone)).tolist())

    def account(self) -> Account:
        """What is stored, in figures."""
        n_bytes = sum(part.numel() * part.element_size() for part in (self.content, self.categories, self.is_pseudo))
        n_bytes += sum(len(image_id.encode()) for image_id in self.image_ids)
        return Account(len(self), len(distinct(self.categories)[0]), int(self.is_pseudo.sum()), n_bytes)

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """All of it as tensors and text, in the form `safetensors.torch.save_file(tensors, path, metadata)` takes."""
        tensors = {"content": self.content, "categories": self.categories, "is_pseudo": self.is_pseudo}
        metadata = {"n_per_category": json.dumps(self.n_per_category), "image_ids": json.dumps(self.image_ids)}
        return {name: part.contiguous() for name, part in tensors.items()}, metadata

    @classmethod
    def from_state_dict(cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Self:
        """The inverse of `state_dict`."""
        try:
            entries = cls(n_per_category=json.loads(metadata["n_per_category"]))
            entries.image_ids = tuple(json.loads(metadata["image_ids"]))
            entries.content = tensors["content"]
            entries.categories = tensors["categories"]
            entries.is_pseudo = tensors["is_pseudo"]
        except KeyError as missing:
            raise IgcdError(
                f"a stored {cls.__name__} needs the entry {missing}, it is absent; store it again"
            ) from None
        lengths = {len(entries), len(entries.content), len(entries.categories), len(entries.is_pseudo)}
        if len(lengths) != 1:
            raise IgcdError(
                f"the parts of a stored {cls.__name__} must be equally long, got {sorted(lengths)}; store it again"
            )
        return entries

    def _trim(self) -> None:
        """Keeps the first `n_per_category` of each category, labeled ones before pseudo-labeled ones."""
        by_rank = self.is_pseudo.long().argsort(stable=True)
        stays = torch.empty(len(self), dtype=torch.bool)
        stays[by_rank] = rank_within_group(self.categories[by_rank]) < self.n_per_category
        self._keep(stays.tolist())

    def _keep(self, stays: Sequence[bool]) -> None:
        if all(stays):
            return
        mask = torch.tensor(stays, dtype=torch.bool)
        self.content = self.content[mask.to(self.content.device)]
        self.categories, self.is_pseudo = self.categories[mask], self.is_pseudo[mask]
        self.image_ids = tuple(image_id for image_id, stay in zip(self.image_ids, stays, strict=True) if stay)

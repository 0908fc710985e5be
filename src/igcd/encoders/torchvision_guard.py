"""Import timm where torchvision's compiled half does not fit the installed torch."""

import importlib
from types import ModuleType

import torch

_MISSING_OPERATOR = "torchvision::nms"
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_kept_libraries: list[torch.library.Library] = []  # a schema lives as long as its library object


def import_torchvision() -> ModuleType | None:
    """torchvision, or None where it is not installed.

    A torchvision built for CUDA beside a CPU torch cannot load its operators and fails while registering them
    (`operator torchvision::nms does not exist`). timm needs only the Python half, so we declare the two operators
    that are asked for. Where the plain import works nothing is declared.
    """
    try:
        return importlib.import_module("torchvision")
    except ModuleNotFoundError:
        return None
    except RuntimeError as error:
        if _MISSING_OPERATOR not in str(error) or _kept_libraries:
            raise
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    library.define("nms" + _SCHEMA)  # type: ignore[no-untyped-call]
    library.define("qnms" + _SCHEMA)  # type: ignore[no-untyped-call]
    _kept_libraries.append(library)
    return importlib.import_module("torchvision")


def import_timm() -> ModuleType:
    """timm, after torchvision has been made importable."""
    import_torchvision()
    return importlib.import_module("timm")

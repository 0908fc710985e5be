"""A fitted `CategoryDiscoverer` as tensors and JSON texts, and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from igcd.discoverer.arguments import check_parameters
from igcd.discoverer.category_means import CategoryMeans
from igcd.discoverer.certainty import Certainty, NoneOfThese
from igcd.discoverer.kept_rows import KeptRows
from igcd.discoverer.reports import Discovery
from igcd.discoverer.rows import short_keys
from igcd.discoverer.soundness import check_stored
from igcd.errors import IgcdError
from igcd.functional.confidence import Confidence
from igcd.functional.projection import Projection
from igcd.functional.whitening import Whitening
from igcd.memory.category_ledger import CategoryLedger, DiscovererError
from igcd.memory.support_set import SupportSet

STATE_VERSION = 3
_READABLE = (2, STATE_VERSION)
"""Version 2 did not tell later rows from those that were learned from."""
_NUMBERS = ("n_features_in_", "_dtype_name", "_n_batches", "_n_calibrated", "n_groups_")
_OBJECTS = (
    *("ledger_", "_kept", "_projection", "_means", "_discoveries"),
    *("_row_ids", "_row_keys", "_learned_keys", "feature_names_in_"),
)
FITTED = (*_NUMBERS, "neighbor_recall_", *_OBJECTS)
"""The attributes of an estimator that say what it has learned."""

T = TypeVar("T")


def to_state(parameters: Mapping[str, Any], fitted: Mapping[str, Any]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and texts for the parameters and the `FITTED` attributes of an estimator."""
    projection: Projection = fitted["_projection"]
    means: CategoryMeans = fitted["_means"]
    kept_tensors, kept_metadata = fitted["_kept"].entries.state_dict()
    keys = np.char.encode(fitted["_row_keys"], "ascii")
    key_bytes = np.frombuffer(b"".join(keys.tolist()), dtype=np.uint8).reshape(len(keys), -1)
    tensors = {f"kept.{name}": tensor for name, tensor in kept_tensors.items()}
    tensors |= {f"space.{name}": getattr(projection, name) for name in ("mean", "components")}
    tensors |= {f"classifier.{name}": getattr(means, name) for name in ("ids", "means", "counts")}
    tensors |= {
        "whitening": means.whitening.matrix,
        "row_ids": torch.from_numpy(fitted["_row_ids"]),
        "row_keys": torch.tensor(key_bytes),
        "learned_keys": torch.from_numpy(fitted["_learned_keys"]),
    }
    metadata = {f"kept.{name}": text for name, text in kept_metadata.items()}
    metadata |= {
        "version": json.dumps(STATE_VERSION),
        "parameters": json.dumps(dict(parameters)),
        "ledger": json.dumps(fitted["ledger_"].state()),
        "discoveries": json.dumps([asdict(discovery) for discovery in fitted["_discoveries"]]),
        "fitted": json.dumps({name: fitted[name] for name in (*_NUMBERS, "neighbor_recall_")}),
        "scale": json.dumps({"exponent": projection.exponent, **_of_certainty(means.learned)}),
        "later": json.dumps(means.later and _of_certainty(means.later)),
    }
    if "feature_names_in_" in fitted:
        metadata["feature_names_in"] = json.dumps(fitted["feature_names_in_"].tolist())
    return {name: tensor.contiguous() for name, tensor in tensors.items()}, metadata


def from_state(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inverse of `to_state`."""
    try:
        version = json.loads(metadata["version"])
        if version not in _READABLE:
            raise DiscovererError(
                f"a stored discoverer must be of version {STATE_VERSION}, got {version}; "
                "read it with the version of igcd that wrote it"
            )
        scale, ledger = json.loads(metadata["scale"]), CategoryLedger.from_state(json.loads(metadata["ledger"]))
        tells_later = version == STATE_VERSION
        later = json.loads(metadata["later"]) if tells_later else None
        kept = SupportSet.from_state_dict(_part(tensors, "kept."), _part(metadata, "kept."))
        numbers = json.loads(metadata["fitted"])
        fitted = {name: numbers[name] for name in _NUMBERS} | {
            "neighbor_recall_": float(numbers.get("neighbor_recall_", 1.0)),  # not in what earlier versions stored
            "ledger_": ledger,
            "_kept": KeptRows(ledger, kept),
            "_projection": Projection(tensors["space.mean"], tensors["space.components"], int(scale["exponent"])),
            "_means": CategoryMeans(
                Whitening(tensors["whitening"]),
                _to_certainty(scale),
                **{name: tensors[f"classifier.{name}"] for name in ("ids", "means", "counts")},
                later=later and _to_certainty(later),
            ),
            "_discoveries": [
                Discovery(**{"label": ledger.current(entry["id"]).label} | entry | {"members": tuple(entry["members"])})
                for entry in json.loads(metadata["discoveries"])
            ],
            "_row_ids": tensors["row_ids"].numpy(),
            "_row_keys": np.array([bytes(key.tolist()).decode("ascii") for key in tensors["row_keys"]], dtype=np.str_),
        }
        of_last_call = short_keys(fitted["_row_keys"])
        fitted["_learned_keys"] = tensors["learned_keys"].numpy() if tells_later else np.unique(of_last_call)
        if "feature_names_in" in metadata:
            fitted["feature_names_in_"] = np.array(json.loads(metadata["feature_names_in"]), dtype=object)
        parameters: dict[str, Any] = json.loads(metadata["parameters"])
        check_parameters(parameters)
        check_stored(ledger, fitted["_kept"], fitted["_projection"], fitted["_means"], fitted["_row_ids"], fitted)
    except IgcdError:
        raise
    except KeyError as missing:
        raise DiscovererError(f"a stored discoverer needs the entry {missing}, it is absent; store it again") from None
    except Exception as error:  # whatever a damaged text or tensor leads to
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DiscovererError(f"a stored discoverer is damaged ({reason}); store it again") from None
    return parameters, fitted


def _of_certainty(certainty: Certainty) -> dict[str, Any]:
    return {**asdict(certainty.confidence), "none": certainty.none and asdict(certainty.none)}


def _to_certainty(scale: Mapping[str, Any]) -> Certainty:
    """The inverse; earlier versions stored no strays, and the first ones not how far rows of no category are."""
    none = NoneOfThese(**scale["none"]) if scale.get("none") else None
    return Certainty(Confidence(float(scale["sharpness"]), float(scale.get("stray", 0.0))), none)


def _part(entries: Mapping[str, T], prefix: str) -> dict[str, T]:
    return {name.removeprefix(prefix): entry for name, entry in entries.items() if name.startswith(prefix)}

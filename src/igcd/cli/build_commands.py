"""The options of `igcd build …`, a command for each source. What they do is loaded when it is asked for."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from igcd.data.sources import SOURCES
from igcd.errors import IgcdError
from igcd.limits import MAX_SEED

Out = Annotated[
    Path, typer.Option(help="Folder to write split.tsv, taxonomy.csv and places.csv to.", show_default=False)
]
SplitOut = Annotated[Path, typer.Option(help="Folder to write split.tsv to.", show_default=False)]
Protocol = Annotated[str, typer.Option(help="igcd-l or igcd-u: whether labels arrive after stage 0.")]
Reading = Annotated[
    str,
    typer.Option(help="replace, add, year or place: whether a stage's continents replace or join those before it."),
]
Stages = Annotated[
    str | None, typer.Option(help='Like "2008-2016: North America, Europe; 2017: Oceania"; the paper\'s when unset.')
]
MinImages = Annotated[int, typer.Option(help="Training images that a category needs to be in a stage.")]
ImagesPerStage = Annotated[
    int | None, typer.Option(help="Training images of a stage, drawn at random; all when unset.")
]
HeldOut = Annotated[float | None, typer.Option(help="Share of images set aside as test images, where there are none.")]
Returning = Annotated[
    str, typer.Option(help="old or new: where categories count that were labeled once and come back unlabeled.")
]
Images = Annotated[Path | None, typer.Option(help="Folder with the images; not needed to build.")]
Seed = Annotated[int, typer.Option(help="Random seed for drawing images.", min=0, max=MAX_SEED)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def add_build_commands(build_app: typer.Typer) -> None:
    """Adds the command of each source to `igcd build`."""
    build_app.command("fieldguide", help=SOURCES["fieldguide"].description)(fieldguide)
    build_app.command("inat2021", help="iNatIGCD from the annotation files of iNat2021: stages by year and continent.")(
        inat2021
    )
    build_app.command(
        "observations", help="Your own observations, by year and continent: iNaturalist CSV, Darwin Core."
    )(observations)
    for source in SOURCES.values():
        if source.name != "fieldguide":
            build_app.command(source.name, help=source.description)(_by_category(source.name))


def fieldguide(
    out: Out,
    protocol: Protocol = "igcd-l",
    reading: Reading = "replace",
    stages: Stages = None,
    min_images: MinImages = 1,
    images_per_stage: ImagesPerStage = None,
    returning: Returning = "old",
    species: Annotated[int, typer.Option(help="How many species there are, 10 to 10,000.")] = 60,
    images: Annotated[int, typer.Option(help="How many training images there are.")] = 4_000,
    test_per_species: Annotated[int, typer.Option(help="How many test images each species has.")] = 20,
    size: Annotated[int, typer.Option(help="Side of a picture in pixels.")] = 96,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Also write the pictures and annotations, in the layout of iNat2021.")
    ] = False,
    seed: Annotated[
        int, typer.Option(help="Random seed of the guide, and of --images-per-stage.", min=0, max=MAX_SEED)
    ] = 0,
    as_json: Json = False,
) -> None:
    """`igcd build fieldguide --out DIR`: the built-in data, by year and continent."""
    from igcd.cli.build_inat import build_fieldguide

    build_fieldguide(
        out,
        guide={"n_species": species, "n_images": images, "n_test_per_species": test_per_species, "size": size},
        spec={
            "protocol": protocol,
            "reading": reading,
            "stages": stages,
            "min_images": min_images,
            "images_per_stage": images_per_stage,
            "returning": returning,
        },
        pictures=pictures,
        seed=seed,
        as_json=as_json,
    )


def inat2021(
    annotations: Annotated[
        list[Path],
        typer.Option(help="train.json or train_mini.json, then val.json; may stay packed.", show_default=False),
    ],
    out: Out,
    more: Annotated[list[Path] | None, typer.Argument(metavar="[VAL.JSON]", show_default=False)] = None,
    images: Images = None,
    protocol: Protocol = "igcd-l",
    reading: Reading = "replace",
    stages: Stages = None,
    min_images: MinImages = 1,
    images_per_stage: ImagesPerStage = None,
    held_out: HeldOut = None,
    returning: Returning = "old",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """`igcd build inat2021 --annotations train.json val.json --out DIR`."""
    from igcd.cli.build_inat import build_inat2021

    files = [*annotations, *(more or [])]  # an option takes one value, the second file arrives as an argument
    if len(files) > 2:
        raise IgcdError(
            f"--annotations takes a training and a test file, got {len(files)}; give train.json and val.json"
        )
    build_inat2021(
        files[0],
        files[1] if len(files) == 2 else None,
        out,
        spec={
            "protocol": protocol,
            "reading": reading,
            "stages": stages,
            "min_images": min_images,
            "images_per_stage": images_per_stage,
            "held_out": held_out,
            "returning": returning,
        },
        images=images,
        seed=seed,
        as_json=as_json,
    )


def observations(
    file: Annotated[Path, typer.Argument(help="iNaturalist CSV, Darwin Core archive or GBIF download.")],
    out: Out,
    images: Images = None,
    protocol: Protocol = "igcd-l",
    reading: Reading = "replace",
    stages: Stages = None,
    min_images: MinImages = 1,
    images_per_stage: ImagesPerStage = None,
    held_out: HeldOut = 0.2,
    returning: Returning = "old",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """`igcd build observations FILE --images DIR --stages … --out DIR`."""
    from igcd.cli.build_inat import build_observations

    build_observations(
        file,
        out,
        spec={
            "protocol": protocol,
            "reading": reading,
            "stages": stages,
            "min_images": min_images,
            "images_per_stage": images_per_stage,
            "held_out": held_out,
            "returning": returning,
        },
        images=images,
        seed=seed,
        as_json=as_json,
    )


def _by_category(source: str) -> Callable[..., None]:
    """The `igcd build SOURCE` command of one data source; all sources take the same options."""
    sizes = SOURCES[source].split_sizes
    usual = ",".join(map(str, sizes)) if sizes else "70% of them, then three times 10%"

    def build(
        out: SplitOut,
        data: Annotated[Path | None, typer.Option(help="Folder or file that holds the data.")] = None,
        option: Annotated[
            list[str] | None,
            typer.Option(help="An option of the source, as key=value (docs/data.md); may be repeated.", metavar="K=V"),
        ] = None,
        protocol: Annotated[
            str, typer.Option(help="igcd-l, igcd-u, mi, cgcd or static; `igcd ls streams`.")
        ] = "igcd-l",
        stages: Annotated[
            str | None,
            typer.Option(
                help="Number of categories that are new at each stage, like 4,2,2,2. "
                f"Unset: {usual}; cgcd: 50% and five times 10%; static: half labeled, half novel."
            ),
        ] = None,
        old_presence: Annotated[
            float | None, typer.Option(help="Share of earlier categories that come back; mi and cgcd 1, else 0.5.")
        ] = None,
        images_labeled: Annotated[
            int | None, typer.Option(help="Images per category at stage 0; all when unset.")
        ] = None,
        images_new: Annotated[int | None, typer.Option(help="Images per novel category; all when unset.")] = None,
        images_old: Annotated[int, typer.Option(help="Images per returning category and stage.")] = 25,
        labeled_share: Annotated[float, typer.Option(help="static: share of images that is labeled.")] = 0.5,
        test_per_category: Annotated[int | None, typer.Option(help="Test images per category; all when unset.")] = None,
        held_out: Annotated[
            float | None, typer.Option(help="Share of images set aside as test images, for data without any.")
        ] = None,
        category_order: Annotated[
            Path | None, typer.Option(help="Text file, one category per line, in the order they are met.")
        ] = None,
        returning: Annotated[
            str, typer.Option(help="old or new: where categories count that were labeled once and come back unlabeled.")
        ] = "old",
        seed: Annotated[
            int,
            typer.Option(help="Random seed of the order of categories and images.", min=0, max=MAX_SEED),
        ] = 0,
        max_broken: Annotated[float, typer.Option(help="Share of unreadable images that stops the build.")] = 0.05,
        check: Annotated[bool, typer.Option(help="Decode every file once, to set the broken ones aside.")] = True,
        as_json: Json = False,
    ) -> None:
        from igcd.cli.build import build_by_category

        build_by_category(
            source,
            data,
            out,
            options=option or [],
            spec={
                "protocol": protocol,
                "categories_per_stage": None if stages is None else stages.split(","),
                "old_presence": old_presence,
                "images_labeled": images_labeled,
                "images_new": images_new,
                "images_old": images_old,
                "labeled_share": labeled_share,
                "test_per_category": test_per_category,
                "held_out": held_out,
                "returning": returning,
            },
            category_order=category_order,
            seed=seed,
            max_broken=max_broken,
            check=check,
            as_json=as_json,
        )

    return build

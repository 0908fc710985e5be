"""Photos in a folder: find what is new, name it, and go on with the next batch.

    python examples/photos.py [FOLDER WORKSPACE]

Photos in FOLDER/<category>/ have that label, those in FOLDER/unlabeled/ have none. Without arguments it draws a folder
to try. The workspace is the one that `igcd discover` and `igcd review` use.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from igcd.data.fieldguide.guide import FieldGuide
from igcd.workspace import decisions, queries
from igcd.workspace.accept import accept_stage
from igcd.workspace.adapt import current_encoder
from igcd.workspace.catalog import open_catalog
from igcd.workspace.discover import discover
from igcd.workspace.features import encoder_of
from igcd.workspace.init import init_workspace


def draw_photos(folder: Path) -> None:
    """Three kinds with labels and some more photos of them, and mushrooms, which have no label."""
    guide = FieldGuide(n_test_per_species=20)
    for kind, species in {"beetle": 0, "fish": 10, "flower": 54, "mushroom": 45}.items():
        sightings = [one for one in guide.sightings("val") if one.species == species][:15]
        for position, sighting in enumerate(sightings):
            is_labeled = kind != "mushroom" and position < 10
            path = folder / (kind if is_labeled else "unlabeled") / f"{sighting.digits[:8]}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(guide.draw(sighting)).save(path)


def main(folder: Path, workspace: Path) -> None:
    """One round: look, name the first new category, accept."""
    print(init_workspace(workspace, folder, from_folders=True, encoder={"size": 112}).sentence())
    with open_catalog(workspace) as catalog:
        encoder = current_encoder(catalog, encoder_of(catalog))
        print(discover(catalog, encoder).sentence())
        for category in queries.queue(catalog):
            photos = queries.photos_of(catalog, category.id, limit=3).photos
            print(f"{category.title}: {category.n_photos} photos, such as {photos[0].path}")
            alike = queries.nearest_known(catalog, category.id, n_categories=1)
            print(f"  looks most like {alike[0].category.title}" if alike else "  looks like nothing known")
            decisions.name(catalog, category.id, f"my {category.title}", author="me")  # after looking at its photos
        accept_stage(catalog, author="me")
        print("known now:", ", ".join(category.title for category in queries.categories(catalog)))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as place:
            draw_photos(Path(place, "photos"))
            main(Path(place, "photos"), Path(place, "workspace"))

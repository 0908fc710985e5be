"""Stanford Cars: 8,144 + 8,041 photographs of cars, 196 models (Krause et al., 2013)."""

from pathlib import Path
from typing import Any

from igcd.data.dataset import Dataset
from igcd.data.files import first_existing
from igcd.data.matlab_file import NotMatlabError, read_variable
from igcd.data.ordering import listed
from igcd.errors import IgcdError

META = "cars_meta.mat"
ANNOTATIONS = {"cars_train": "cars_train_annos.mat", "cars_test": "cars_test_annos_withlabels.mat"}
DEVKITS = ("", "devkit", "car_devkit/devkit")


def load(root: Path) -> Dataset:
    """The images in `cars_train/` and `cars_test/` with the annotations of the devkit, all below `root`."""
    found = {name: _find(root, name) for name in (META, *ANNOTATIONS.values())}
    missing = [name for name, path in found.items() if path is None]
    missing += [f"{folder}/" for folder in ANNOTATIONS if not (root / folder).is_dir()]
    if missing:
        raise IgcdError(
            f"Stanford Cars is incomplete in {root}, missing: {', '.join(missing)}; unpack cars_train.tgz, "
            "cars_test.tgz and car_devkit.tgz and add the test labels"
        )
    names = [str(name) for name in _read(found[META], "class_names")]
    rows = []
    for folder, file_name in ANNOTATIONS.items():
        for annotation in _read(found[file_name], "annotations"):
            fields = list(annotation) if isinstance(annotation, dict) else []
            if "class" not in fields or "fname" not in fields:
                raise IgcdError(
                    f"{found[file_name]} must hold annotations with the fields fname and class, got "
                    f"{', '.join(fields) or 'none'}; the test file must be the one with labels"
                )
            number, image = annotation["class"], annotation["fname"]
            if not isinstance(number, int | float) or number not in range(1, len(names) + 1):
                raise IgcdError(
                    f"{found[file_name]}: classes must be 1 to {len(names)}, got {number}; download it again"
                )
            if not isinstance(image, str) or not image:
                raise IgcdError(f"{found[file_name]}: file names must be text, got {image!r}; download it again")
            rows.append((f"{folder}/{image}", int(number) - 1, folder == "cars_test"))
    return listed("cars", root, rows, names)


def _find(root: Path, name: str) -> Path | None:
    return first_existing(root / devkit / name for devkit in DEVKITS)


def _read(path: Path | None, variable: str) -> list[Any]:
    try:
        value = read_variable(Path(str(path)), variable)
    except NotMatlabError as error:
        raise IgcdError(f"{path} must be a MATLAB file with `{variable}` ({error}); download it again") from None
    return value if isinstance(value, list) else [value]

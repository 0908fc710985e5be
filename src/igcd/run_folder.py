"""The folder of a run before it learns: whose it is, whether the run may go on, and the secret of its image ids."""

from pathlib import Path
from typing import Any

from igcd.errors import IgcdError
from igcd.records import is_unfinished, read_json, write_bytes
from igcd.streams.veil import SECRET_BYTES, new_secret

VEIL_KEY = "veil.key"
"""The file of the secret. It is among the runner's own files, to which nothing leads that a method is handed."""
FIRST_FILES = ("config.json", VEIL_KEY, "split.tsv", "places.csv", "taxonomy.csv")
"""What a run writes before it learns, the settings first: a folder with a split alone is one of `igcd build`."""


def check_folder(out: Path, config: dict[str, Any], *, resume: bool) -> bool:
    """Whether `out` holds this very run, complete. Raises where it holds anything that must not be touched.

    A folder that holds a run of another config is refused; one of the same config needs `resume`.
    """
    if out.exists() and not out.is_dir():
        raise IgcdError(f"{out} is a file, not a folder; give --out a new folder")
    stored = stored_config(out)
    if stored is None:
        if out.is_dir() and not has_just_begun(out):
            raise IgcdError(f"{out} is not empty and not the output of a run; give --out a new folder")
        return False
    if stored != config:
        raise IgcdError(f"{out} holds a run with other settings (see {out / 'config.json'}); give --out a new folder")
    if not resume:
        raise IgcdError(f"{out} holds this very run; continue it with --resume, or give --out a new folder")
    return (out / "results.json").is_file()


def stored_config(out: Path) -> dict[str, Any] | None:
    """The settings of the run in a folder; None where there is none, or one killed before they were whole."""
    path = out / "config.json"
    if not path.is_file():
        return None
    try:
        config: dict[str, Any] = read_json(path)
    except IgcdError:
        if has_just_begun(out):
            return None
        raise
    return config


def has_just_begun(out: Path) -> bool:
    """Whether a folder holds nothing but what a run writes before it learns, or nothing."""
    ours = FIRST_FILES if (out / "config.json").is_file() else ()
    return all(entry.name in ours or is_unfinished(entry) for entry in out.iterdir())


def secret_of(out: Path) -> bytes:
    """The secret of the run in a folder; a new one, to be written by `write_secret`, where it has not learned yet."""
    path = out / VEIL_KEY
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        secret = b""
    if len(secret) == SECRET_BYTES:
        return secret
    if (out / "model" / "model.safetensors").is_file():
        raise IgcdError(
            f"{path} is missing or damaged; without it, kept images cannot be distinguished from new ones; "
            "run again into another folder"
        )
    return new_secret()


def write_secret(out: Path, secret: bytes) -> None:
    """Keeps the secret with the runner's own files, for a run that is resumed."""
    write_bytes(out / VEIL_KEY, secret.hex().encode())

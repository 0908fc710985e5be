"""Whether a folder may be run into, and the secret that is kept in it."""

import pytest

from igcd.errors import IgcdError
from igcd.run_folder import check_folder, secret_of, write_secret

CONFIG = {"seed": 0}
WHOLE = '{"seed": 0}'


@pytest.mark.parametrize(
    "left",
    [
        {},
        {".config.json.4711": WHOLE[:5]},
        {"config.json": ""},
        {"config.json": WHOLE[:5], ".config.json.4711": "", "split.tsv": "", "veil.key": "", "places.csv": ""},
    ],
    ids=["nothing", "unfinished", "empty", "torn"],
)
@pytest.mark.parametrize("resume", [True, False])
def test_a_run_killed_before_its_settings_were_whole_begins_again(tmp_path, left, resume):
    for name, text in left.items():
        (tmp_path / name).write_text(text)
    assert check_folder(tmp_path, CONFIG, resume=resume) is False
    assert len(secret_of(tmp_path)) == 16


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (["split.tsv", "places.csv"], "not empty"),  # as `igcd build` leaves them
        (["thesis.tex"], "not empty"),
        (["config.json", "results.json"], "cannot be read"),
        (["config.json", "thesis.tex"], "cannot be read"),
    ],
)
def test_what_is_not_the_beginning_of_a_run_is_not_touched(tmp_path, left, words):
    for name in left:
        (tmp_path / name).write_text("")
    for resume in (True, False):
        with pytest.raises(IgcdError, match=words):
            check_folder(tmp_path, CONFIG, resume=resume)


def test_the_secret_survives(tmp_path):
    assert secret_of(tmp_path) != secret_of(tmp_path)  # drawn again until it is written
    secret = secret_of(tmp_path)
    write_secret(tmp_path, secret)
    assert secret_of(tmp_path) == secret


@pytest.mark.parametrize("content", [None, b"", b"no hex", b"abcd", b"\xff"])
def test_without_its_secret_a_model_cannot_go_on(tmp_path, content):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").touch()
    if content is not None:
        (tmp_path / "veil.key").write_bytes(content)
    with pytest.raises(IgcdError, match=r"veil.key is missing or damaged.*run again into another folder"):
        secret_of(tmp_path)

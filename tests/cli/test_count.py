import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from igcd.cli.count import METHODS, count, estimate_from, read_features
from igcd.errors import IgcdError
from igcd.functional.counting import COUNT_METHODS

N_KNOWN, N_NOVEL, N_IMAGES = 6, 3, 24


@pytest.fixture
def folder(tmp_path):
    """features.npy with nine clear clusters: six of 48, half of them labeled, and three of 24 without a label."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(N_KNOWN + N_NOVEL), [2 * N_IMAGES] * N_KNOWN + [N_IMAGES] * N_NOVEL)
    features = np.eye(18)[rows] + 0.3 + 0.08 * rng.standard_normal((len(rows), 18))
    labels = np.where((rows < N_KNOWN) & (np.arange(len(rows)) % 2 == 0), rows, -1)
    np.save(tmp_path / "features.npy", features.astype(np.float32))
    np.save(tmp_path / "labels.npy", labels)
    names = ["" if label < 0 else f"kind {label}" for label in labels]
    (tmp_path / "labels.txt").write_text("".join(f"{name}\n" for name in names))
    (tmp_path / "labels.csv").write_text("id,Category\n" + "".join(f"{i},{name}\n" for i, name in enumerate(names)))
    return tmp_path


@pytest.fixture
def run(folder):
    app = typer.Typer()
    app.command()(count)

    def run(*options, features="features.npy"):
        options = [str(folder / option) if "." in option else option for option in options]
        return CliRunner().invoke(app, [str(folder / features), *options])

    return run


@pytest.mark.parametrize("labels", ["labels.npy", "labels.txt", "labels.csv"])
def test_labels_of_every_kind_of_file_give_the_same_count(run, labels):
    result = run("--labels", labels, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["n_categories"] == N_KNOWN + N_NOVEL
    assert (found["n_known"], found["n_novel"]) == (N_KNOWN, N_NOVEL)
    assert (found["n_images"], found["n_labeled"]) == (15 * N_IMAGES, 6 * N_IMAGES)
    assert found["details"]["height"] > 0


def test_the_answer_is_a_sentence(run):
    assert "9 categories, 6 with labels and 3 novel" in run("--labels", "labels.txt").output
    assert "9 categories, 0 with labels and 9 novel" in run().output
    assert "9 categories" in run("--method", "silhouette", "--max-categories", "16", "--starts", "5").output


def test_granularity_is_one_knob_from_coarse_to_fine(run):
    counts = [
        json.loads(run("--labels", "labels.npy", "--granularity", knob, "--json").output)["n_novel"]
        for knob in ("-5", "0", "5")
    ]
    assert counts[0] < counts[1] == N_NOVEL < counts[2]
    for gone in ("--neighbors", "--margin"):
        assert "No such option" in run(gone, "1").output


def test_k_means_searches(run):
    found = json.loads(run("--labels", "labels.npy", "--method", "kmeans", "--max-categories", "20", "--json").output)
    assert found["method"] == "kmeans"
    assert found["n_trials"] > 2
    assert 0 < found["details"]["accuracy"] <= 1


@pytest.mark.parametrize("kind", [np.float16, np.float64, np.int32])
def test_any_numbers_will_do(run, folder, kind):
    features = np.load(folder / "features.npy")
    np.save(folder / "features.npy", (features * 100).astype(kind))
    assert json.loads(run("--labels", "labels.npy", "--json").output)["n_categories"] == 9


def bad_inputs():
    flat, names = np.zeros(5), np.array([["a", "b"]])
    return [
        ("features.npy", b"no numpy file", [], "cannot be read as .npy"),
        ("features.npy", b"", [], "cannot be read as .npy"),
        ("features.npy", flat, [], r"one embedding per row, got an array of shape \(5,\)"),
        ("features.npy", names, [], "must hold numbers, got <U1"),
        ("features.npy", np.array([[1.0, np.nan], [1.0, 2.0]]), [], "row 0"),
        ("features.npy", np.array([[1.0, 2.0], [np.inf, 2.0]]), [], "row 1"),
        ("features.npy", np.zeros((0, 3)), [], "two unlabeled images at least, got 0"),
        ("features.npy", np.zeros((1, 3)), [], "two unlabeled images at least, got 1"),
        ("labels.npy", flat, ["--labels", "labels.npy"], r"got float64 of shape \(5,\)"),
        ("labels.npy", np.array([2**31] * 360, np.uint32).view("<U1"), ["--labels", "labels.npy"], "labels.npy"),
        ("labels.npy", np.arange(5), ["--labels", "labels.npy"], "each of the 360 embeddings, got 5"),
        ("labels.npy", np.arange(360), ["--labels", "labels.npy"], "two unlabeled images at least, got 0"),
        ("labels.txt", b"a\nb\n", ["--labels", "labels.txt"], "each of the 360 embeddings, got 2"),
        ("labels.txt", b"\xff\xfe\xff", ["--labels", "labels.txt"], "is not UTF-8"),
        ("labels.csv", b"", ["--labels", "labels.csv"], "is empty"),
        ("labels.csv", b"id,kind\n1,a\n", ["--labels", "labels.csv"], "named label or category, got id, kind"),
        ("labels.csv", b"id,label\n1\n", ["--labels", "labels.csv"], "line 2: expected 2 values, got 1"),
        ("labels.csv", b'label\n"a\n', ["--labels", "labels.csv"], "is not a CSV file"),
        ("labels.txt", b"\n" * 360, ["--method", "kmeans", "--labels", "labels.txt"], "got none; give labels"),
        ("labels.txt", b"", ["--method", "guess"], "got 'guess'"),
        ("labels.txt", b"", ["--starts", "0"], "--starts must be from 1 to 10,000, got 0"),
        ("labels.txt", b"", ["--starts", str(2**62)], "--starts must be from 1 to 10,000"),
        ("labels.txt", b"", ["--labels", "absent.txt"], "is not a file; check the path"),
        ("labels.txt", b"", ["--labels", "absent.npy"], "is not a file; check the path"),
    ]


@pytest.mark.parametrize(("file", "content", "options", "message"), bad_inputs())
def test_bad_input_is_one_sentence(run, folder, file, content, options, message):
    if isinstance(content, bytes):
        (folder / file).write_bytes(content)
    else:
        np.save(folder / file, content)
    error = run(*options).exception
    assert isinstance(error, IgcdError)
    with pytest.raises(IgcdError, match=message):
        raise error


HEADER = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2), }"


@pytest.mark.parametrize(
    "header",
    [
        HEADER[:-1],  # tokenize complains
        HEADER.replace("(4, 2)", f"({2**63}, 2)"),
        HEADER.replace("(4, 2)", f"({10**300}, 2)"),
        HEADER.replace("(4, 2)", "(10000000000000, 2)"),
        HEADER.replace("(4, 2)", "(-4, -2)"),
        HEADER.replace("(4, 2)", "(" * 3000),
        HEADER.replace("(4, 2)", "(4, 20)"),
        HEADER.replace("(4, 2)", "(4, 2if 1else 3)"),
        HEADER.replace("'<f4'", "'<f\0'"),
        HEADER.replace("'<f4'", "[('a', '<f4', -1)]"),
        HEADER.replace("'<f4'", "'|O'"),
    ],
    ids=lambda header: header[:80],
)
@pytest.mark.filterwarnings("error")
def test_a_damaged_header_is_one_sentence(run, folder, header):
    magic = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    for file, options in (("labels.npy", ["--labels", "labels.npy"]), ("features.npy", [])):
        (folder / file).write_bytes(magic + header.encode() + bytes(32))
        error = run(*options).exception
        assert isinstance(error, IgcdError), error
        assert f"{file} cannot be read as .npy" in str(error)


@pytest.mark.parametrize(("factor", "kind"), [(1e25, np.float32), (1e-25, np.float32), (1e200, np.float64)])
@pytest.mark.parametrize("options", [["--labels", "labels.npy"], []])
def test_scale_is_not_information(run, folder, factor, kind, options):
    expected = json.loads(run(*options, "--json").output)
    np.save(folder / "features.npy", factor * np.load(folder / "features.npy").astype(kind))
    found = json.loads(run(*options, "--json").output)
    assert found["details"].pop("height") == pytest.approx(expected["details"].pop("height"), rel=1e-2)
    assert found == expected


def test_no_pickle_is_opened(run, folder):
    class Harmful:
        def __reduce__(self):
            return (folder / "harmed").write_text, ("",)

    harmful = np.array([Harmful()], dtype=object)
    np.save(folder / "features.npy", harmful, allow_pickle=True)
    assert "allow_pickle=False" in str(run().exception)
    (folder / "features.npy").write_bytes(pickle.dumps(Harmful()))
    assert isinstance(run().exception, IgcdError)
    assert not (folder / "harmed").exists()


def test_every_estimator_can_be_asked_for():
    assert METHODS == COUNT_METHODS


def test_help_does_not_load_torch():
    code = "import sys; import igcd.cli.count; assert not {'torch', 'numpy', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_very_many_rows_stay_in_half_precision_and_count_alike(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(240) % 6
    table = (4 * rng.normal(size=(6, 12))[y] + rng.normal(size=(240, 12))).astype(np.float16)
    np.save(tmp_path / "x.npy", table)
    names = [str(category) if category < 3 and row < 120 else "" for row, category in enumerate(y)]

    def found():
        rows = read_features(tmp_path / "x.npy")
        settings = {"method": "density", "granularity": 0.0, "max_categories": None, "n_starts": 1, "seed": 0}
        return rows.dtype, estimate_from(rows, names, **settings)[0].n_categories

    assert found() == (np.float32, 6)
    monkeypatch.setattr("igcd.functional.neighbors.EXACT_UP_TO", 100)  # the graph itself keeps its limit
    assert found() == (np.float16, 6)

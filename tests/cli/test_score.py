import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from igcd.cli.score import score
from igcd.errors import IgcdError

FILE = """stage,split,image_id,category,cluster,group
0,test,a,cat,1,Old
0,test,b,dog,2,Old
1,test,a,cat,1,S-0
1,test,b,dog,1,S-0
1,test,c,owl,3,New
"""


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    app.command()(score)
    path = tmp_path / "predictions.csv"

    def run(content, *options):
        path.write_text(content)
        return CliRunner().invoke(app, ["--predictions", str(path), *options])

    return run


def test_the_table_names_every_variant_and_cuts_nothing_off(run):
    result = run(FILE)
    assert result.exit_code == 0
    for split, matching, average, old in [
        ("test", m, a, o) for m in ("v1", "v2") for a in ("image", "category") for o in ("paper", "soft", "hard")
    ]:
        assert f"{split}/{matching}/{average}/{old}" in result.output
    assert "S-0" in result.output
    assert "M_f 50.0" in result.output
    assert "M_d 66.7" in result.output
    assert "VB-CGCD" in result.output and "won" in result.output
    assert "…" not in result.output


def test_json_is_json_in_percent(run):
    card = json.loads(run(FILE, "--json").output)
    assert card["stages"][1]["scores"] == {"All": 100.0, "Old": None, "New": 100.0, "S-0": 50.0}
    assert card["M_f"] == 50.0
    assert card["M_d"] == pytest.approx(200 / 3)


def test_bad_input_is_an_igcd_error_for_the_command_line_to_print(run):
    error = run(FILE.replace("S-0", "S-9")).exception
    assert isinstance(error, IgcdError)
    assert "predictions.csv, line 4" in str(error)


def test_whether_a_file_can_be_read_is_not_for_the_option_to_say(run, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_, **__: False)
    assert run(FILE).exit_code == 0  # a usage message would have ended it with 2


def test_scoring_does_not_load_torch(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text(FILE)
    code = (
        "import sys; from pathlib import Path; from igcd.cli.score import score; "
        "assert 'scipy' not in sys.modules; score(Path(sys.argv[1]), True); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)

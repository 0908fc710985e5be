import subprocess
import sys

from igcd.cli.report import report


def test_writes_the_page_into_the_folder_and_says_so(make_run, capsys):
    folder = make_run()
    report(folder)
    assert (folder / "report.html").stat().st_size > 10_000
    assert capsys.readouterr().out == f"report in {folder / 'report.html'}\n"


def test_reads_records_only_and_never_loads_torch(make_run):
    code = "import sys; from pathlib import Path; from igcd.cli.report import report; report(Path(sys.argv[1]));"
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(make_run())], check=False).returncode == 0

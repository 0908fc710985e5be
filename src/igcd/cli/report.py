"""`igcd report`: the page of a finished run."""

from pathlib import Path

from igcd.report.page import write_report


def report(folder: Path) -> None:
    """Writes the report of a run and says where it is."""
    print(f"report in {write_report(folder)}")

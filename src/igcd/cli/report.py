"""`igcd report`: the page of a finished run, or of a workspace."""

from pathlib import Path

from igcd.workspace.catalog import holds_workspace


def report(folder: Path) -> None:
    """Writes the report of a run or of a workspace and says where it is."""
    if holds_workspace(folder):
        from igcd.workspace.report import write_workspace_report as write_report
    else:
        from igcd.report.page import write_report
    print(f"report in {write_report(folder)}")

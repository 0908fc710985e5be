"""The scores of a comparison as later work defines them, beside what it has published."""

from igcd.report.comparison_table import ComparisonTable
from igcd.report.comparison_text import NO_VALUE, spread_text

LATER_WORK_NOTE = (
    "Happy: the final stage, New are the categories of that stage alone; M_f by the lowest accuracy on stage 0's "
    "categories, M_d the mean of New over the stages. VB-CGCD: the same stage with names of clusters that the training "
    "images fixed, no matching at test time; M_f by the final stage. PromptCCD: Old are stage 0's categories, means "
    "over the stages."
)


def later_work_table(table: ComparisonTable) -> tuple[list[str], list[list[str]]] | None:
    """Heads and rows; published figures of the same setting stand last, under Happy's definition.

    None where there is nothing to show.
    """
    columns = table.later_work_columns
    if not columns:
        return None
    heads = ["method", *(f"{whose} {name}" for whose, name in columns)]
    rows = [
        [row.name, *(spread_text(row.later_work.get(whose, {}).get(name)) for whose, name in columns)]
        for row in table.rows
    ]
    for name, figures in table.later_work.get("rows", {}).items():
        cells = [f"{figures[score]:.1f}" if whose == "Happy" and score in figures else "" for whose, score in columns]
        rows.append([f"↳ published, {name}", *(cell or NO_VALUE for cell in cells)])
    return heads, rows


def later_work_note(table: ComparisonTable) -> str:
    """How to read the table."""
    setting = table.later_work.get("setting")
    return LATER_WORK_NOTE + (f" Published figures: {setting}." if setting else "")

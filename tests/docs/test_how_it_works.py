"""The pictures of docs/how_it_works.md can be drawn, and the page shows all of them."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from sklearn.datasets import load_digits
from tools.draw_how_it_works import draw, make_example

PAGE = Path(__file__).parents[2] / "docs" / "how_it_works.md"


def test_there_is_a_picture_for_every_step(tmp_path):
    files = draw(make_example(*load_digits(return_X_y=True)), tmp_path)
    assert [file.name for file in files] == re.findall(r"images/(step-[\w-]+\.svg)", PAGE.read_text(encoding="utf-8"))
    for file in files:
        marks = list(ET.parse(file).getroot())
        assert len(marks) > 5, file.name
        numbers = re.findall(r'c[xy]="([-\d.]+)"', file.read_text(encoding="utf-8"))
        assert all(-1 <= float(number) <= 641 for number in numbers)

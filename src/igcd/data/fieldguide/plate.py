"""Pages to look at: a plate of species with their names, and a sheet of sightings."""

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from igcd.data.fieldguide.brush import Brush
from igcd.data.fieldguide.dice import Dice
from igcd.data.fieldguide.guide import FieldGuide
from igcd.data.fieldguide.sightings import Sighting
from igcd.data.fieldguide.taxonomy import Species

PAPER = (247, 241, 226)
INK = (62, 50, 42)
FADED_INK = (132, 114, 96)
_SMOOTHING = 3
_SLANT = 0.2  # of the letters in Latin names


def portrait(species: Species, size: int) -> Image.Image:
    """A species on paper, without landscape, RGB, `size` square."""
    fine = size * _SMOOTHING
    canvas = Image.new("RGB", (fine, fine), PAPER)
    brush = Brush(canvas, center=(0.5, 0.5), scale=species.plan.size * 1.05)
    species.plan.draw(brush, species.traits, Dice(species.name))
    return canvas.reduce(_SMOOTHING)


def species_plate(title: str, species: Sequence[Species], *, columns: int = 5, cell: int = 190) -> Image.Image:
    """A page of a field guide: each species with its Latin and its common name."""
    rows = -(-len(species) // columns)
    caption, heading, margin = 44, 64, 18
    page = Image.new("RGB", (columns * cell + 2 * margin, heading + rows * (cell + caption) + 2 * margin), PAPER)
    pen = ImageDraw.Draw(page)
    center = page.width / 2
    pen.text((center, margin + 16), title, INK, ImageFont.load_default(26), anchor="mm")
    pen.line((center - 110, margin + 40, center + 110, margin + 40), FADED_INK)
    for i, one in enumerate(species):
        x, y = margin + i % columns * cell, margin + heading + i // columns * (cell + caption)
        page.paste(portrait(one, cell), (x, y))
        _slanted(page, (x + cell // 2, y + cell + 4), one.name, 14)
        pen.text((x + cell / 2, y + cell + 22), one.common_name, FADED_INK, ImageFont.load_default(11), anchor="mm")
    pen.rectangle((6, 6, page.width - 7, page.height - 7), outline=FADED_INK)
    return page


def _slanted(page: Image.Image, center: tuple[int, int], text: str, size: int) -> None:
    """Text in italics, which the font that comes with Pillow lacks: upright letters, sheared."""
    font = ImageFont.load_default(4 * size)
    left, top, right, bottom = (round(edge) for edge in font.getbbox(text))
    lean = round(_SLANT * (bottom - top + 8))
    letters = Image.new("L", (right - left + 2 * lean + 8, 6 * size))
    ImageDraw.Draw(letters).text((lean + 4, size // 2), text, 255, font)
    shear = (1, _SLANT, -_SLANT * letters.height / 2, 0, 1, 0)
    letters = letters.transform(letters.size, Image.Transform.AFFINE, shear, Image.Resampling.BILINEAR).reduce(4)
    page.paste(INK, (center[0] - letters.width // 2, center[1] - letters.height // 2), letters)


def sightings_sheet(guide: FieldGuide, sightings: Sequence[Sighting], *, columns: int = 10) -> Image.Image:
    """Pictures of sightings side by side."""
    rows = -(-len(sightings) // columns)
    sheet = Image.new("RGB", (columns * guide.size, rows * guide.size), PAPER)
    for i, one in enumerate(sightings):
        sheet.paste(Image.fromarray(guide.draw(one)), (i % columns * guide.size, i // columns * guide.size))
    return sheet

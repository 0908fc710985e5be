"""A small file of the real iNat2021 layout, with every special case, for several tests."""

from typing import Any

SPECIES = (
    ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Nymphalidae", "Danaus", "plexippus", "Monarch"),
    ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Nymphalidae", "Danaus", "gilippus", "Queen"),
    ("Animalia", "Arthropoda", "Insecta", "Lepidoptera", "Nymphalidae", "Vanessa", "atalanta", "Red Admiral"),
    ("Animalia", "Chordata", "Aves", "Passeriformes", "Corvidae", "Corvus", "corax", "Common Raven"),
    ("Plantae", "Tracheophyta", "Magnoliopsida", "Rosales", "Rosaceae", "Filipendula", "ulmaria", "Meadowsweet"),
    ("Animalia", "Chordata", "Mammalia", "Carnivora", "Felidae", "Panthera", "leo", "Lion"),
)
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")

PARIS, BOSTON, SYDNEY, TOKYO, NAIROBI, LIMA = (
    (48.86, 2.35),
    (42.36, -71.06),
    (-33.87, 151.21),
    (35.68, 139.69),
    (-1.29, 36.82),
    (-12.05, -77.04),
)

# category, date, place
TRAIN = [
    (0, "2012-07-14 09:30:00+00:00", BOSTON),
    (0, "2016-12-31 23:59:59-08:00", BOSTON),  # 2017 in Greenwich, 2016 where it was seen
    (2, "2008-01-01", PARIS),
    (4, "2014-06-02T10:00:00Z", PARIS),
    (0, "2017-03-03 08:00:00+00:00", SYDNEY),
    (1, "2017-03-04 08:00:00+00:00", SYDNEY),
    (0, "2018-05-05 08:00:00", TOKYO),
    (3, "2018-05-06 08:00:00+09:00", TOKYO),
    (3, "2018-05-07 08:00:00+09:00", TOKYO),
    (5, "2019-08-08 06:00:00+00:00", NAIROBI),
    (2, "2019-08-09 06:00:00+00:00", LIMA),
    (4, "2015-05-05", (43.63, 7.32)),  # 8 km off the coast
    # and those that have no place in a stage
    (0, None, BOSTON),
    (0, "2015-02-30 10:00:00+00:00", BOSTON),
    (1, "yesterday", BOSTON),
    (2, "2015-05-05", (None, None)),
    (2, "2015-05-05", (48.86, None)),
    (2, "2015-05-05", (95.0, 2.35)),
    (2, "2015-05-05", (0, 0)),
    (3, "2015-05-05", (30.0, -40.0)),
    (3, "2020-05-05", PARIS),
    (3, "2007-12-31", PARIS),
    (3, "2017-05-05", PARIS),  # the year of Oceania
    (5, "2019-05-05", (-77.84, 166.69)),  # Antarctica
    (0, None, (95.0, 200.0)),  # two faults count once
]
VAL = [
    (0, "2013-07-14 09:30:00+00:00", BOSTON),
    (2, "2010-07-14 09:30:00+00:00", PARIS),
    (1, "2017-07-14 09:30:00+00:00", SYDNEY),
    (5, "2018-07-14 09:30:00+00:00", TOKYO),  # arrives at stage 2, its category is met at stage 3
    (5, "2019-07-14 09:30:00+00:00", NAIROBI),
    (2, "2019-07-14 09:30:00+00:00", LIMA),
    (3, None, LIMA),
]


def annotations(rows: list[Any], split: str, first_id: int = 0) -> dict[str, Any]:
    """The rows as iNat2021 lays them out."""
    folders = [f"{code:05d}_{'_'.join(species[:7])}" for code, species in enumerate(SPECIES)]
    return {
        "info": {"description": "made for a test", "year": 2021},
        "images": [
            {
                "id": first_id + i,
                "width": 500,
                "height": 375,
                "file_name": f"{split}/{folders[category]}/{i:04d}.jpg",
                "license": 0,
                "rights_holder": 'Zoë "Z" O\'Hara \\ {x}',
                "date": date,
                "latitude": latitude,
                "longitude": longitude,
                "location_uncertainty": None if i % 2 else 77,
            }
            for i, (category, date, (latitude, longitude)) in enumerate(rows)
        ],
        "categories": [
            {
                "id": code,
                "name": f"{species[5]} {species[6]}",
                "common_name": species[7],
                "supercategory": "Insects",
                **dict(zip(RANKS, species, strict=False)),
                "specific_epithet": species[6],
                "image_dir_name": folders[code],
            }
            for code, species in enumerate(SPECIES)
        ],
        "annotations": [
            {"id": i, "image_id": first_id + i, "category_id": category} for i, (category, *_) in enumerate(rows)
        ],
        "licenses": [{"id": 0, "name": "", "url": ""}],
    }

"""The built-in data: an invented flora and fauna, drawn with code, with sightings in the layout of iNat2021."""

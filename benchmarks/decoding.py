"""Which decoder pays: JPEG files of iNat2021's size to squares at the training size, per core.

    pip install simplejpeg opencv-python-headless   # both optional, only for this comparison
    python benchmarks/decoding.py [--photos 200]

Photos are drawn (color fields with texture, JPEG quality 90, 4:2:0), so nothing has to be there.
Seconds are those of the processor, not of the clock, so that other programs on the machine hardly change them. Every
way ends with the same crop and bicubic resize (`igcd.data.images.fit`); "reduced" lets the decoder leave out
frequencies that a picture of twice the wanted size does not have.
"""

import argparse
import io
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from PIL import Image

from igcd.data.images import REDUCTION_MARGIN, decode_image, fit
from igcd.types import Pixels

WIDTH, HEIGHT = 500, 375
Decoder = Callable[[bytes, int], Pixels]


def drawn_jpeg(rng: np.random.Generator) -> bytes:
    coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), dtype=np.int16)
    texture = rng.integers(-12, 13, (HEIGHT, WIDTH, 1), dtype=np.int16)
    encoded = io.BytesIO()
    Image.fromarray(np.clip(smooth + texture, 0, 255).astype(np.uint8)).save(encoded, "JPEG", quality=90)
    return encoded.getvalue()


def pillow(encoded: bytes, _size: int) -> Pixels:
    return decode_image(encoded)


def pillow_reduced(encoded: bytes, size: int) -> Pixels:
    return decode_image(encoded, at_least=REDUCTION_MARGIN * size)


def simplejpeg_full(encoded: bytes, _size: int) -> Pixels:
    import simplejpeg

    return simplejpeg.decode_jpeg(encoded)


def simplejpeg_reduced(encoded: bytes, size: int) -> Pixels:
    import simplejpeg

    side = REDUCTION_MARGIN * size
    return simplejpeg.decode_jpeg(encoded, min_height=side, min_width=side, min_factor=1)


def opencv(encoded: bytes, _size: int) -> Pixels:
    import cv2

    return cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR_RGB)


def opencv_reduced(encoded: bytes, size: int) -> Pixels:
    import cv2

    flags = (cv2.IMREAD_COLOR, cv2.IMREAD_REDUCED_COLOR_2, cv2.IMREAD_REDUCED_COLOR_4, cv2.IMREAD_REDUCED_COLOR_8)
    halvings = max(i for i in range(len(flags)) if i == 0 or min(WIDTH, HEIGHT) >> i >= REDUCTION_MARGIN * size)
    return cv2.imdecode(np.frombuffer(encoded, np.uint8), flags[halvings])[..., ::-1].copy()


DECODERS: dict[str, tuple[str, Decoder]] = {
    "Pillow": ("PIL", pillow),
    "Pillow reduced": ("PIL", pillow_reduced),
    "simplejpeg": ("simplejpeg", simplejpeg_full),
    "simplejpeg reduced": ("simplejpeg", simplejpeg_reduced),
    "OpenCV": ("cv2", opencv),
    "OpenCV reduced": ("cv2", opencv_reduced),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=200)
    rng = np.random.default_rng(0)
    photos = [drawn_jpeg(rng) for _ in range(parser.parse_args().photos)]
    if find_spec("cv2"):
        import cv2

        cv2.setNumThreads(1)
    print(
        f"JPEG {WIDTH}×{HEIGHT}, {np.mean([len(photo) for photo in photos]) / 1e3:.0f} kB; images per second and core"
    )
    for size in (96, 128, 224):
        for name, (package, decode) in DECODERS.items():
            if not find_spec(package):
                print(f"  {size} px  {name:20} not installed")
                continue
            fit(decode(photos[0], size), size)
            start = time.process_time()
            for photo in photos:
                decode(photo, size)
            decoded = time.process_time()
            for photo in photos:
                fit(decode(photo, size), size)
            both = time.process_time() - decoded
            rates = len(photos) / (decoded - start), len(photos) / both
            print(f"  {size} px  {name:20} decoded {rates[0]:6.0f}   decoded and resized {rates[1]:6.0f}")


if __name__ == "__main__":
    main()

"""Makes a picture as small as a model needs it, upright and bare of metadata; keeps nothing."""

import io

from PIL import Image, ImageOps

from core.errors import PermanentError

FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "AVIF")
"""Others start programs; the last two are not in every build of Pillow."""
MOST_PIXELS = 89_000_000
"""What a file may claim to hold; Pillow warns of «decompression bombs» above that."""
MOST_DECODED = 40_000_000
"""Pixels in memory, four bytes each."""
QUALITIES = (85, 70, 55, 40)
SMALLEST = 64
STEP = 0.7


def shrink(data: bytes, side: int, most_bytes: int) -> bytes:
    """A JPEG, the first frame of what moves, on white where it was transparent. It blocks.

    Raises PermanentError with a sentence for the user.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            _refuse_if_above(MOST_PIXELS, image)
            image.draft("RGB", (side, side))
            _refuse_if_above(MOST_DECODED, image)
            small = _in_colour(image)
            small.thumbnail((side, side), Image.Resampling.LANCZOS)
            upright = ImageOps.exif_transpose(small)
            return _fitted(_bare(upright), most_bytes)
    except PermanentError:
        raise
    except Exception as error:  # decoders raise what they like
        raise PermanentError("It cannot be opened as a picture.") from error


def _refuse_if_above(pixels: int, image: Image.Image) -> None:
    if image.width * image.height > pixels:
        raise PermanentError(f"Its {image.width} × {image.height} pixels are too many.")


def _in_colour(image: Image.Image) -> Image.Image:
    """Without a second copy in memory where it can be helped."""
    wanted = "RGBA" if image.has_transparency_data else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _bare(image: Image.Image) -> Image.Image:
    """On white, and without all that is no picture."""
    flat = Image.new("RGBA", image.size, "white")
    flat.alpha_composite(image.convert("RGBA"))
    return flat.convert("RGB")


def _fitted(image: Image.Image, most_bytes: int) -> bytes:
    while True:
        for quality in QUALITIES:
            found = _encoded(image, quality)
            if len(found) <= most_bytes:
                return found
        width, height = (round(length * STEP) for length in image.size)
        if max(width, height) < SMALLEST:
            raise PermanentError("It cannot be made small enough.")
        image.thumbnail((max(width, 1), max(height, 1)), Image.Resampling.LANCZOS)


def _encoded(image: Image.Image, quality: int) -> bytes:
    target = io.BytesIO()
    image.save(target, "JPEG", quality=quality)
    return target.getvalue()

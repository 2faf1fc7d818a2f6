"""What is left of a picture when a model gets it."""

import io

import pytest
from PIL import Image

from core.errors import PermanentError
from core.files.pictures import shrink
from tests.core.files.made import noise, picture, seen

ROOM = 1 << 20


def test_a_large_picture_is_made_smaller_and_keeps_its_shape() -> None:
    small = seen(shrink(picture((3000, 1500)), 1568, ROOM))

    assert (small.format, small.size) == ("JPEG", (1568, 784))


def test_a_small_one_keeps_its_size() -> None:
    assert seen(shrink(picture((64, 48)), 1568, ROOM)).size == (64, 48)


def test_it_is_turned_upright_and_says_nothing_of_where_it_was_taken() -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "at home"
    taken = picture((400, 200), exif=exif, comment=b"hidden")
    assert b"at home" in taken
    assert b"hidden" in taken

    shown = shrink(taken, 100, ROOM)

    assert seen(shown).size == (50, 100)
    assert b"at home" not in shown
    assert b"hidden" not in shown
    assert dict(seen(shown).getexif()) == {}


@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF"])
def test_other_kinds_become_one_that_every_vendor_takes(kind: str) -> None:
    assert seen(shrink(picture(kind=kind), 1568, ROOM)).format == "JPEG"


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "I;16", "CMYK"])
def test_colours_of_any_kind_do(mode: str) -> None:
    kind = "TIFF" if mode in ("CMYK", "I;16") else "PNG"
    assert seen(shrink(picture(kind=kind, mode=mode, colour=0), 32, ROOM)).mode == "RGB"


def test_what_is_transparent_is_white() -> None:
    clear = picture(kind="PNG", mode="RGBA", colour=(0, 0, 0, 0))

    assert seen(shrink(clear, 100, ROOM)).getpixel((10, 10)) == (255, 255, 255)


def test_of_what_moves_the_first_frame_is_shown() -> None:
    target = io.BytesIO()
    red, blue = (Image.new("RGB", (64, 64), colour) for colour in ("red", "blue"))
    red.save(target, "GIF", save_all=True, append_images=[blue])

    shown = seen(shrink(target.getvalue(), 100, ROOM)).getpixel((10, 10))
    assert isinstance(shown, tuple)
    assert shown[0] > 200
    assert shown[2] < 50


def test_it_fits_into_its_bytes_whatever_is_on_it() -> None:
    assert len(shrink(noise((800, 800)), 1568, 20_000)) <= 20_000


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff", b"GIF89a", b"%!PS-Adobe-3.0 EPSF-3.0\n"])
def test_what_is_no_picture_is_told(data: bytes) -> None:
    with pytest.raises(PermanentError, match="cannot be opened as a picture"):
        shrink(data, 1568, ROOM)


def test_one_that_swells_up_is_not_opened() -> None:
    with pytest.raises(PermanentError, match=r"are too many|cannot be opened"):
        shrink(picture((8_000, 8_000), "PNG", mode="1", colour=0), 1568, ROOM)

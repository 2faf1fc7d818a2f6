"""Files as people send them, made on the spot; nothing is read from a disk."""

import io
from typing import Any

from PIL import Image


def picture(
    size: tuple[int, int] = (64, 48), kind: str = "JPEG", colour: Any = "red", **options: Any
) -> bytes:
    mode = options.pop("mode", "RGB")
    target = io.BytesIO()
    Image.new(mode, size, colour).save(target, kind, **options)
    return target.getvalue()


def noise(size: tuple[int, int]) -> bytes:
    """As hard to compress as a picture can be."""
    target = io.BytesIO()
    Image.effect_noise(size, 120).convert("RGB").save(target, "PNG")
    return target.getvalue()


def seen(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def pdf(*pages: str) -> bytes:
    """One line of Latin text a page."""
    many = len(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(many))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {many} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream")
    body, places = "%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    tail = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (body + head + tail).encode("latin-1")

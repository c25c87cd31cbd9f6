"""PDFs for tests, written by hand: Helvetica text, lines, filled boxes and annotations at given places.

Fonts besides "Regular" and "Bold": "Mono"; "Hebrew", whose letters a to z are said to be those of Hebrew; and "Wrong",
which says of each letter that it is the third after it; and "Lost", which says of w that it is the character 0, as maps
of some programs do of ligatures.
"""

from __future__ import annotations

from ocr.exporters._pdf import PdfFile

WIDTH, HEIGHT = 400, 300  # points


class PdfPage:
    """The content of one page; places are in points from the upper left corner."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.annotations: list[str] = []
        self.appearances: dict[int, tuple[str, float, float]] = {}

    def raw(self, command: str) -> PdfPage:
        """Operators as they stand, y upwards."""
        self.commands.append(command)
        return self

    def annotate(self, x0: float, y0: float, x1: float, y1: float, body: str, drawn: str = "") -> PdfPage:
        """An annotation: what is in its dictionary besides its box, and the operators that draw it, from its lower left
        corner upwards.
        """
        if drawn:
            self.appearances[len(self.annotations)] = drawn, x1 - x0, y1 - y0
        self.annotations.append(f"/Type /Annot /Rect [{x0} {HEIGHT - y1} {x1} {HEIGHT - y0}] /F 4 {body}")
        return self

    def text(self, x: float, y: float, said: str, size: float = 10, font: str = "Regular") -> PdfPage:
        """`y` is that of the baseline."""
        said = said.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        self.commands.append(f"BT /{font} {size} Tf 1 0 0 1 {x} {HEIGHT - y} Tm ({said}) Tj ET")
        return self

    def line(self, x0: float, y0: float, x1: float, y1: float) -> PdfPage:
        self.commands.append(f"0.5 w {x0} {HEIGHT - y0} m {x1} {HEIGHT - y1} l S")
        return self

    def fill(self, x0: float, y0: float, x1: float, y1: float, grey: float = 0.8) -> PdfPage:
        self.commands.append(f"q {grey} g {x0} {HEIGHT - y1} {x1 - x0} {y1 - y0} re f Q")
        return self


def make_pdf(*pages: PdfPage, rotate: int = 0, form: str = "") -> bytes:
    """The document. It has two layers, /On and /Off, of which one is switched off.

    Args:
        form: What the form /Form draws, which is in the layer that is switched off.
    """
    pdf = PdfFile()
    tree = pdf.reserve()
    fonts = " ".join(
        f"/{name} {pdf.add(f'<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>')} 0 R"
        for name, base in (("Regular", "Helvetica"), ("Bold", "Helvetica-Bold"), ("Mono", "Courier"))
    )
    for name, base, first in (
        ("Hebrew", "Courier", 0x5D0),
        ("Wrong", "Helvetica", 0x64),
        ("Lost", "Helvetica", 0x61),
    ):
        pairs = "".join(f"<{0x61 + n:02x}> <{first + n:04x}>\n" for n in range(23))
        if name == "Lost":
            pairs = pairs.replace("<0077>", "<0000>")
        unicode = pdf.add_stream(
            "", f"1 begincodespacerange <00> <ff> endcodespacerange 23 beginbfchar {pairs} endbfchar".encode()
        )
        body = f"<< /Type /Font /Subtype /Type1 /BaseFont /{base} /ToUnicode {unicode} 0 R >>"
        fonts += f" /{name} {pdf.add(body)} 0 R"
    pixels = pdf.add_stream(
        "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8",
        b"\xc0",
    )
    layers = {name: pdf.add(f"<< /Type /OCG /Name ({name}) >>") for name in ("On", "Off")}
    properties = " ".join(f"/{name} {number} 0 R" for name, number in layers.items())
    objects = f"/Image {pixels} 0 R"
    if form:
        body = f"/Type /XObject /Subtype /Form /BBox [0 0 {WIDTH} {HEIGHT}] /OC {layers['Off']} 0 R"
        objects += (
            f" /Form {pdf.add_stream(f'{body} /Resources << /Font << {fonts} >> >>', form.encode())} 0 R"
        )
    kids: list[int] = []
    widgets: list[int] = []
    for page in pages:
        bodies = list(page.annotations)
        for number, (drawn, width, height) in page.appearances.items():
            form_of = f"/Type /XObject /Subtype /Form /BBox [0 0 {width} {height}]"
            stream = pdf.add_stream(
                f"{form_of} /Resources << /Font << {fonts} >> >>", drawn.encode("latin-1")
            )
            bodies[number] += f" /AP << /N {stream} 0 R >>"
        annotations = [pdf.add(f"<< {body} >>") for body in bodies]
        widgets += [n for n, body in zip(annotations, page.annotations, strict=True) if "/Widget" in body]
        content = pdf.add_stream("", "\n".join(page.commands).encode("latin-1"))
        kids.append(
            pdf.add(
                f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Rotate {rotate} "
                f"/Contents {content} 0 R /Resources << /Font << {fonts} >> /XObject << {objects} >> "
                f"/Properties << {properties} >> /ExtGState << /Clear << /ca 0 >> >> >> "
                f"/Annots [{' '.join(f'{n} 0 R' for n in annotations)}] >>"
            )
        )
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    pdf.add(f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>", to=tree)
    fields = f"/AcroForm << /Fields [{' '.join(f'{n} 0 R' for n in widgets)}] >>" if widgets else ""
    both = " ".join(f"{number} 0 R" for number in layers.values())
    shown = f"/OCProperties << /OCGs [{both}] /D << /ON [{layers['On']} 0 R] /OFF [{layers['Off']} 0 R] >> >>"
    root = pdf.add(f"<< /Type /Catalog /Pages {tree} 0 R {fields} {shown} >>")
    return pdf.to_bytes(root, pdf.add("<< /Producer (Oar) >>"))

"""PDFs for tests, written by hand: Helvetica text, lines and filled boxes at given places."""

from __future__ import annotations

from ocr.exporters._pdf import PdfFile

WIDTH, HEIGHT = 400, 300  # points


class PdfPage:
    """The content of one page; places are in points from the upper left corner."""

    def __init__(self) -> None:
        self.commands: list[str] = []

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


def make_pdf(*pages: PdfPage, rotate: int = 0) -> bytes:
    pdf = PdfFile()
    tree = pdf.reserve()
    fonts = " ".join(
        f"/{name} {pdf.add(f'<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>')} 0 R"
        for name, base in (("Regular", "Helvetica"), ("Bold", "Helvetica-Bold"))
    )
    kids = []
    for page in pages:
        content = pdf.add_stream("", "\n".join(page.commands).encode("latin-1"))
        kids.append(
            pdf.add(
                f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Rotate {rotate} "
                f"/Contents {content} 0 R /Resources << /Font << {fonts} >> >> >>"
            )
        )
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    pdf.add(f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>", to=tree)
    root = pdf.add(f"<< /Type /Catalog /Pages {tree} 0 R >>")
    return pdf.to_bytes(root, pdf.add("<< /Producer (Oar) >>"))

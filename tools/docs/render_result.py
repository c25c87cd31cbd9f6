"""Draw what OCR reads on the receipt of the documents: the image with its lines, and their text beside it.

    python -m tools.docs.render_result          writes docs/images/receipt_result.jpg, which README.md shows

It needs the extra `ocr` for the weights.
"""

from __future__ import annotations

from PIL import Image

from ocr import predictor
from tools.docs.render_receipt import OUT as RECEIPT

OUT = RECEIPT.with_name("receipt_result.jpg")
WIDTH = 900  # pixels: two columns of a README


def main() -> None:
    drawn = Image.fromarray(predictor("pp_ocrv6_small")(RECEIPT).pages[0].draw())
    drawn.resize((WIDTH, round(drawn.height * WIDTH / drawn.width)), Image.Resampling.LANCZOS).save(
        OUT, quality=72
    )
    print(f"wrote {OUT}: {OUT.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()

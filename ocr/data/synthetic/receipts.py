"""Texts as they stand on receipts and forms: dates, prices, quantities, numbers in groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

_Choice = TypeVar("_Choice")
_ITEMS = (
    *(
        "BREAD",
        "MILK 1L",
        "Coffee",
        "ORANGE JUICE",
        "Eggs 10 pcs",
        "BUTTER 250 g",
        "Apples",
        "TOMATOES",
        "RICE 2 KG",
    ),
    *(
        "Pasta",
        "WATER 6 x 1,5 L",
        "CHEESE",
        "Tea",
        "SALT",
        "SUGAR 1 kg",
        "Paper towels",
        "SOAP",
        "BATTERIES AA",
    ),
    *("Lunch menu", "PARKING 2 h", "TICKET", "Copies A4", "DELIVERY", "Service"),
)
_LABELS = (
    *("TOTAL", "Subtotal", "TAX", "VAT", "CASH", "CHANGE", "Amount due", "CARD", "Rounding", "DISCOUNT"),
    *("Sub Total", "TOTAL AMOUNT", "Total Sales", "GST 6%", "Service Charge", "ROUNDING ADJ", "Tendered"),
    *("Net Amt", "QTY", "AMOUNT", "Price", "TOTAL (INCL. TAX)", "Excl. GST", "Balance", "Item(s)", "VISA"),
)
_HEADS = (
    *("Invoice", "Receipt", "Order", "Customer", "Table", "Cashier", "Ref.", "No.", "ID", "Tel", "TEL :"),
    *("Fax:", "Date", "Time:", "Bill No:", "INVOICE NO.", "GST ID :", "Reg No.", "Terminal", "Member", "Pax"),
)
_WORDS = (
    *("THANK YOU", "Please come again", "TAX INVOICE", "GOODS SOLD ARE NOT RETURNABLE", "Description", "Qty"),
    *(
        "U/Price",
        "CUSTOMER COPY",
        "APPROVED",
        "SUMMARY",
        "Exchange within 7 days",
        "*** COPY ***",
        "OPEN 24 HOURS",
    ),
)
_KINDS = (
    "SHOP",
    "STORES",
    "SDN BHD",
    "Ltd.",
    "& CO.",
    "GmbH",
    "TRADING",
    "RESTAURANT",
    "CAFE",
    "MART",
    "S.A.",
    "INC",
)
_STREETS = ("Street", "ROAD", "JALAN", "Ave.", "LANE", "Square", "TAMAN", "Drive", "Plaza", "BLOCK")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CURRENCIES = ("$", "EUR", "€", "£", "USD", "CHF", "¥", "RM")


def draw_price(rng: np.random.Generator) -> str:
    """An amount: 12.50, 1,204.00, 1 204,00, with or without a currency."""
    value = float(np.exp(rng.uniform(0, 8)))
    whole, cents = int(value), int(rng.integers(100))
    group, point = ((",", "."), (" ", ","), ("", "."), (".", ","))[int(rng.integers(4))]
    digits = f"{whole:,}".replace(",", group) if group else str(whole)
    amount = f"{digits}{point}{cents:02d}"
    kind = int(rng.integers(4))
    if kind < 2:
        return amount
    currency = _pick(_CURRENCIES, rng)
    return f"{currency}{amount}" if kind == 2 and len(currency) == 1 else f"{amount} {currency}"


def draw_item(rng: np.random.Generator) -> str:
    """What was bought, some with a quantity in front."""
    item = _pick(_ITEMS, rng)
    return f"{int(rng.integers(1, 20))} x {item}" if rng.random() < 0.3 else item


def draw_total(rng: np.random.Generator) -> str:
    """The label of a sum."""
    return _pick(_LABELS, rng) + (":" if rng.random() < 0.4 else "")


def draw_date(rng: np.random.Generator) -> str:
    """A day in one of six spellings, some with the time."""
    year, month, day = int(rng.integers(1990, 2040)), int(rng.integers(1, 13)), int(rng.integers(1, 29))
    texts = (
        f"{year}-{month:02d}-{day:02d}",
        f"{day:02d}.{month:02d}.{year}",
        f"{day:02d}/{month:02d}/{year}",
        f"{month:02d}/{day:02d}/{year % 100:02d}",
        f"{day} {_MONTHS[month - 1]} {year}",
        f"{year}/{month}/{day}",
    )
    date = _pick(texts, rng)
    if rng.random() < 0.3:
        date += f" {int(rng.integers(24)):02d}:{int(rng.integers(60)):02d}"
    return date


def draw_number(rng: np.random.Generator) -> str:
    """Digits in groups: a phone number, an account, a percentage, a number of a document."""
    kind = int(rng.integers(5))
    if kind == 0:
        return f"{_pick(_HEADS, rng)} {_digits(rng, 3, 9)}"
    if kind == 1:
        return f"+{int(rng.integers(1, 99))} {_digits(rng, 2, 4)} {_digits(rng, 3, 4)} {_digits(rng, 2, 5)}"
    if kind == 2:
        groups = " ".join(_digits(rng, 4, 5) for _ in range(int(rng.integers(2, 6))))
        return f"{_letters(rng, 2)}{_digits(rng, 2, 3)} {groups}"
    if kind == 3:
        return f"{rng.uniform(0, 100):.{int(rng.integers(3))}f}%"
    return f"{_letters(rng, int(rng.integers(1, 4)))}-{_digits(rng, 3, 8)}"


def draw_quantity(rng: np.random.Generator) -> str:
    """How much of what at which price: 2 x 3.50, 1 PCS, 0.525kg @ 7.90."""
    count, cents = int(rng.integers(1, 30)), float(rng.uniform(0.1, 200))
    texts = (
        f"{count} x {cents:.2f}",
        f"{count} {_pick(('PCS', 'pc', 'UNIT', 'kg', 'EA', 'BTL'), rng)}",
        f"{cents / 100:.3f}kg @ {cents:.2f}",
        f"{count} X {cents:.2f} = {count * cents:.2f}",
        f"{cents:.2f} {_pick(('S', 'SR', 'Z', 'A', 'T', '*', '-'), rng)}",
        f"[{count}] {cents:.2f}",
    )
    return _pick(texts, rng)


def draw_notice(rng: np.random.Generator) -> str:
    """A phrase, a row of signs, a code, a name of a shop, an address, or a label with its value."""
    kind = int(rng.integers(7))
    if kind == 0:
        return _pick(_WORDS, rng)
    if kind == 1:
        return _pick(("-", "=", "*", ".", "_"), rng) * int(rng.integers(3, 20))
    if kind == 2:
        return f"{_pick(('#', '*', '(', ''), rng)}{_digits(rng, 5, 14)}{_pick((')', '', '', '#'), rng)}"
    if kind == 3:
        return f"{_letters(rng, int(rng.integers(3, 9)))} {_pick(_KINDS, rng)}"
    if kind == 4:
        place = f"{_pick(('No.', 'LOT', '', 'Unit'), rng)} {_digits(rng, 1, 4)}"
        return f"{place}, {_pick(_STREETS, rng)} {_digits(rng, 1, 6)}"
    if kind == 5:
        return f"({_digits(rng, 5, 8)}-{_letters(rng, 1)})"
    label = _pick(_HEADS, rng).rstrip(":")
    return f"{label}{_pick((':', ' : ', ' :', ': '), rng)}{_pick((draw_date, draw_number, draw_price), rng)(rng)}"


def draw_receipt_text(rng: np.random.Generator) -> str:
    """One of all of these, or an item or a label with its price."""
    kinds: tuple[Callable[[np.random.Generator], str], ...] = (
        draw_price,
        draw_date,
        draw_number,
        draw_item,
        lambda r: f"{draw_item(r)} {draw_price(r)}",
        lambda r: f"{draw_total(r)} {draw_price(r)}",
        draw_quantity,
        draw_notice,
    )
    return kinds[int(rng.integers(len(kinds)))](rng)


def _pick(choices: tuple[_Choice, ...], rng: np.random.Generator) -> _Choice:
    return choices[int(rng.integers(len(choices)))]


def _digits(rng: np.random.Generator, least: int, most: int) -> str:
    """From `least` digits to fewer than `most`."""
    return "".join(map(str, rng.integers(0, 10, int(rng.integers(least, most))).tolist()))


def _letters(rng: np.random.Generator, count: int) -> str:
    return "".join(chr(65 + number) for number in rng.integers(0, 26, count).tolist())

"""Texts as they stand on receipts and forms: dates, prices, quantities, numbers in groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
_LABELS = ("TOTAL", "Subtotal", "TAX", "VAT", "CASH", "CHANGE", "Amount due", "CARD", "Rounding", "DISCOUNT")
_HEADS = ("Invoice", "Receipt", "Order", "Customer", "Table", "Cashier", "Ref.", "No.", "ID")
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


def draw_receipt_text(rng: np.random.Generator) -> str:
    """One of all of these, or an item or a label with its price."""
    kinds: tuple[Callable[[np.random.Generator], str], ...] = (
        draw_price,
        draw_date,
        draw_number,
        draw_item,
        lambda r: f"{draw_item(r)} {draw_price(r)}",
        lambda r: f"{draw_total(r)} {draw_price(r)}",
    )
    return kinds[int(rng.integers(len(kinds)))](rng)


def _pick(choices: tuple[str, ...], rng: np.random.Generator) -> str:
    return choices[int(rng.integers(len(choices)))]


def _digits(rng: np.random.Generator, least: int, most: int) -> str:
    """From `least` digits to fewer than `most`."""
    return "".join(map(str, rng.integers(0, 10, int(rng.integers(least, most))).tolist()))


def _letters(rng: np.random.Generator, count: int) -> str:
    return "".join(chr(65 + number) for number in rng.integers(0, 26, count).tolist())

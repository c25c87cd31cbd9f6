from __future__ import annotations

import pytest

from framework.core.errors import InputError
from ocr.text.language_codes import _TABLE, GROUPS, LANGUAGES, language_code, language_codes


def test_no_spelling_means_two_languages():
    spelled = [word.replace("_", "-").lower() for word in _TABLE.split()]
    assert len(set(spelled)) == len(spelled)
    assert not set(spelled) & set(GROUPS)
    assert len(LANGUAGES) >= 150


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("de", "de"), ("deu", "de"), ("ger", "de"), ("german", "de"), ("German", "de"), ("de-AT", "de"),
        ("pt_BR", "pt"), ("es-419", "es"), ("ch", "zh"), ("zh-CN", "zh"), ("zh-Hans", "zh"),
        ("chinese_cht", "zh-Hant"), ("zh_TW", "zh-Hant"), ("zh-hant", "zh-Hant"), ("japan", "ja"), ("korean", "ko"),
        ("ka", "kn"), ("geo", "kat"), ("rs_latin", "sr-Latn"), ("rs_cyrillic", "sr"), ("nb", "no"), ("fil", "tl"),
        (" ru ", "ru"),
    ],
)  # fmt: skip
def test_a_language_is_known_by_many_spellings(lang: str, code: str):
    assert language_code(lang) == code


# The values of `lang` of PaddleOCR 3.x and, in the last line, of 2.x.
PADDLE = """
af az bs cs cy da de es et fr ga hr hu id is it ku la lt lv mi ms mt nl no oc pi pl pt ro rs_latin sk sl sq sv sw tl tr
uz vi french german fi eu gl lb rm ca qu ar fa ug ur ps sd bal ru be uk rs_cyrillic bg mn abq ady kbd ava dar inh che
lbe lez tab kk ky tg mk tt cv ba mhr mo udm kv os bua xal tyv sah kaa hi mr ne bh mai ang bho mah sck new gom sa bgc
ch en korean japan chinese_cht te ka ta th el
latin arabic cyrillic devanagari xi pu rs rsc
"""


@pytest.mark.parametrize("lang", PADDLE.split())
def test_every_spelling_of_paddleocr_is_known(lang: str):
    assert set(language_codes(lang)) <= set(LANGUAGES)


def test_several_languages():
    assert language_codes("ru, en,ru") == ("ru", "en") == language_codes(["russian", "eng"])
    assert language_codes("eslav,en") == ("be", "ru", "uk", "en")
    assert all(set(codes) <= set(LANGUAGES) for codes in GROUPS.values())
    with pytest.raises(InputError, match="no language is named"):
        language_codes([])


def test_an_unknown_language_names_the_nearest():
    with pytest.raises(
        InputError, match=r"lang: the language is not known\n  received: jaapan[\s\S]*did you mean 'japan'"
    ):
        language_code("jaapan")
    with pytest.raises(InputError, match="did you mean 'cyrillic'"):
        language_codes("cyrilic")
    for lang in ("12345678", "", "ru-Latn"):  # no table says which letters Russian in Latin has
        with pytest.raises(InputError, match="the language is not known"):
            language_codes(lang)

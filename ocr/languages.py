"""Letters that each language needs, and the official recognisers whose dictionaries have them all.

A recogniser can only write the symbols of its dictionary: PP-OCRv6 has no Cyrillic and no Vietnamese tone marks, and
no error upstream says so. `CharacterSet.check_language` asks this table.

Source: the main exemplar sets of Unicode CLDR 44, less letters of foreign words only. For scripts of thousands of
symbols (Chinese, Japanese kanji, Korean syllables) a sample of the most frequent ones stands for the whole.
"""

from __future__ import annotations

import string
from collections.abc import Iterable

from framework.core.errors import InputError, nearest

_LATIN = {  # besides a-z
    "af": "áâèéêëîïôöû", "az": "çəğıİöşü", "bs": "ćčđšž", "ca": "àçèéíïòóúü", "cs": "áčďéěíňóřšťúůýž",
    "cy": "àáâäèéêëìíîïòóôöùúûüŵŷ", "da": "æøå", "de": "äöüß", "en": "", "eo": "ĉĝĥĵŝŭ", "es": "áéíñóúü",
    "et": "äõöšüž", "eu": "çñ", "fi": "åäöšž", "fo": "áðíóúýæø", "fr": "àâæçèéêëîïôœùûüÿ", "ga": "áéíóú",
    "gd": "àèìòù", "gl": "áéíñóúü", "hr": "ćčđšž", "hu": "áéíóöőúüű", "id": "", "is": "áæðéíóöúýþ",
    "it": "àèéìòóù", "ku": "çêîşû", "la": "", "lb": "äéë", "lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž",
    "mi": "āēīōū", "ms": "", "mt": "àċèġħìòùż", "nl": "áäèéëíïóöúü", "no": "åæèéòóôø", "oc": "àáçèéíïòóúü",
    "pi": "āīūñḍḷṁṃṅṇṭ", "pl": "ąćęłńóśźż", "pt": "àáâãçéêíóôõú", "qu": "ñ", "rm": "àèéìòù", "ro": "âîășț",
    "sk": "áäčďéíĺľňóôŕšťúýž", "sl": "čšž", "sq": "çë", "sr-Latn": "ćčđšž", "sv": "åäéö", "sw": "", "tl": "ñ",
    "tr": "çğıİöşü", "uz": "",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
}  # fmt: skip

_RUSSIAN = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"
_CYRILLIC = {
    "ru": _RUSSIAN,
    "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
    "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "tg": "абвгғдеёжзиӣйкқлмнопрстуӯфхҳчҷшъэюя",
    "ba": _RUSSIAN + "әғҙҡңөҫүһ", "cv": _RUSSIAN + "ӑӗҫӳ", "kk": _RUSSIAN + "әғқңөұүһі", "kv": _RUSSIAN + "іӧ",
    "ky": _RUSSIAN + "ңөү", "mhr": _RUSSIAN + "ҥӧӱ", "mn": _RUSSIAN + "өү", "os": _RUSSIAN + "ӕ",
    "sah": _RUSSIAN + "ҕҥөүһ", "tt": _RUSSIAN + "әҗңөүһ", "udm": _RUSSIAN + "ӝӟӥӧӵ",
}  # fmt: skip

# Less the archaic ones.
_HIRAGANA = "".join(chr(c) for c in range(0x3041, 0x3094) if chr(c) not in "ぅゎゐゑ")
_KATAKANA = "".join(chr(ord(c) + 0x60) for c in _HIRAGANA if c != "を") + "ー"
_OTHER = {
    "ar": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي",
    "fa": "ءآأؤئابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی",
    "ug": "ئابپتجچخدرزژسشغفقكگڭلمنھوۇۆۈۋېىيە",
    "ur": "ءابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوہھیے",
    "el": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",
    "hi": "अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसह़ािीुूृेैोौ्ंँः",
    "mr": "अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहळािीुूृेैोौ्ंः",
    "ne": "अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृेैोौ्ंँः",
    "kn": "ಅಆಇಈಉಊಋಎಏಐಒಓಔಕಖಗಘಚಛಜಝಞಟಠಡಢಣತಥದಧನಪಫಬಭಮಯರಲವಶಷಸಹಳಾಿೀುೂೃೆೇೈೊೋೌ್ಂಃ",
    "ta": "அஆஇஈஉஊஎஏஐஒஓகஙசஞடணதநபமயரலவழளறனாிீுூெேைொோௌ்",
    "te": "అఆఇఈఉఊఋఎఏఐఒఓఔకఖగఘచఛజఝఞటఠడఢణతథదధనపఫబభమయరలవశషసహళాిీుూృెేైొోౌ్ంః",
    "th": "กขคฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลวศษสหฬอฮะัาำิีึืฺุูเแโใไ็่้๊๋์",
    "ja": _HIRAGANA + _KATAKANA + "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連",
    "ko": "가각간강개거것게경계고공과관구국그기나내년는니다단대도들라로를리마면명모무부사상서성소수시아어여연요은을의",
    "zh": "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里",
    "zh-Hant": "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡",
}

ALIASES = {  # the codes of PaddleOCR's `lang` option that are not BCP 47 (its `ka` is Kannada, not Georgian)
    "ch": "zh", "chinese": "zh", "chinese_cht": "zh-Hant", "french": "fr", "german": "de", "japan": "ja",
    "ka": "kn", "korean": "ko", "rs_cyrillic": "sr", "rs_latin": "sr-Latn",
}  # fmt: skip

LANGUAGES = (*_LATIN, *_CYRILLIC, *_OTHER)

# By the names of `framework.hub`: whose dictionary has every letter of `required_letters(code)`. The tiny v6
# dictionary ends
# its Latin at U+017F (no ə, ș, ț), and the v5 Cyrillic one lacks ҥ and ӕ (`mhr`, `os`, `sah`).
_V6_LATIN = frozenset(_LATIN) - {"pi", "vi"}
RECOGNISERS = {
    "pp_ocrv6_small_rec": _V6_LATIN | {"ja", "zh", "zh-Hant"},
    "pp_ocrv6_medium_rec": _V6_LATIN | {"ja", "zh", "zh-Hant"},
    "pp_ocrv6_tiny_rec": _V6_LATIN - {"az", "ro"} | {"zh"},
    "latin_pp_ocrv5_mobile_rec": _V6_LATIN,
    "eslav_pp_ocrv5_mobile_rec": frozenset({"be", "bg", "en", "ru", "uk"}),
    "cyrillic_pp_ocrv5_mobile_rec": frozenset(_CYRILLIC) - {"mhr", "os", "sah"} | {"en"},
    "arabic_pp_ocrv5_mobile_rec": frozenset({"ar", "en", "fa", "ug", "ur"}),
    "devanagari_pp_ocrv5_mobile_rec": frozenset({"en", "hi", "mr", "ne"}),
    "korean_pp_ocrv5_mobile_rec": frozenset({"en", "ko"}),
    "th_pp_ocrv5_mobile_rec": frozenset({"en", "th"}),
    "el_pp_ocrv5_mobile_rec": frozenset({"el", "en"}),
    "ta_pp_ocrv5_mobile_rec": frozenset({"en", "ta"}),
    "te_pp_ocrv5_mobile_rec": frozenset({"en", "te"}),
    "ka_pp_ocrv4_mobile_rec": frozenset({"en", "kn"}),
}


def language_code(lang: str) -> str:
    """BCP 47 code of `lang`, which may be one of PaddleOCR's own codes such as `ch` or `japan`.

    Raises: InputError for a code that is not in `LANGUAGES`.
    """
    code = ALIASES.get(lang, lang)
    if code not in LANGUAGES:
        near = nearest(lang, (*LANGUAGES, *ALIASES))
        raise InputError(
            "the language is not known",
            where="lang",
            received=lang,
            allowed=", ".join(sorted((*LANGUAGES, *ALIASES))),
            fix=f"did you mean {near!r}?" if near else "name the model instead of the language",
        )
    return code


def required_letters(lang: str) -> str:
    """The small letters that a text in `lang` needs, each a single code point (NFC)."""
    code = language_code(lang)
    if code in _LATIN:
        return string.ascii_lowercase + _LATIN[code]
    return _CYRILLIC.get(code) or _OTHER[code]


def missing_letters(lang: str, symbols: Iterable[str]) -> str:
    """The letters of `lang` that `symbols` cannot write.

    A letter counts as there when its capital is: the Greek v5 dictionary has Ό in the place of ό. So does one inside a
    longer symbol: the Thai v5 dictionary has "ωก" on one line.
    """
    held = set("".join(symbols))

    def writable(letter: str) -> bool:
        other = letter.swapcase()
        # The way back rules out I as the capital of the Turkish ı.
        return letter in held or (other.swapcase() == letter and other in held)

    return "".join(letter for letter in required_letters(lang) if not writable(letter))


def recognisers_for(lang: str) -> tuple[str, ...]:
    """Names of the official recognisers that have every letter of `lang`; empty when none has."""
    code = language_code(lang)
    return tuple(name for name, codes in RECOGNISERS.items() if code in codes)

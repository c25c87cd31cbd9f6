"""Letters that each language needs, and the recognisers of the index that have them all.

A recogniser can only write the symbols of its dictionary: PP-OCRv6 has no Cyrillic and no Vietnamese tone marks, and
no error upstream says so. `CharacterSet.check_language` asks these tables. Which languages a recogniser reads stands in
its row of the index (`languages`, `lacks`), written by tools/packaging/languages.py from the dictionaries.

Source: the main exemplar sets of Unicode CLDR 48, less combining marks of Latin and Arabic, the letters ʼ and ʻ that
texts write as an apostrophe, and archaic ones. The letters of languages without a set are those of their standard
orthographies. For scripts of hundreds of symbols (Chinese, Japanese kanji, Korean syllables, Ethiopic) a sample of the
most frequent ones stands for the whole.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from framework import hub
from framework.core.errors import InputError
from framework.core.languages import LANGUAGES as LANGUAGES
from framework.core.languages import language_code, language_codes

DEFAULT = "pp_ocrv6_small_rec"

LATIN = {  # besides a-z
    "af": "áâèéêëîïôöû", "ast": "áéíñóúüḥḷ", "az": "çəğıİöşü", "bm": "ŋɔɛɲ", "br": "êñù", "bs": "ćčđšž",
    "ca": "àçèéíïòóúü", "co": "àèìïòùü", "cs": "áčďéěíňóřšťúůýž", "cy": "àáâäèéêëìíîïòóôöùúûüŵŷ", "da": "æøå",
    "de": "äöüß", "dsb": "óćčěłńŕśšźž", "en": "", "eo": "ĉĝĥĵŝŭ", "es": "áéíñóúü", "et": "äõöšüž", "eu": "çñ",
    "fi": "åäöšž", "fo": "áðíóúýæø", "fr": "àâæçèéêëîïôœùûüÿ", "fur": "àâçèêìîòôùû", "fy": "àáâäèéêëíïóôöúûüý",
    "ga": "áéíóú", "gd": "àèìòù", "gl": "áéíïñóúü", "ha": "ƙƴɓɗ", "hr": "ćčđšž", "hsb": "óćčěłńřšźž", "ht": "èò",
    "hu": "áéíóöőúüű", "id": "", "ig": "ṅịọụ", "is": "áæðéíóöúýþ", "it": "àèéìòóù", "jv": "âåèéêìòù", "kl": "åæø",
    "ku": "çêîşû", "la": "", "lb": "äéë", "lg": "ŋ", "lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž", "mg": "àèìòôỳ",
    "mi": "āēīōū", "ms": "", "mt": "àċèġħìòùż", "nds": "äåöü", "nl": "áäèéëíïóöúü", "no": "àåæèéòóôø", "ny": "ŵ",
    "oc": "àáçèéíïòóúü", "om": "", "pap": "èñòùü", "pi": "āīūŋśḍḷṁṃṅṇṣṭñ", "pl": "ąćęłńóśźż", "pt": "àáâãçéêíòóôõú",
    "qu": "ñ", "rm": "àèéìòù", "ro": "âîășț", "rw": "", "sc": "àèìòù", "sk": "áäčďéíĺľňóôŕšťúýž", "sl": "čšž", "sn": "",
    "so": "", "sq": "çë", "sr-Latn": "ćčđšž", "st": "", "su": "é", "sv": "àåäéö", "sw": "", "szl": "ãôõćłńōŏśźż",
    "tk": "äçöüýňşž", "tl": "ñ", "tn": "êô", "tr": "çğıİöşü", "ts": "", "uz": "",
    "vi": "àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ",
    "wa": "àâåæçèéêëîïôùûüÿœ", "wo": "àéëñóŋ", "xh": "", "yo": "àáèéìíòóùúńǹḿṣẹọ", "zu": "",
}  # fmt: skip

_RUSSIAN = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"
CYRILLIC = {
    "ru": _RUSSIAN,
    "be": "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
    "bg": "абвгдежзийклмнопрстуфхцчшщъьюя",
    "mk": "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
    "sr": "абвгдђежзијклљмнњопрстћуфхцчџш",
    "uk": "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "tg": "абвгғдеёжзиӣйкқлмнопрстуӯфхҳчҷшъэюя",
    "az-Cyrl": "абвгғдеәжзиыјкҝлмноөпрстуүфхһчҹш",
    "ro-Cyrl": "абвгдежӂзийклмнопрстуфхцчшыьэюя",
    "uz-Cyrl": "абвгғдеёжзийкқлмнопрстуўфхҳчшъэюя",
    **dict.fromkeys(("abq", "ady", "av", "ce", "dar", "inh", "kbd", "lbe", "lez", "tab"), _RUSSIAN + "ӏ"),
    "ba": _RUSSIAN + "әғҙҡңөҫүһ", "bua": _RUSSIAN + "үһө", "cv": _RUSSIAN + "ӑӗҫӳ", "kaa": _RUSSIAN + "ўғқңүҳәө",
    "kk": _RUSSIAN + "әғқңөұүһі", "kv": _RUSSIAN + "іӧ", "ky": _RUSSIAN + "ңөү", "mhr": _RUSSIAN + "ҥӧӱ",
    "mn": _RUSSIAN + "өү", "os": _RUSSIAN + "ӕ", "sah": _RUSSIAN + "ҕҥөүһ", "tt": _RUSSIAN + "әҗңөүһ",
    "tyv": _RUSSIAN + "ңөү", "udm": _RUSSIAN + "ӝӟӥӧӵ", "xal": _RUSSIAN + "әһҗңөү",
}  # fmt: skip

ARABIC = {
    "ar": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي",
    "bal": "آئابتجدرزسشلمنهوٹپچڈڑژکگۆیێے",
    "ckb": "ئابتجحخدرزسشعغفقلمنهوپچڕژڤکگڵۆیێە",
    "fa": "ءآأؤئابةپتثجچحخدذرزژسشصضطظعغفقکگلمنوهی",
    "pa-Arab": "ءآؤئابتثجحخدذرزسشصضطظعغفقلمنهوٹپچڈڑژکگںھہیے",
    "ps": "ءآأؤئابةتثجحخدذرزسشصضطظعغفقلمنهويټپځڅچډړږژښکګگڼیۍې",
    "sd": "ءآئابتثجحخدذرزسشصضطظعغفقلمنهويٺٻٽپٿڀڃڄچڇڊڌڍڏڙڦکڪگڱڳڻھ",
    "skr": "ءآؤئابتثجحخدذرزسشصضطظعغفقلمنوٹٻپڄچڈڊڑژکگڳںھہۃیےݙݨ",
    "ug": "ئابپتجچخدرزژسشغفقكگڭلمنهھوۇۆۈۋېىيە",
    "ur": "ءابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوہھیے",
}

_DEVANAGARI = "अआइईउऊऋएऐओऔकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृेैोौ्ंँः"
DEVANAGARI = {
    **dict.fromkeys(("anp", "mag", "new", "sck"), _DEVANAGARI),
    "bgc": _DEVANAGARI + "ॅ",
    "bho": "कखगघचछजझञटठडढणतथदधनपफबभमयरलवशषसह़ािीुूृॅेैोौ्ँंः",
    "brx": "अआइईउऊऍएऐऑओऔकखगघचछजझञटठडढणतथदधनपफबभमयरलळवशषसह़ािीुूृॅेैॉोौ्ँं",
    "doi": _DEVANAGARI + "ऌळऽ़ॄॐ॑ॠ॒ॡॢॣ",
    "mai": "कखगघचछजझञटठडढणतथदधनपफबभमयरलवशषसह़ािीुूेैोौ्ंः",
    "raj": "अकखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसहािीुूृॅेैोौ्ँंः",
    **dict.fromkeys(("hi", "kok", "ne"), _DEVANAGARI + "ऌऍऑळऽ़ॅॉॐ"),
    "mr": _DEVANAGARI.replace("ँ", "") + "ऌऑळऽॅॉॐ",
    "sa": _DEVANAGARI + "ऌळऽ़ॄॐ॑ॠ॒ॡॢॣ",
}

# Less the archaic ones.
_HIRAGANA = "".join(chr(c) for c in range(0x3041, 0x3094) if chr(c) not in "ぅゎゐゑ")
_KATAKANA = "".join(chr(ord(c) + 0x60) for c in _HIRAGANA if c != "を") + "ー"
OTHER = {
    "el": "αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",
    "kn": "ಅಆಇಈಉಊಋಎಏಐಒಓಔಕಖಗಘಚಛಜಝಞಟಠಡಢಣತಥದಧನಪಫಬಭಮಯರಲವಶಷಸಹಳಾಿೀುೂೃೆೇೈೊೋೌ್ಂಃ",
    "ta": "அஆஇஈஉஊஎஏஐஒஓஔகஙசஜஞடணதநபமயரலவழளறனஷஸஹாிீுூெேைொோௌ்ஃ",
    "te": "అఆఇఈఉఊఋఌఎఏఐఒఓఔకఖగఘఙచఛజఝఞటఠడఢణతథదధనపఫబభమయరఱలవశషసహళాిీుూృౄెేైొోౌ్ౕౖౠౡఁంః",
    "th": "กขคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟภมยรฤลฦวศษสหฬอฮฯะัาำิีึืฺุูเแโใไๅๆ็่้๊๋์ํ",
    "ja": _HIRAGANA + _KATAKANA + "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連",
    "ko": "가각간강개거것게경계고공과관구국그기나내년는니다단대도들라로를리마면명모무부사상서성소수시아어여연요은을의",
    "zh": "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里",
    "zh-Hant": "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡",
    # That no official recogniser reads.
    "am": "ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠጨጰጸፀፈፐ",
    "as": "অআইঈউঊঋএঐওঔকখগঘঙচছজঝঞটঠডঢণতথদধনপফবভমযলশষসহ়ািীুূৃেৈোৌ্ঁংঃৰৱ",
    "bn": "অআইঈউঊঋঌএঐওঔকখগঘঙচছজঝঞটঠডঢণতথদধনপফবভমযরলশষসহ়ঽািীুূৃৄেৈোৌ্ঁংঃৎৗৠৡৢৣ",
    "bo": "ཀཁགངཅཆཇཉཏཐདནཔཕབམཙཚཛཝཞཟའཡརལཤསཧཨིེོུྐྑྒྔྕྗྙྟྡྣྤྦྨྩྫྭྱྲླྷ",
    "gu": "અઆઇઈઉઊઋઍએઐઑઓઔકખગઘઙચછજઝઞટઠડઢણતથદધનપફબભમયરલળવશષસહ઼ઽાિીુૂૃૄૅેૈૉોૌ્ઁંઃૐૠ",
    "he": "אבגדהוזחטיךכלםמןנסעףפץצקרשת",
    "hy": "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆ",
    "kat": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "km": "កខគឃងចឆជឈញដឋឌឍណតថទធនបផពភមយរលវសហឡអឥឦឧឩឪឫឬឭឮឯឰឱឲឳាិីឹឺុូួើឿៀេែៃោៅំះៈ៉៊់៍័្",
    "lo": "ກຂຄງຈຊຍດຕຖທນບປຜຝພຟມຢຣລວສຫອຮຯະັາຳິີຶືຸູົຼຽເແໂໃໄໆ່້໊໋໌ໍໜໝ",
    "ml": "അആഇഈഉഊഋഎഏഐഒഓഔകഖഗഘങചഛജഝഞടഠഡഢണതഥദധനപഫബഭമയരറലളഴവശഷസഹാിീുൂൃെേൈൊോൌ്ംഃ",
    "my": "ကခဂဃငစဆဇဈဉညဋဌဍဎဏတထဒဓနပဖဗဘမယရလဝသဟဠအဣဤဥဦဧဩဪါာိီုူေဲံ့း္်ျြွှဿ",
    "or": "ଅଆଇଈଉଊଋଏଐଓଔକଖଗଘଙଚଛଜଝଞଟଠଡଢଣତଥଦଧନପଫବଭମଯରଲଳଵଶଷସହ଼ାିୀୁୂୃେୈୋୌ୍ଁଂଃୟୱ",
    "pa": "ਅਆਇਈਉਊਏਐਓਔਕਖਗਘਙਚਛਜਝਞਟਠਡਢਣਤਥਦਧਨਪਫਬਭਮਯਰਲਵਸਹ਼ਾਿੀੁੂੇੈੋੌ੍ਂੜੰੱੲੳੴ",
    "si": "අආඇඈඉඊඋඌඍඑඒඓඔඕඖකඛගඝඞඟචඡජඣඤඥටඨඩඪණඬතථදධනඳපඵබභමඹයරලවශෂසහළෆ්ාැෑිීුූෘෙේෛොෝෞෟෲංඃ",
    "yi": "אבגדהוזחטיךכלםמןנסעףפץצקרשתִַָּֿׂײ",
}


def required_letters(lang: str) -> str:
    """The small letters that a text in `lang` needs, each a single code point (NFC).

    Raises: InputError for a language that is not known.
    """
    code = language_code(lang)
    if code in LATIN:
        return string.ascii_lowercase + LATIN[code]
    return next(table[code] for table in (CYRILLIC, ARABIC, DEVANAGARI, OTHER) if code in table)


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


def is_right_to_left(lang: str) -> bool:
    """Whether `lang` is written from right to left."""
    return unicodedata.bidirectional(required_letters(lang)[0]) in ("R", "AL")


def spell(letters: str) -> str:
    """Letters for a message, at most 40 of them."""
    return " ".join(letters[:40]) + (f" and {len(letters) - 40} more" if len(letters) > 40 else "")


def recognisers_for(lang: str) -> tuple[str, ...]:
    """Names of the recognisers of the index that read `lang`, the one to take first; empty when none does."""
    code = language_code(lang)
    return tuple(entry.name for entry in _ranked(DEFAULT) if code in entry.languages)


@dataclass(frozen=True)
class Choice:
    """Names of recognisers of the index, and one sentence that says why."""

    recognizers: tuple[str, ...]
    reason: str


def choose_recognizers(langs: str | Iterable[str], default: str = DEFAULT) -> Choice:
    """The recognisers that read languages: one where one reads them all, else one for each.

    `default` is taken where it reads them. Otherwise that of the newest family is, and of several the one that reads
    the fewest languages: of PP-OCRv5 eslav for Russian, cyrillic for Bulgarian.

    Raises: InputError for a language that is not known, or that no recogniser of the index reads.
    """
    codes, ranked = language_codes(langs), _ranked(default)
    readers = {code: [entry.name for entry in ranked if code in entry.languages] for code in codes}
    for code, names in readers.items():
        if not names:
            raise _unread(code)
    all_of_them = [entry.name for entry in ranked if set(codes) <= set(entry.languages)]
    chosen = all_of_them[:1] or list(dict.fromkeys(names[0] for names in readers.values()))
    named = ", ".join(codes)
    if chosen == [default]:
        return Choice((default,), f"{default} reads {named}: it is the default and has the letters")
    if len(chosen) == 1:
        return Choice(
            tuple(chosen),
            f"{chosen[0]} reads {named}: the newest of the index with letters that {default} lacks",
        )
    parts = [f"{name} reads {', '.join(c for c in codes if readers[c][0] == name)}" for name in chosen]
    return Choice(
        tuple(chosen), f"{'; '.join(parts)}: no recogniser of the index reads all, the surer reading is kept"
    )


def _ranked(default: str) -> list[hub.Entry]:
    """The recognisers of the index that are ready to run, those to take first in front."""
    found = [e for e in hub.entries("ocr").values() if e.languages and e.form == "deploy"]

    def rank(entry: hub.Entry) -> tuple[bool, float, bool, int]:
        version = re.search(r"v(\d+)", entry.family)
        return (
            entry.name != default,
            -int(version[1]) if version else 0,
            entry.name != DEFAULT,
            len(entry.languages),
        )

    return sorted(found, key=rank)


def _unread(code: str) -> InputError:
    near = next((e for e in hub.entries("ocr").values() if code in e.lacks), None)
    lacks = f"{near.name} comes nearest and lacks" if near else "none has"
    return InputError(
        f"no recogniser of the index can write the language {code!r}",
        where="lang",
        received=f"{code}: {lacks} {spell(near.lacks[code] if near else required_letters(code))}",
        allowed="a language that `oar models list --lang CODE` finds a recogniser for",
        fix="leave lang out to read what the model can write, or train a recogniser with a dictionary that has them",
    )

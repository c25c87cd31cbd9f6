"""Languages by their BCP 47 codes, and the other spellings that people and Paddle's tools have for them.

Source: ISO 639-1, 639-2 and 639-3; the values of `lang` of PaddleOCR 2.x and 3.x.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from framework.core.errors import InputError, nearest

# A language a line: its code, its English name, then other spellings. PaddleOCR's `ka` is Kannada, so Georgian has its
# three-letter code here.
_TABLE = """
abq abaza
ady adyghe
af afrikaans afr
am amharic amh
anp angika ang
ar ara
as assamese asm
ast asturian
av avar ava
az azerbaijani aze az-Latn
az-Cyrl
ba bashkir bak
bal balochi
be belarusian bel
bg bulgarian bul
bgc haryanvi
bho bhojpuri bh
bm bambara bam
bn bengali ben
bo tibetan bod tib
br breton bre
brx bodo
bs bosnian bos
bua buriat
ca catalan cat
ce chechen che
ckb sorani ku-Arab
co corsican cos
cs czech ces cze
cv chuvash chv
cy welsh cym wel
da danish dan
dar dargwa
de german deu ger
doi dogri
dsb
el greek ell gre
en english eng
eo esperanto epo
es spanish spa xi
et estonian est
eu basque eus baq
fa persian fas per farsi
fi finnish fin
fo faroese fao
fr french fra fre
fur friulian
fy frisian fry
ga irish gle
gd gaelic gla
gl galician glg
gu gujarati guj
ha hausa hau
he hebrew heb
hi hindi hin
hr croatian hrv
hsb sorbian
ht haitian hat
hu hungarian hun
hy armenian hye arm
id indonesian ind
ig igbo ibo
inh ingush
is icelandic isl ice
it italian ita
ja japanese jpn japan
jv javanese jav
kaa karakalpak
kat georgian geo
kbd kabardian
kk kazakh kaz
kl greenlandic kal
km khmer khm
kn kannada kan ka
ko korean kor
kok konkani gom
ku kurdish kur
kv komi kom
ky kyrgyz kir
la lat
lb luxembourgish ltz
lbe lak
lez lezgian
lg ganda lug
lo lao
lt lithuanian lit
lv latvian lav
mag magahi mah
mai maithili
mg malagasy mlg
mhr mari chm
mi maori mri mao
mk macedonian mkd mac
ml malayalam mal
mn mongolian mon
mr marathi mar
ms malay msa may
mt maltese mlt
my burmese mya bur
nds
ne nepali nep
new newari
nl dutch nld dut
no norwegian nor nb nn nob nno
ny nyanja nya
oc occitan oci
om oromo orm
or odia ori
os ossetian oss
pa punjabi pan pa-Guru
pa-Arab
pap papiamento
pi pali pli
pl polish pol
ps pashto pus
pt portuguese por pu
qu quechua que
raj rajasthani
rm romansh roh
ro romanian ron rum
ro-Cyrl mo
ru russian rus
rw kinyarwanda kin
sa sanskrit san
sah yakut
sc sardinian srd
sck sadri
sd sindhi snd
si sinhala sin
sk slovak slk slo
skr saraiki
sl slovenian slv
sn shona sna
so somali som
sq albanian sqi alb
sr serbian srp sr-Cyrl rs_cyrillic rsc
sr-Latn rs_latin rs
st sotho sot
su sundanese sun
sv swedish swe
sw swahili swa
szl silesian
ta tamil tam
tab tabasaran
te telugu tel
tg tajik tgk
th thai tha
tk turkmen tuk
tl tagalog tgl fil filipino
tn tswana tsn
tr turkish tur
ts tsonga tso
tt tatar tat
tyv tuvan
udm udmurt
ug uyghur uig
uk ukrainian ukr
ur urdu urd
uz uzbek uzb uz-Latn
uz-Cyrl
vi vietnamese vie
wa walloon wln
wo wolof wol
xal kalmyk
xh xhosa xho
yi yiddish yid
yo yoruba yor
zh chinese zho chi ch zh-Hans
zh-Hant chinese_cht zh-TW zh-HK zh-MO
zu zulu zul
"""
_SPELLINGS = {words[0]: tuple(words[1:]) for line in _TABLE.split("\n") if (words := line.split())}

LANGUAGES = tuple(_SPELLINGS)
GROUPS = {  # PaddleOCR's names of scripts, each by languages that have most of its letters
    "latin": ("cs", "de", "es", "fr", "hu", "is", "lv", "pl", "pt", "ro", "sv", "tr"),
    "cyrillic": ("ba", "be", "bg", "kk", "mk", "ru", "sr", "tg", "uk"),
    "eslav": ("be", "ru", "uk"),
    "arabic": ("ar", "fa", "ug", "ur"),
    "devanagari": ("hi", "mr", "ne", "sa"),
}


def language_code(lang: str) -> str:
    """The code of `LANGUAGES` for a language by its code (`de`, `de-AT`, `deu`), English name, or Paddle's spelling.

    Raises: InputError, with the nearest known spelling.
    """
    known = _codes()
    wanted = lang.strip().replace("_", "-").lower()
    if wanted in known:
        return known[wanted]
    code, _, region = wanted.rpartition("-")
    if code in known and re.fullmatch("[a-z]{2}|[0-9]{3}", region):
        return known[code]
    near = nearest(lang, (*known, *GROUPS))
    raise InputError(
        "the language is not known",
        where="lang",
        received=lang,
        allowed=f"{', '.join(LANGUAGES)}; their English names; {', '.join(GROUPS)}",
        fix=f"did you mean {near!r}?" if near else "name the model instead of the language",
    )


def language_codes(langs: str | Iterable[str]) -> tuple[str, ...]:
    """The codes of several languages, each once: `"ru,en"`, `["ru", "en"]`, or a script such as `"cyrillic"`.

    Raises: InputError, for an unknown one, and where there is none.
    """
    named = langs.split(",") if isinstance(langs, str) else [str(lang) for lang in langs]
    found: dict[str, None] = {}
    for lang in named:
        found |= dict.fromkeys(GROUPS.get(lang.strip().lower()) or (language_code(lang),))
    if not found:
        raise InputError(
            "no language is named", where="lang", received=langs, allowed='such as "ru" or "ru,en"'
        )
    return tuple(found)


@functools.cache
def _codes() -> dict[str, str]:
    """Every spelling in small letters, with - for _, to its code."""
    spelled = {code: (code, *others) for code, others in _SPELLINGS.items()}
    return {word.replace("_", "-").lower(): code for code, words in spelled.items() for word in words}

"""Words by which columns and values are known, in nine languages; they stand in ``vocabulary.toml``.

A word stands for itself as a whole word of a name; ``*`` stands for any letters. ``household_n*`` is two
words in a row. New words go into that table; how they are weighed stands in `sfumato.data.guess.role` and
`sfumato.data.guess.kind`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from sfumato.data.schema import Role

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv")


@dataclass(frozen=True)
class Concept:
    """What a column may be about: the words for it, the role it has then, and how sure that is.

    ``numbers`` is what whole numbers are there (label, quantity, grade); a ``trait`` stays with a person.
    ``about`` is what rules may ask for: an age (or year of birth), a place (smaller than a State),
    a state (or country), an origin.
    """

    what: str
    stems: str
    role: Role | None = None
    sure: float = 0.8
    numbers: str = ""
    trait: bool = False
    about: str = ""


def _concepts(tables: list[dict[str, Any]]) -> Iterator[Concept]:
    for table in tables:
        stems = " ".join(table.pop(language, "") for language in (*LANGUAGES, "code"))
        yield Concept(**{**table, "role": Role(table["role"]) if "role" in table else None}, stems=stems)


def _stems(table: Mapping[str, str]) -> str:
    return " ".join(table.values())


def _phrases(table: Mapping[str, str]) -> tuple[str, ...]:
    """Each phrase as it stands, in small letters, in capitals, and with one capital in front."""
    every_phrase = [phrase for phrases in table.values() for phrase in phrases.split("|")]
    forms = ((one, one.lower(), one.upper(), one[:1].upper() + one[1:]) for one in every_phrase)
    return tuple(dict.fromkeys(form for each in forms for form in each))


_TABLES = tomllib.loads(resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))

#: What columns may be about. The first that is met decides.
CONCEPTS: tuple[Concept, ...] = tuple(_concepts(_TABLES["columns"]))

#: Names of texts in which anything may stand; of numbers that count or measure, that rank, that only name.
FREE_TEXT, QUANTITIES, GRADES, LABELS = (
    _stems(_TABLES[name]) for name in ("free_text", "quantities", "grades", "labels")
)
#: Names of numbers of things, and of people who are not those that the records are about.
THINGS = _stems(_TABLES["things"])
#: Last words of the names of columns that number something.
NUMBERS = _stems(_TABLES["numbers"])
#: Names of columns that hold the number of a person, of whatever country.
PERSON_NUMBERS = _stems(_TABLES["person_numbers"])
#: Words before a number that say whose or what number it is.
PHONE_CUES, IDENTITY_CUES = (
    tuple(dict.fromkeys(_stems(_TABLES[name]).split())) for name in ("phone_cues", "identity_cues")
)

#: Words that names may do without: of, the.
FILLERS = frozenset(_stems(_TABLES["fillers"]).split())

#: Texts that stand for a missing value wherever they are met.
_MISSING = (
    *(".", "..", "?", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>"),
    *("#NULL!", "#VALUE!", "(null)", "\\N", "n.a.", "N.A.", "k.A.", "k. A."),
    *_phrases(_TABLES["missing"]),
)
MISSING_WORDS = tuple(dict.fromkeys(_MISSING))
#: The same, unless all values of the column are as short (NA may be Namibia).
SHORT_MISSING_WORDS = ("NA", "na", "-", "--", "ND", "nd", "kA", "KA")
#: The same beside numbers only.
NOT_APPLICABLE = _phrases(_TABLES["not_applicable"])
#: Numbers that stand for a missing value, if they stand apart from all others.
MISSING_NUMBERS = tuple(
    {-1, -7, -8, -9}
    | {sign * int(str(digit) * length) for sign in (-1, 1) for digit in (7, 8, 9) for length in range(2, 7)}
    | {97, 98, 997, 998, 9997, 9998}
)
#: Dates that no one means; the last day of all times is what databases write for "no end".
MISSING_DATES = ("0001-01-01", "1111-11-11", "9999-01-01", "9999-09-09", "9999-12-31")

#: The words of each language for the one sex, the other and neither; for yes and no; for marital states.
SEXES = tuple(tuple(set(side.split()) for side in words.split("<")) for words in _TABLES["sexes"].values())
YES_NO = tuple(set(words.split()) for words in _TABLES["yes_no"].values())
MARITAL = tuple(set(words.split("|")) for words in _TABLES["marital"].values())
#: Scales from low to high: the place of each word.
SCALES: tuple[Mapping[str, int], ...] = tuple(
    {word.strip(): place for place, words in enumerate(scale.split("<")) for word in words.split("/")}
    for scales in _TABLES["scales"].values()
    for scale in scales
)
#: Words around the numbers of a range.
RANGES: Mapping[str, list[str]] = _TABLES["ranges"]

#: How many characters a bank account number has, by country.
ACCOUNT_LENGTHS: Mapping[str, int] = _TABLES["account_lengths"]

#: Common given names, in small letters without accents. Names that are also places or things are left out.
GIVEN_NAMES = """
    james john robert michael william david richard joseph thomas charles christopher daniel matthew
    anthony steven paul andrew joshua kenneth kevin brian george timothy ronald jason edward jeffrey ryan
    jacob gary nicholas eric jonathan stephen larry justin brandon benjamin samuel gregory alexander
    patrick raymond dennis jerry tyler aaron adam nathan henry zachary douglas peter kyle noah ethan
    jeremy walter christian keith roger mary patricia jennifer linda elizabeth barbara susan jessica sarah
    karen lisa nancy betty sandra margaret ashley kimberly emily donna michelle carol amanda melissa
    deborah stephanie rebecca sharon laura cynthia dorothy kathleen amy angela shirley brenda emma anna
    pamela nicole samantha katherine christine helen debra rachel carolyn janet maria catherine heather
    diane olivia julie joyce sophia isabella hannah abigail alice jose juan luis carlos jorge pedro manuel
    francisco antonio miguel javier alejandro fernando sergio pablo diego raul rafael alberto carmen
    josefa isabel ana marta lucia pilar teresa elena cristina dolores rosario jean pierre michel andre
    philippe alain jacques bernard nicolas francois laurent julien olivier marie nathalie isabelle sylvie
    monique sophie celine camille lea manon chloe juliette aurelie hans klaus wolfgang jurgen stefan
    andreas uwe frank bernd matthias dieter helmut gunter karl heinz ursula monika petra sabine renate
    helga karin brigitte ingrid andrea claudia susanne birgit heike giuseppe giovanni mario luigi
    francesco angelo vincenzo salvatore marco alessandro stefano giulia francesca chiara federica silvia
    paola giovanna rosa elisa alessia valentina martina joao paulo tiago rui goncalo ines beatriz mariana
    joana catarina luana larissa thiago jan piet kees willem hendrik johannes pieter cornelis gerrit anouk
    sanne lotte femke marieke anneke krzysztof andrzej piotr tomasz pawel marcin grzegorz wojciech
    agnieszka malgorzata katarzyna magdalena joanna ewa zofia jakub mateusz lars erik anders johan nils
    sven olof bjorn astrid kerstin eva birgitta margareta ole jens niels hanne mette matti juhani timo
    pekka mikko johanna hannele ivan sergei dmitri alexei vladimir nikolai andrei mikhail olga tatiana
    natalia svetlana irina ekaterina mehmet mustafa ahmet ali huseyin hasan ibrahim fatma ayse emine
    hatice zeynep mohammed muhammad mohamed ahmed omar yusuf khalid fatima aisha khadija maryam zainab
    hassan hussein karim rahul amit sanjay rajesh suresh vijay priya anjali pooja sunita lakshmi deepak
    wei jing ming hiroshi takashi yuki kenji sakura yoko
"""
#: Common family names, likewise.
FAMILY_NAMES = """
    smith johnson williams jones garcia miller davis rodriguez martinez hernandez lopez gonzalez wilson
    anderson taylor moore thompson harris sanchez ramirez robinson walker torres nguyen flores rivera
    campbell mitchell roberts gomez phillips evans turner diaz edwards collins murphy morris morales
    fernandez alvarez ruiz jimenez romero alonso gutierrez navarro dominguez vazquez ramos martin bernard
    dubois durand leroy moreau simon laurent lefebvre michel roux fournier girard muller schmidt schneider
    fischer weber meyer wagner becker schulz hoffmann koch bauer richter klein schroder neumann schwarz
    zimmermann hofmann kruger rossi russo ferrari esposito bianchi romano colombo ricci marino greco conti
    gallo silva santos oliveira souza pereira ferreira almeida costa carvalho rodrigues jansen bakker
    visser smit meijer mulder nowak kowalski wisniewski wojcik kaminski lewandowski zielinski andersson
    johansson karlsson nilsson eriksson larsson olsson persson hansen olsen larsen pedersen nielsen jensen
    christensen korhonen virtanen nieminen ivanov petrov smirnov kuznetsov popov yilmaz kaya demir celik
    wang zhang chen liu yang huang zhao singh kumar patel sharma gupta khan kim choi tanaka suzuki sato
    takahashi watanabe cohen levy murray kelly obrien byrne ryan walsh
"""

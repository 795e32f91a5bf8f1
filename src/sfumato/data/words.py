"""Words in the names of columns that tell what a column is, in English and some other languages.

A word stands for itself as a whole word of the name; ``*`` stands for any letters. ``household_n*`` is two
words in a row. New words go here; how they are weighed stands in `sfumato.data.guess`.
"""

from __future__ import annotations

from sfumato.data.schema import Role

#: Texts that stand for a missing value wherever they are met.
MISSING_WORDS = (".", "..", "?", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>")
#: The same, unless all values of the column are as short (NA may be Namibia).
SHORT_MISSING_WORDS = ("NA", "na", "-", "--")
#: Numbers that stand for a missing value, if they stand apart from all others.
MISSING_NUMBERS = tuple(
    {-1, -7, -8, -9}
    | {sign * int(str(digit) * length) for sign in (-1, 1) for digit in (7, 8, 9) for length in range(2, 7)}
    | {97, 98, 997, 998, 9997, 9998}
)

#: Roles with how sure the words are. The first that is met decides, so the narrower come first; words without
#: a role tell that the later ones do not apply.
ROLES: tuple[tuple[Role | None, float, str], ...] = (
    (
        None,
        0.0,
        "body_weight birth_weight birthweight weight_kg weight_lb* weight_loss household_head hh_head",
    ),
    (
        Role.WEIGHT,
        0.9,
        """
        *wgt* wt pweight* *sampl*_w* survey_w* person_w* household_w* hh_w* final_w* weighting
        poids gewichtung hochrechn* factor_expansion fexp*
        """,
    ),
    (Role.WEIGHT, 0.6, "weight weights w gewicht peso ponder*"),
    (Role.KEY, 0.8, "hhsize hh_size household_size family_size hh_type household_type hhcivil"),
    (
        Role.HOUSEHOLD,
        0.9,
        """
        hid hhid idhh hh_id household_id ori_hid household_n* hh_n* famil*_id dwelling_id
        haushalt*_id haushalt*_n* menage_id hogar_id
        """,
    ),
    (Role.HOUSEHOLD, 0.6, "hh household haushalt menage hogar"),
    (
        Role.UNIT,
        0.9,
        """
        *patient*_id patientid person*_id personid subject*_id subjectid participant*_id client*_id member*_id
        individual_id customer*_id student_id employee_id pid persnr pat_id pers_id
        """,
    ),
    (
        Role.IDENTIFIER,
        0.9,
        """
        id *_id userid caseid recordid companyid firmid *utilityid ssn nin nhs* passport*
        *name nachname vorname nom prenom apellido*
        email e_mail mail phone* tel telef* mobile fax address adress* street strasse
        iban account* card_n* credit_card url ip ip_address licen*_n* plate nif dni cpf bsn mrn
        uuid guid personnummer index unnamed* rowid row_n* record_n* case_n*
        """,
    ),
    (
        Role.SENSITIVE,
        0.8,
        """
        *income* einkommen* revenu* ingres* salar* wage* lohn earning* expend* charge* debt* asset* saving*
        capital_gain capital_loss tax* *tax benefit* credit* profit*
        diag* diseas* illness* icd* disab* hiv cancer drug* treat* symptom* health* mental* pregnan*
        krank* enfermedad* maladie*
        crim* convict* politic* party vote* sexual* relig*
        """,
    ),
    (
        Role.KEY,
        0.8,
        """
        age alter edad eta idade leeftijd sex sexo sexe geschlecht gender
        birth* born geburt* naissance nacimiento dob yob death*
        race ethn* etni* nation* citizen* langu*
        *marit* marstat civil* familienstand relat* children kids
        educ* bildung* school* degree *occu* beruf* profession job *workclass employ* industr*
        *countr* land pays pais region* state county kreis province district municip* gemeinde city town ort
        village zip* post*code postal* plz urb* rural geo* lat lon latitude longitude
        hospital* admi* discharg* los height tenure
        """,
    ),
)

#: Names of numbers that count or measure something.
QUANTITIES = """
    age alter edad *income* wage* salar* charge* expend* saving* debt* amount
    hours* weeks* days* years year jahr num* n number* count* size hhsize children kids
    los height *weight* *wgt*
"""
#: Names of numbers that rank something.
GRADES = "*level* *grade* educ* rank* score* stage* degree rating* quint* quart* decile* band severity month"
#: Names of numbers that only name something.
LABELS = """
    id *_id hid hhid pid ssn phone* tel *code zip* postal* plz region* state county *countr* district municip*
    province *occu* industr* icd* naics isco nace nation* *utilityid *patientid *personid
"""

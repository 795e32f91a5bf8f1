"""Names of columns and words in cells are understood in nine languages, as people write them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.data.guess import words
from sfumato.data.guess.columns import guess
from sfumato.data.guess.facts import normalise_name, pattern
from sfumato.data.schema import Kind, Role

RNG = np.random.default_rng(32)
N = 240

#: What a column is by its name, in the order English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Swedish.
NAMES = {
    "key": """
        Date of birth | Geburtsdatum | Date de naissance | Fecha de nacimiento | Data di nascita | Data de nascimento | Geboortedatum | Data urodzenia | Födelsedatum
        DOB | Geb.-Dat. | date_naiss | Fecha nac. | data_nasc | Dt. Nasc. | gebdatum | Data ur. | födelseår
        birthYear | Geburtsjahr | DDN | F_NAC | Nascita | Nascimento | Geb. datum | rok urodzenia | Född
        Sex | Geschlecht | Sexe | Sexo | Sesso | Género | Geslacht | Płeć | Kön
        gender | Geschl. | Genre | Género | Genere | SEXO | geslacht_code | PLEC | kön
        Age | Alter | Âge | Edad | Età | Idade | Leeftijd | Wiek | Ålder
        age_group | Altersgruppe | Tranche_age | Grupo de edad | fascia d'età | Faixa etária | Leeftijdsgroep | Grupa wiekowa | Åldersgrupp
        ZIP | PLZ | Code postal | CP | CAP | Código postal | Postcode | Kod pocztowy | Postnummer
        Postal code | Postleitzahl | CP | Cód. postal | Codice postale | Cod. Postal | PC4 | KodPocztowy | postnr
        Municipality | Gemeinde | Commune | Municipio | Comune | Concelho | Gemeente | Gmina | Kommun
        City | Wohnort | Ville | Localidad | Città | Cidade | Woonplaats | Miejscowość | Bostadsort
        Region | Bundesland | Région | Comunidad autónoma | Regione | Região | Provincie | Województwo | Län
        County | Landkreis | Département | Provincia | Provincia | Distrito | Wijk | Powiat | Landskap
        Country | Land | Pays | País | Paese | País | Land | Kraj | Land
        Nationality | Staatsangehörigkeit | Nationalité | Nacionalidad | Nazionalità | Nacionalidade | Nationaliteit | Narodowość | Medborgarskap
        Ethnicity | Herkunft | Origine | Etnia | Etnia | Raça | Etniciteit | Pochodzenie | Etnicitet
        Occupation | Beruf | Profession | Profesión | Professione | Profissão | Beroep | Zawód | Yrke
        Department | Tätigkeit | Métier | Ocupación | Mansione | Ocupação | Functie | Stanowisko | Befattning
        Education | Bildungsabschluss | Diplôme | Nivel de estudios | Titolo di studio | Escolaridade | Opleiding | Wykształcenie | Utbildning
        Marital status | Familienstand | État civil | Estado civil | Stato civile | Estado civil | Burgerlijke staat | Stan cywilny | Civilstånd
        Children | Kinderzahl | Nb_enfants | Hijos | Figli | Filhos | Aantal kinderen | Liczba dzieci | Antal barn
        Household size | Haushaltsgröße | Taille_ménage | Tamaño_hogar | N. componenti | N_pessoas | Huishoudgrootte | Liczba osób | Hushållsstorlek
        Admission date | Aufnahmedatum | Date_entrée | Fecha ingreso | Data ricovero | Data internamento | Opnamedatum | Data przyjęcia | Inskrivningsdatum
        Discharged | Entlassung | Date_sortie | Fecha alta | Data dimissione | Data_alta | Ontslagdatum | Data wypisu | Utskrivning
        hire_date | Eintrittsdatum | Date_embauche | Fecha_contratación | Data_assunzione | Admissão | Datum_indiensttreding | Data_zatrudnienia | Anställningsdatum
        Language | Muttersprache | Langue | Idioma | Lingua | Língua | Taal | Język | Modersmål
        Hospital | Krankenhaus | Hôpital | Hospital | Residenza | Hospital | Afkomst | Obywatelstwo | Hemort
        Height | Körpergröße | Taille | Estatura | Altezza | Altura | Lichaamslengte | Wzrost | Kroppslängd
    """,
    "sensitive": """
        Income | Einkommen | Revenu | Ingresos | Reddito | Rendimento | Inkomen | Dochód | Inkomst
        Salary | Gehalt | Salaire | Sueldo | Stipendio | Salário | Salaris | Wynagrodzenie | Månadslön
        Wages | Bruttolohn | Rémunération | Salario | Retribuzione | Vencimento | Loon | Zarobki | Bruttolön
        Cost | Kosten | Coût | Coste | Costo | Custo | Kosten | Koszt | Kostnad
        Expenditure | Gesamtkosten | Dépenses | Gastos | Spesa | Despesas | Uitgaven | Wydatki | Utgifter
        Diagnosis | Hauptdiagnose | Diagnostic | Diagnóstico | Diagnosi | Diagnóstico | Diagnose | Rozpoznanie | Diagnos
        Disease | Krankheit | Maladie | Enfermedad | Malattia | Doença | Ziekte | Choroba | Sjukdom
        ICD10 | ICD-10 | CIM10 | CIE-10 | Patologia | CID10 | Medicatie | Leki | Läkemedel
        Religion | Konfession | Religion | Religión | Religione | Religião | Godsdienst | Wyznanie | Religion
        Disability | Behinderung | Handicap | Discapacidad | Disabilità | Deficiência | Beperking | Niepełnosprawność | Funktionsnedsättning
        Trade union | Gewerkschaft | Syndicat | Sindicato | Sindacato | Sindicato | Vakbond | Związek zawodowy | Fackförbund
        Debts | Schulden | Dettes | Deudas | Debito | Dívidas | Schulden | Długi | Skulder
        sick_days | Krankheitstage | Jours_maladie | Días_baja | Giorni_malattia | Dias_baixa | Ziekteverzuim | Dni_choroby | Sjukdagar
    """,
    "identifier": """
        Name | Nachname | Nom | Nombre | Cognome | Nome | Naam | Nazwisko | Namn
        Surname | Familienname | Prénom | Apellidos | Nome | Apelido | Achternaam | Imię | Efternamn
        First name | Vorname | nom_famille | Primer apellido | Nominativo | Sobrenome | Voornaam | imie_nazwisko | Förnamn
        Address | Anschrift | Adresse | Dirección | Indirizzo | Morada | Adres | Adres | Adress
        Street | Straße | Rue | Domicilio | indirizzo_residenza | Endereço | Straat | Ulica | Gatuadress
        Phone | Telefonnummer | Téléphone | Teléfono | Telefono | Telefone | Telefoon | Nr telefonu | Telefon
        Mobile | Handynummer | Tel. | Móvil | Cellulare | Telemóvel | GSM | Komórka | Mobilnummer
        E-mail | E-Mail-Adresse | Courriel | Correo electrónico | E-mail | Correio eletrónico | E-mailadres | e-mail | E-post
        SSN | Sozialversicherungsnummer | Num_sécu | DNI | Codice fiscale | NISS | BSN | PESEL | Personnummer
        Insurance number | Versicherungsnummer | NIR | NIF | Tessera sanitaria | CPF | Burgerservicenummer | NIP | Personnr
        Passport no | Personalausweis | Passeport | Pasaporte | Passaporto | Passaporte | Paspoortnummer | Nr dowodu | Samordningsnummer
        IBAN | Kontonummer | RIB | Cuenta bancaria | Conto corrente | NIB | Rekeningnummer | Nr konta | Bankkonto
    """,
    "person": """
        Patient ID | Patientennummer | Num_patient | NHC | Id paziente | Num_utente | Patiëntnummer | Nr pacjenta | Patientnr
        emp_no | Personalnummer | Matricule | Nº empleado | Matricola | Num_funcionário | Personeelsnummer | Nr pracownika | Anställningsnr
        Employee number | Mitarbeiter-Nr. | Numéro_salarié | Num. historia | Numero paziente | Id_funcionário | Medewerkernr | ID_pracownika | Löpnr
        person_no | Kundennummer | Id_individu | id_paciente | Id_dipendente | id_doente | Klantnummer | numer ewidencyjny | Kundnummer
    """,
    "household": """
        Household ID | Haushaltsnummer | Num_ménage | Id_hogar | Id_famiglia | Id_agregado | Huishoudennummer | Nr gospodarstwa | Hushållsnummer
        hh_id | Haushalt-Nr. | id_ménage | Num. hogar | Id_nucleo | Num_agregado | Huishouden | id_gosp | Hushåll
    """,
    "weight": """
        Sampling weight | Gewichtung | Pondération | Factor de expansión | Peso campionario | Peso amostral | Weegfactor | Waga próby | Urvalsvikt
        PWGTP | Hochrechnungsfaktor | Poids | Factor_elevación | Coeff. ponderazione | Ponderador | Ophoogfactor | Waga | Vikt
    """,
}  # fmt: skip
NAMED = [
    (name.strip(), role)
    for role, lines in NAMES.items()
    for line in lines.strip().splitlines()
    for name in line.split("|")
]
VALUES = {
    "weight": RNG.choice([1.5, 2.25, 3.0], N),
    "person": RNG.integers(0, 100, N),
    "household": RNG.integers(0, 100, N),
}


def one(name, values):
    (proposal,) = guess(pl.DataFrame({name: values}))
    return proposal


def drawn(*values):
    return [values[i % len(values)] for i in range(N)]


@pytest.mark.parametrize(("name", "role"), dict.fromkeys(NAMED))
def test_roles_by_name(name, role):
    found = one(name, VALUES.get(role, drawn("a", "b", "c")))
    assert found.column.role == role, found.role_reason


def test_there_are_many_names_and_each_language_has_as_many():
    assert len(set(NAMED)) >= 400
    for lines in NAMES.values():
        assert {line.count("|") for line in lines.strip().splitlines()} == {len(words.LANGUAGES) - 1}


@pytest.mark.parametrize(
    "name",
    ["x", "usage", "paid", "message", "colour", "nombre_de_pages", "version", "format", "cell", "product", "couleur",
     "farbe", "kleur", "kolor", "status", "flag", "shipment", "sensor", "voltage", "temperatura", "fabricante"],
)  # fmt: skip
def test_ordinary_names_say_nothing(name):
    assert one(name, drawn("a", "b", "c")).column.role is None


@pytest.mark.parametrize("name", ["remarks", "Bemerkung", "Commentaires", "Obs", "Obs.", "Observaciones", "Osservazioni",
                                  "Observações", "Opmerkingen", "Uwagi", "Anteckningar", "Notizen", "Freitext"])  # fmt: skip
def test_free_text_is_an_identifier(name):
    texts = drawn("alta voluntaria", "seen", "ok", "wait and see")
    assert one(name, texts).column.role is Role.IDENTIFIER
    assert one(name, drawn(*(f"note{i}" for i in range(30)))).column.role is Role.IDENTIFIER
    assert one(name, drawn("a", "b")).column.role is not Role.IDENTIFIER  # codes


@pytest.mark.parametrize(
    "values",
    [("M", "F"), ("m", "w", "d"), ("männlich", "weiblich"), ("Mann", "Frau"), ("homme", "femme"), ("H", "F"),
     ("Hombre", "Mujer"), ("H", "M"), ("V", "M"), ("maschio", "femmina"), ("masculino", "feminino"), ("man", "vrouw"),
     ("mężczyzna", "kobieta"), ("K", "M"), ("man", "kvinna"), ("female", "male", "k.A."), ("Male", "Female", "other")],
)  # fmt: skip
def test_words_for_the_sexes(values):
    found = one("x", drawn(*values))
    assert (found.column.role, found.role_reason) == (Role.KEY, "its values are words for the sexes")


@pytest.mark.parametrize(
    "values", [("M", "N"), ("F", "G"), ("man", "femme"), ("d", "m"), ("H", "V"), ("m", "M"), ("yes", "no")]
)
def test_other_words_are_no_sexes(values):
    assert one("x", drawn(*values)).column.role is None


@pytest.mark.parametrize(
    "values",
    [("married", "single", "widowed"), ("ledig", "verheiratet"), ("Célibataire", "Marié(e)", "Veuf"),
     ("Soltero/a", "Casado/a"), ("celibe", "coniugata"), ("Solteiro", "União de facto"), ("gehuwd", "ongehuwd"),
     ("żonaty", "panna", "wdowa"), ("gift", "ogift", "änka")],
)  # fmt: skip
def test_words_for_marital_states(values):
    assert one("x", drawn(*values)).role_reason == "its values are words for marital states"


@pytest.mark.parametrize(
    "values",
    [
        ("yes", "no"),
        ("Ja", "Nein"),
        ("oui", "non"),
        ("Sí", "No"),
        ("sim", "não"),
        ("tak", "nie"),
        ("ja", "nej"),
    ],
)
def test_yes_and_no(values):
    assert one("x", drawn(*values)).kind_reason.startswith("yes or no")


@pytest.mark.parametrize(
    "code",
    ["k.A.", "keine Angabe", "s/d", "S/D", "n.d.", "brak", "Brak danych", "non renseigné", "ns/nc", "Uppgift saknas", "geen opgave"],
)  # fmt: skip
def test_words_for_a_missing_value(code):
    assert one("x", [*drawn("Private", "Public"), code]).column.missing == (code,)
    numbers = one("income", [*map(str, range(1000, 1000 + N)), code])
    assert (numbers.column.kind, numbers.column.missing) == (Kind.CONTINUOUS, (code,))


def test_numbers_by_name():
    """Postcodes and codes of municipalities are no quantities, ages and amounts are."""
    for name in ("PLZ", "CP", "Kod pocztowy", "postnummer", "Gemeinde", "Gmina", "Nr pacjenta"):
        assert one(name, RNG.integers(1000, 99_999, N)).column.kind is Kind.NOMINAL
    for name in ("Edad", "Wiek", "Ålder", "Kinderzahl", "Coste", "Dochód"):
        assert one(name, RNG.integers(1, 9, N)).column.kind is Kind.CONTINUOUS
    for name in ("Bildungsabschluss", "Wykształcenie", "niveau"):
        assert one(name, RNG.integers(1, 6, N)).column.kind is Kind.ORDINAL


# The table itself -----------------------------------------------------------------------------------------


def test_the_words_are_written_as_names_are_read():
    """Words with accents or capitals would never be met."""
    stems = [stem for concept in words.CONCEPTS for stem in concept.stems.split()]
    stems += [
        *words.FREE_TEXT.split(),
        *words.QUANTITIES.split(),
        *words.GRADES.split(),
        *words.LABELS.split(),
    ]
    assert [
        stem for stem in stems if normalise_name(stem.replace("*", "z")) != stem.replace("*", "z").strip("_")
    ] == []
    assert all(pattern(concept.stems) for concept in words.CONCEPTS)


def test_every_language_has_words_for_every_idea():
    tables = {
        name: table for name, table in words._TABLES.items() if isinstance(table, dict) and "en" in table
    }
    tables.pop("numbers")
    assert {name: set(words.LANGUAGES) - set(table) for name, table in tables.items()} == {
        name: set() for name in tables
    }


def test_the_values_are_written_as_cells_are_read():
    from sfumato.data.guess.facts import plain_words

    every = [
        *(word for scale in words.SCALES for word in scale),
        *(word for states in words.MARITAL for word in states),
    ]
    every += [word for sides in words.SEXES for side in sides for word in side]
    assert plain_words(pl.Series(every)).to_list() == every

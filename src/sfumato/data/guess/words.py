"""Words in the names of columns that tell what a column is, in English and some other languages.

A word stands for itself as a whole word of the name; ``*`` stands for any letters. ``household_n*`` is two
words in a row. New words go here; how they are weighed stands in `sfumato.data.guess.columns`.
"""

from __future__ import annotations

from sfumato.data.schema import Role

#: Texts that stand for a missing value wherever they are met.
MISSING_WORDS = (
    *(".", "..", "?", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>"),
    *("#NULL!", "#VALUE!", "(null)", "\\N", "n.a.", "N.A.", "k.A.", "k. A."),
)
#: The same, unless all values of the column are as short (NA may be Namibia).
SHORT_MISSING_WORDS = ("NA", "na", "-", "--")
#: Numbers that stand for a missing value, if they stand apart from all others.
MISSING_NUMBERS = tuple(
    {-1, -7, -8, -9}
    | {sign * int(str(digit) * length) for sign in (-1, 1) for digit in (7, 8, 9) for length in range(2, 7)}
    | {97, 98, 997, 998, 9997, 9998}
)
#: Dates that no one means; the last day of all times is what databases write for "no end".
MISSING_DATES = ("0001-01-01", "1111-11-11", "9999-01-01", "9999-09-09", "9999-12-31")

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
        hid hhid hhnr idhh hh_id household_id ori_hid household_n* hh_n* famil*_id dwelling_id
        haushalt*_id haushalt*_n* menage_id foyer_id hogar_id idhog* huishouden*_id hushall*_id nucleo_id
        """,
    ),
    (Role.HOUSEHOLD, 0.6, "hh household haushalt menage hogar"),
    (
        Role.KEY,
        0.7,
        """
        hospital*_id clinic_id ward_id school_id region*_id county_id district_id state_id city_id country_id
        municip*_id store_id branch_id
        """,
    ),
    (
        Role.PERSON,
        0.9,
        """
        *patient*_id patientid person*_id personid subject*_id subjectid participant*_id client*_id member*_id
        individual_id customer*_id student_id employee_id pid persnr pat_id pers_id
        respondent*_id respondentid panelist_id pupil_id worker_id resident_id person_n* patient_n* subject_n*
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
        pesel hetu codice_fiscale aadhaar steuer_id sozialversicherung* social_security* insurance_n*
        national_id* achternaam voornaam cognome nazwisko imie efternamn fornamn sobrenome
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
        edu educ* bildung* school* degree *occu* beruf* profession job *workclass employ* industr*
        *countr* land pays pais region* state county kreis province district municip* gemeinde city town ort
        village zip* post*code postal* plz urb* rural geo* lat lon latitude longitude
        hospital* admi* discharg* los height tenure
        """,
    ),
)

#: Names of texts in which anything may stand.
FREE_TEXT = """
    note notes comment* remark* memo* free_text freetext narrative* description* report_text
    bemerkung* anmerkung* kommentar* notiz* freitext commentaire* remarque* observacion* comentario*
    opmerking*
"""
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

#: Last words of the names of columns that number something.
NUMBERS = "no$ nr$ num$ number$ numero$ *nummer$ taxno$"

#: Names of columns that hold the number of a person, of whatever country.
PERSON_NUMBERS = """
    national_id* nat_id* identity_n* id_n* idn* tax_id* tin ssn nin social_security* insurance_n* citizen_n*
    fiscal* passport* person*_n* personn* account* card*
"""

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

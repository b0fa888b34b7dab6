"""Which language a text is in: each is told from all others that share its script."""

# ruff: noqa: RUF001 - characters of other scripts are the matter here

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.scoring.language import LANGUAGES, is_language

SENTENCES = {
    "en": "The sun was shining and we went to the park with our dog.",
    "es": "El sol brillaba y fuimos al parque con nuestro perro.",
    "pt": "O sol estava a brilhar e fomos ao parque com o nosso cão.",
    "fr": "Le soleil brillait et nous sommes allés au parc avec notre chien.",
    "de": "Die Sonne schien und wir gingen mit unserem Hund in den Park.",
    "it": "Il sole splendeva e siamo andati al parco con il nostro cane.",
    "pl": "Słońce świeciło i poszliśmy do parku z naszym psem.",
    "fi": "Aurinko paistoi ja me menimme puistoon koiramme kanssa, ja se oli hyvä.",
    "vi": "Mặt trời chiếu sáng và chúng tôi đã đi đến công viên với con chó.",
    "sw": "Jua lilikuwa linawaka na tulienda kwenye bustani na mbwa wetu.",
    "ru": "Солнце светило, и мы пошли в парк с нашей собакой.",
    "uk": "Сонце світило, і ми пішли до парку з нашою собакою.",
    "bg": "Слънцето грееше и ние отидохме в парка с нашето куче.",
    "ar": "كانت الشمس مشرقة وذهبنا إلى الحديقة مع كلبنا.",
    "fa": "خورشید می درخشید و ما با سگمان به پارک رفتیم.",
    "ur": "سورج چمک رہا تھا اور ہم اپنے کتے کے ساتھ پارک گئے۔",
    "hi": "सूरज चमक रहा था और हम अपने कुत्ते के साथ पार्क में गए।",
    "mr": "सूर्य चमकत होता आणि आम्ही बागेत गेलो आहे.",
    "ne": "घाम चम्किरहेको थियो र हामी पार्कमा गयौं।",
    "bn": "সূর্য জ্বলছিল এবং আমরা পার্কে গেলাম।",
    "pa": "ਸੂਰਜ ਚਮਕ ਰਿਹਾ ਸੀ।",
    "gu": "સૂર્ય ચમકતો હતો.",
    "ta": "சூரியன் பிரகாசித்தது.",
    "te": "సూర్యుడు ప్రకాశిస్తున్నాడు.",
    "kn": "ಸೂರ್ಯ ಹೊಳೆಯುತ್ತಿತ್ತು.",
    "ml": "സൂര്യൻ പ്രകാശിച്ചു.",
    "th": "ดวงอาทิตย์ส่องแสง",
    "he": "השמש זרחה והלכנו לפארק.",
    "ko": "해가 빛나고 있었고 우리는 공원에 갔다.",
    "ja": "太陽が輝いていて、公園に行きました。",
    "zh": "太阳照耀着,我们去了公园。",
}


def test_every_language_has_a_sentence() -> None:
    assert set(SENTENCES) == LANGUAGES


@pytest.mark.parametrize("code", sorted(SENTENCES))
def test_a_sentence_is_in_its_own_language_alone(code: str) -> None:
    assert [one for one in sorted(LANGUAGES) if is_language(SENTENCES[code], one)] == [code]


def test_a_short_text_is_not_held_against_a_language_of_its_script() -> None:
    assert is_language("STOP", "en")
    assert is_language("STOP", "de")
    assert not is_language("STOP", "ru")


@pytest.mark.parametrize("text", ["", "...", "123", "Δεν ξέρω"])
def test_a_text_without_letters_or_in_an_unknown_script_is_in_none(text: str) -> None:
    assert not any(is_language(text, code) for code in LANGUAGES)


def test_half_of_another_script_is_not_the_language() -> None:
    assert not is_language("Das ist gut солнце светило и мы", "de")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="not known"):
        is_language("Hej", "da")


@given(st.text(max_size=60), st.sampled_from(sorted(LANGUAGES)))
def test_any_text_is_read(text: str, code: str) -> None:
    assert is_language(text, code) in {True, False}

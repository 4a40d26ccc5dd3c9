"""Which encoding a file is in that is neither UTF-8 nor marked, also where it has only a word or two to tell by."""

from __future__ import annotations

import pytest

from toolgate.core.errors import InvalidArgs, NotText
from toolgate.workspace.text import Text, decode

FRENCH = "L'été on mange des crêpes à la plage, près de la forêt.\n"
GERMAN = "größe = 'Übermut'\n"
POLISH = "Wszystkie źródła są dostępne, a użytkownik może wybrać właściwą odpowiedź.\n"
CZECH = "Všichni lidé se rodí svobodní a sobě rovní co do důstojnosti a práv.\n"
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах.\n"
GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια\n"
KOREAN = "# 안녕하세요 세계\n모든 인간은 태어날 때부터 자유로우며\n"
TURKISH = "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Şimdi görüşürüz.\n"


@pytest.mark.parametrize(
    ("text", "written_in", "told"),
    [
        (FRENCH, "cp1252", "iso8859-1"),
        (FRENCH * 40, "cp1252", "iso8859-1"),
        ("café naïve\n", "cp1252", "iso8859-1"),
        (GERMAN, "cp1252", "iso8859-1"),
        ("price = '£5'\n", "latin-1", "iso8859-1"),
        ("price = '€5'\n", "cp1252", "cp1252"),
        ("© 2020 Müller “quoted” — dash\n", "cp1252", "cp1252"),
        ("temp = 20  # °C\n", "latin-1", "iso8859-1"),
        ("El niño comió mañana. ¿Qué? ¡Sí!\n", "latin-1", "iso8859-1"),
        (POLISH, "cp1250", "cp1250"),
        (CZECH, "cp1250", "cp1250"),
        (TURKISH, "cp1254", "cp1254"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8-r", "koi8-r"),
        ("# Привет, мир\n", "cp1251", "cp1251"),
        (GREEK, "cp1253", "cp1253"),
        ("# テストする\n", "cp932", "cp932"),
        ("x = 'あ'\n", "cp932", "cp932"),
        ("# 这是一个测试\nprint('你好世界')\n", "gb18030", "gb18030"),
        ("日本語\n", "euc-jp", "euc_jp"),
        (KOREAN, "cp949", "cp949"),
    ],
)
def test_text_of_many_languages_is_read_as_it_was_written(text: str, written_in: str, told: str) -> None:
    found = decode(text.encode(written_in), "f")
    assert (found.text, found.encoding) == (text, told)
    assert found.encode(text, "f") == text.encode(written_in)


def test_what_the_encoding_cannot_hold_is_refused_by_name() -> None:
    now = decode(FRENCH.encode("cp1252"), "f")
    with pytest.raises(InvalidArgs, match="is iso8859-1, which cannot hold 'Щ'"):
        now.extend(FRENCH.encode("cp1252"), "Щ", "f")


def test_a_change_after_which_the_file_would_be_read_otherwise_is_refused() -> None:
    raw = "price = '€5'\n".encode("cp1252")
    taken = Text("price = 'Ђ5'\n", "cp1251")  # by somebody who guessed wrong
    with pytest.raises(InvalidArgs, match="would be read as something else"):
        taken.extend(raw, "name = 'Щ'\n", "f")


def test_what_is_added_to_a_guessed_encoding_is_read_back_with_the_rest() -> None:
    raw = FRENCH.encode("cp1252")
    after = decode(raw, "f").extend(raw, "Forêt\n", "f")
    assert decode(after, "f").text == FRENCH + "Forêt\n"


@pytest.mark.parametrize("raw", [b"\xff\xfe\xfd\x81\x8d", b"a\x81\x8d\x8f\x90\x9d"])
def test_bytes_that_fit_nothing_are_no_text(raw: bytes) -> None:
    with pytest.raises(NotText):
        decode(raw, "f")

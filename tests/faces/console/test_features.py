"""Pages and routes that a feature brings: in the navigation, drawn as any other page, behind the same door."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import TemplateNotFound

from faces.http.serving import house
from toolgate import feature
from toolgate.core.errors import SetupError
from toolgate.faces.console import templates
from toolgate.faces.console.console import _templates_of
from toolgate.faces.http.app import api
from toolgate.feature import Feature, Page

PAGES = """
from fastapi import APIRouter, Request
from starlette.responses import Response
from toolgate.kits.web.answers import Json
from toolgate.kits.web.auth import Human, anyone
from toolgate.kits.web.pages import Pages

router = APIRouter()
open_to_all = APIRouter()


@router.get("/diary")
async def entries() -> Json:
    return Json({"entries": ["dear"]})


def routes():
    return [(router, anyone)]


def unguarded():
    return [(open_to_all, lambda: None)]


def add(router: APIRouter, console: Pages) -> None:
    @router.get("/diary/today")
    async def today(request: Request, who: Human) -> Response:
        return await console.page(request, who, "diary/today.html", text="<b>dear</b> \\u202e")
"""
TODAY = '{% extends "base.html" %}{% block title %}Today{% endblock %}{% block main %}<h1>Today</h1>{{ text }}{% endblock %}'
DIARY = Feature(
    name="diary", summary="", routes="diary.pages:routes", pages=(Page("/diary", "Diary", "diary.pages:add"),)
)


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    package = tmp_path / "installed/diary"
    (package / "templates").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "pages.py").write_text(PAGES)
    (package / "templates/today.html").write_text(TODAY)
    (package / "templates/base.html").write_text("not the frame")
    (package.parent / "plain.py").write_text(PAGES)
    (package.parent / "single.py").write_text(f"{PAGES}\nTEMPLATES = {{'today.html': {TODAY!r}}}\n")
    (package.parent / "templates").mkdir()
    (package.parent / "templates/today.html").write_text("anybody may write this")
    monkeypatch.syspath_prepend(package.parent)
    yield
    for name in ("diary", "diary.pages", "plain", "single"):
        sys.modules.pop(name, None)


async def test_a_features_page_and_route_are_there_and_guarded(
    tmp_path: Path, diary: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feature, "installed", lambda: (DIARY,))
    root = tmp_path / "project"
    root.mkdir()
    async with house(root) as here:
        page = here.site.base + "/diary/today"
        async with here.browser() as client:
            text = (await client.get(page, headers={"Accept": "text/html"})).text
            assert f'<a href="{here.site.base}/diary" aria-current="page">' in text
            assert "&lt;b&gt;dear&lt;/b&gt; ⟨U+202E⟩" in text
        async with here.client() as nobody, here.client("helper") as helper:
            assert (await nobody.get("/api/v1/diary")).status_code == 401
            assert (await nobody.get(page)).status_code == 401
            assert (await helper.get(page)).status_code == 403
            assert (await helper.get("/api/v1/diary")).json() == {"entries": ["dear"]}


def test_templates_come_from_a_package_or_from_the_module_itself_and_from_nowhere_else(diary: None) -> None:
    def loaded(module: str) -> str:
        page = Page("/diary", "Diary", f"{module}:add")
        environment = templates.environment(_templates_of([(DIARY, page)]))
        assert environment.loader is not None
        return environment.loader.get_source(environment, "diary/today.html")[0]

    assert loaded("diary.pages") == loaded("single") == TODAY
    with pytest.raises(TemplateNotFound):
        loaded("plain")


def test_a_router_that_does_not_say_who_may_use_it_is_refused(diary: None) -> None:
    with pytest.raises(SetupError, match="does not say who may use it"):
        api([DIARY._replace(routes="diary.pages:unguarded")])

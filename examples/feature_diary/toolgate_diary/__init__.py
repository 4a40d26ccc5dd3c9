"""Diary: a persona writes down what it learned today and reads it again tomorrow. This value says all about it."""

from toolgate.feature import Command, Family, Feature, Page

FEATURE = Feature(
    name="diary",
    summary="A diary for each persona",
    sections={"diary": "toolgate_diary.config:DiarySpec"},
    families=(Family("toolgate_diary.tools:tools", ("diary.read", "diary.write")),),
    opens="toolgate_diary.book:open_book",
    commands=(Command("diary", "toolgate_diary.commands:diary", "Read what the personas wrote."),),
    pages=(Page("/diary", "Diary", "toolgate_diary.pages:add"),),
    checks="toolgate_diary.checks:CHECKS",
    tables="toolgate_diary.book:MIGRATIONS",
    docs="README.md",
)

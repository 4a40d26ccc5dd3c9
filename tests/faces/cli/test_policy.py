"""The policy from the command line: is it right, do its examples hold, why, and what if."""

from __future__ import annotations

import json
from pathlib import Path

from .driving import Cli

WRONG = """\
version: 1
personas:
  builder: {phase: contribute}
policy:
  rules:
    - {persona: bulder, tools: ["fs.*"], decision: deny}
"""


def test_check_says_that_it_is_right_and_which_globs_match_no_tool(project: Path, cli: Cli) -> None:
    assert cli("policy", "check").out == "toolgate.yaml is right: 3 personas, 3 rules\n"
    text = (project / "toolgate.yaml").read_text()
    (project / "toolgate.yaml").write_text(text.replace("tools: [more.post]", "tools: [mroe.post]"))
    done = cli("policy", "check")
    assert (done.code, "rule elsewhere: `mroe.post` matches no tool" in done.err) == (0, True)
    assert cli("policy", "check", "--json").data["idle_globs"] == [["rule elsewhere", "mroe.post"]]


def test_check_names_file_line_and_fix(project: Path, cli: Cli) -> None:
    (project / "toolgate.yaml").write_text(WRONG)
    done = cli("policy", "check")
    assert done.code == 2
    assert "toolgate.yaml:6: " in done.err
    assert "fix: did you mean `builder`?" in done.err


def test_check_names_everything_that_is_wrong_at_once(project: Path, cli: Cli) -> None:
    (project / "toolgate.yaml").write_text(WRONG + "cache: {bytes: lots}\n")
    done = cli("policy", "check")
    assert (done.code, done.out, done.err.count("error setup: ")) == (2, "", 2)
    for part in ("toolgate.yaml:6: ", "did you mean `builder`?", "toolgate.yaml:7: ", "write a whole number"):
        assert part in done.err, part
    told = cli("policy", "check", "--json").json
    assert (told["ok"], told["error"]["fix"]) == (False, "did you mean `builder`?")
    assert [(one["line"], one["fix"]) for one in told["data"]["problems"]] == [
        (6, "did you mean `builder`?"),
        (7, "write a whole number"),
    ]
    assert {one["file"] for one in told["data"]["problems"]} == {str(project / "toolgate.yaml")}


def test_the_examples_beside_the_rules_are_run(project: Path, cli: Cli) -> None:
    assert cli("policy", "test").out.splitlines()[-1] == "1 passed, 0 failed"
    text = (project / "toolgate.yaml").read_text()
    (project / "toolgate.yaml").write_text(text.replace("expect: deny", "expect: allow"))
    done = cli("policy", "test")
    assert (done.code, done.out.splitlines()[-1]) == (1, "0 passed, 1 failed")
    assert cli("policy", "test", "--json").json["ok"] is False


def test_explain_shows_every_line_and_which_decided(cli: Cli) -> None:
    done = cli("policy", "explain", "notes.append", '{"path": "deploy/a", "text": "x"}')
    assert done.out.splitlines()[2] == "DENY by rule:no-deploy (step 3): people deploy"
    told = cli("policy", "explain", "notes.append", "--arg", "path=a.md", "--arg", "text=x", "--json").data
    assert (told["decision"], told["rule"]) == ("ask", "rule:reviewed")
    assert [line["line"] for line in told["lines"] if line["decided"]] == ["rule reviewed (ask)"]
    assert cli("policy", "explain", "no.such").code == 2


def test_the_fix_of_a_refusal_explains_that_very_call(cli: Cli) -> None:
    made = ("call", "notes.append", '{"path": "deploy/a", "text": "x"}', "--persona", "builder", "--json")
    refused = cli(*made).json
    command = refused["error"]["fix"].split("`")[1].split()
    assert command == ["toolgate", "policy", "explain", refused["meta"]["call_id"]]
    for ident in (command[-1], str(refused["meta"]["event_id"])):
        done = cli("policy", "explain", ident)
        assert "DENY by rule:no-deploy (step 3): people deploy" in done.out
    done = cli("policy", "explain", "c_0192f3")
    assert (done.code, "is recorded" in done.err, "fix: " in done.err) == (1, True, True)


def test_replay_shows_what_another_policy_would_decide_otherwise(project: Path, cli: Cli) -> None:
    cli("call", "notes.read", "--arg", "path=hours.md", "--persona", "reader")
    cli("call", "notes.append", "--arg", "path=hours.md", "--arg", "text=x", "--no-wait")
    text = (project / "toolgate.yaml").read_text()
    (project / "new.yaml").write_text(
        text.replace("reader: {phase: observe}", "reader: {phase: observe, deny: [notes.read]}")
    )
    done = cli("policy", "replay", "new.yaml", "--json")
    assert done.data["totals"] == {"same": 1, "stricter": 1, "looser": 0, "unknown": 0}
    (difference,) = done.data["differences"]
    assert (difference["tool"], difference["was"], difference["now"]) == ("notes.read", "allow", "deny")
    assert "stricter #" in cli("policy", "replay", "new.yaml").out
    assert cli("policy", "replay", "new.yaml", "--since", "2999-01-01", "--json").data["totals"]["same"] == 0
    assert cli("policy", "replay", "new.yaml", "--since", "soon").code == 2
    (project / "new.yaml").write_text(WRONG)
    broken = cli("policy", "replay", "new.yaml")
    assert (broken.code, "new.yaml:6" in broken.err) == (2, True)


def test_replaying_the_policy_in_force_finds_no_difference_whatever_refused_the_calls(
    project: Path, cli: Cli
) -> None:
    """A pause, a plugin that no tool writes, a Change that names more files than the call: nothing of it is looser."""
    (project / "src" / "deep").mkdir(parents=True)
    (project / "src" / "deep" / "a.py").write_text("1\n")
    key = "A" + "KIA" + "Q4TTJ7W2XZ6PLM5N"
    for tool, args in (
        ("fs.write", {"path": "more.py", "content": "x"}),
        ("fs.write", {"path": "src/b.py", "content": "x"}),
        ("fs.write", {"path": "src/key.py", "content": f"key = '{key}'"}),
        ("fs.move", {"path": "src", "new_path": "lib"}),
        ("fs.delete", {"path": "src"}),
        ("notes.append", {"path": "deploy/a", "text": "x"}),
        ("exec.python", {"code": "print(1)", "network": ["example.com"]}),
        ("fs.read", {"path": ".env"}),
    ):
        cli("call", tool, json.dumps(args), "--no-wait")
    cli("call", "more.echo", "--arg", "text=hello")
    cli("pause")
    cli("call", "more.echo", "--arg", "text=stopped")
    cli("resume")
    found = cli("policy", "replay", "toolgate.yaml", "--json").data
    assert found["differences"] == []
    assert (found["totals"]["same"], found["left_out"]) == (9, 1), found
    assert "left out: 1 refused by something else than policy" in cli("policy", "replay", "toolgate.yaml").out


def test_an_argument_that_may_be_left_out_says_what_it_takes_and_means(cli: Cli) -> None:
    described = " ".join(cli("tools", "exec.python").out.split())
    for part in ("secrets array Secrets it may use, by name.", "project none or read or overlay none What"):
        assert part in described, part
    assert " any " not in described


def test_tools_show_what_policy_says_of_them(cli: Cli) -> None:
    told = {row["name"]: row["decision"] for row in cli("tools", "--json").data}
    assert (told["notes.read"], told["notes.append"]) == ("allow", "ask")
    hidden = {row["name"] for row in cli("tools", "--persona", "reader", "--json").data}
    assert "notes.append" not in hidden
    assert " more that policy refuses to this persona" in cli("tools", "--persona", "reader").err
    shown = cli("tools", "--persona", "reader", "--all")
    assert "notes.append" in shown.out
    assert " more " not in shown.err
    described = cli("tools", "notes.append").out
    for part in ("Add a line to a note.", "it is reviewed", "path", "(needed)", "can be undone  yes"):
        assert part in described, part
    assert cli("tools", "notes.appendix").code == 2


def test_the_schema_describes_the_configuration(cli: Cli) -> None:
    assert cli("schema", "--json").data["properties"]["personas"]["type"] == "object"
    assert '"$schema"' in cli("schema").out

"""`hooks:` and `notify:`: who is told of ends and failures, where that may stand, and that no secret stands there."""

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import HeaderError

TOKEN = "hf_" + "aB3dE6gH9jK2mN5p"


@pytest.fixture
def context(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "project").mkdir()
    return header.HeaderContext(tmp_path / "project", {"JUPYTER_CONFIG_DIR": str(tmp_path / "config")})


def hooks_of(context, cell=""):
    parsed = header.parse_cell("", cell, context).header
    return parsed.to_spec(bundle=Bundle(), name="x").hooks


def test_the_users_hooks_are_there_for_all_experiments_and_a_cell_adds_or_chooses(context, tmp_path):
    (tmp_path / "config" / "autotrain.yaml").write_text(
        "hooks:\n  slack: {url: '${SLACK_URL}', headers: {X-Api-Key: '${KEY}'}, events: [ended, trial_failed]}\n"
    )
    slack = Hook("slack", "${SLACK_URL}", {"X-Api-Key": "${KEY}"}, (), ("ended", "trial_failed"))
    assert hooks_of(context) == (slack,)
    assert slack.variables == ("SLACK_URL", "KEY")
    bell = "hooks: {bell: {command: sh -c 'echo done', events: failed, timeout: 1m}}\n"
    own = Hook("bell", "", {}, ("sh", "-c", "echo done"), ("failed",), 60.0)
    assert hooks_of(context, f"{bell}---\n") == (slack, own)
    assert hooks_of(context, f"{bell}notify: bell\n---\n") == (own,)
    assert hooks_of(context, "notify: []\n---\n") == ()
    with pytest.raises(HeaderError, match="no hook 'slak'; did you mean 'slack'"):
        hooks_of(context, "notify: [slak]\n---\n")


def test_a_service_is_told_by_its_address_with_secrets_from_the_environment(context):
    told = hooks_of(
        context, "hooks: {team: {service: 'matrix://${LOGIN}@a.example/#room'}, here: {service: 'gnome://'}}\n---\n"
    )
    assert [hook.service for hook in told] == ["matrix://${LOGIN}@a.example/#room", "gnome://"]
    assert told[0].variables == ("LOGIN",)


def test_a_projects_file_brings_no_hooks(context, tmp_path):
    (tmp_path / "project" / "autotrain.yaml").write_text("hooks: {x: {command: [sh, evil.sh]}}\n")
    with pytest.raises(HeaderError, match=r"project's autotrain\.yaml`?; expected hooks in your own"):
        hooks_of(context)


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        ("{}", "expected one of `url:`, `command:` and `service:`"),
        ("{url: 'https://a.example', command: [x]}", "expected one of `url:`, `command:` and `service:`"),
        ("{service: '${A}', command: [x]}", "expected one of `url:`, `command:` and `service:`"),
        ("{service: 'slack'}", "expected an address of Apprise"),
        ("{service: '${A}', headers: {A: b}}", "expected no headers: a service gets none"),
        ("{url: 'ftp://a.example'}", "expected an address such as"),
        ("{url: 'file:///etc/passwd'}", "expected an address such as"),
        ("{url: 'https://a.example', events: [endet]}", "did you mean 'ended'"),
        ("{url: 'https://a.example', timeout: 1h}", "expected at most 300 s"),
        ("{url: 'https://a.example', headers: {Authorization: abc}}", "expected its value from the environment"),
        ("{url: 'https://a.example', headers: {X-Api-Key: abc}}", "expected its value from the environment"),
        ("{url: 'https://a.example', headers: {A: \"b\\r\\nHost: c\"}}", "expected one line"),
        ("{command: [x], headers: {A: b}}", "expected no headers"),
        ("{command: []}", "expected a program"),
        ("{uri: 'https://a.example'}", "did you mean 'url'"),
    ],
)
def test_a_faulty_hook_is_told_with_what_was_expected(context, hook, told):
    with pytest.raises(HeaderError, match=told.replace("(", r"\(")):
        hooks_of(context, f"hooks: {{x: {hook}}}\n---\n")


@pytest.mark.parametrize(
    "hook",
    [
        f"{{url: 'https://ada:{TOKEN}@a.example'}}",
        f"{{url: 'https://a.example', headers: {{Authorization: 'Bearer {TOKEN}'}}}}",
        f"{{url: 'https://a.example', headers: {{X-Other: '{TOKEN}'}}}}",
        f"{{command: [tell, '{TOKEN}']}}",
        f"{{service: 'slack://{TOKEN}'}}",
        f"{{service: 'mailto://${{LOGIN}}@a.example/{TOKEN}'}}",
        "{service: 'discord://4174216298/" + TOKEN + "'}",
    ],
)
def test_a_secret_that_is_written_out_is_refused_and_not_shown(context, hook):
    with pytest.raises(HeaderError) as caught:
        hooks_of(context, f"hooks: {{x: {hook}}}\n---\n")
    assert TOKEN not in str(caught.value)

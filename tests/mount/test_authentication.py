"""Host keys, user keys, passwords: who is let in, what is said, and that secrets stay secret."""

import os
import shutil
import socket
import subprocess
import threading

import pytest

from mount.expect import make, run
from mount.mounted import marked_processes
from mount.test_command_line import (AUTH, HOST_KEY, PROTOCOL, UNREACHABLE, USAGE, cli)  # noqa: F401
from servers import accounts
from servers.openssh import HOST, PASSPHRASE, SFTP_SERVER, Sshd
from servers.process import free_port

BOTH = pytest.mark.parametrize("transport", ["ssh2", "ssh"])
ALL_THREE = pytest.mark.parametrize("transport", ["auto", "ssh2", "ssh"])


@pytest.fixture
def reach(cli, shared_sshd, remote, base):
    """reach(transport, key=..., known_hosts=..., lines=...): the words that mount by this."""
    def words(transport, *options, server=shared_sshd, **kwargs):
        config = server.write_client_config(f"config-{base.name}", **kwargs)
        return [f"{HOST}:{remote}", cli.point, "-F", config, "-o", f"transport={transport}",
                *[word for option in options for word in ("-o", option)]]
    return words


def hosts_file(shared_sshd, base):
    return shared_sshd.directory / f"config-{base.name}.known_hosts"


# ---- host keys ----

@ALL_THREE
def test_a_known_host(cli, reach, transport):
    cli.mounts(*reach(transport))


@ALL_THREE
def test_an_unknown_host_is_refused_when_nobody_can_be_asked(cli, reach, transport):
    cli.refuses(HOST_KEY, "StrictHostKeyChecking=accept-new", *reach(transport, known_hosts=""))


@BOTH
def test_accept_new_remembers_the_key(cli, reach, transport, shared_sshd, base):
    cli.mounts(*reach(transport, "StrictHostKeyChecking=accept-new", known_hosts=""))
    assert f"[127.0.0.1]:{shared_sshd.port} " in hosts_file(shared_sshd, base).read_text()
    cli.unmount()
    known = hosts_file(shared_sshd, base).read_text()
    cli.mounts(*reach(transport, known_hosts=known))


@pytest.mark.parametrize("checking", ["yes", "accept-new", "ask"])
@ALL_THREE
def test_a_changed_host_key_is_loud_and_names_file_and_line(cli, reach, transport, checking,
                                                            shared_sshd, keys, base):
    other = (keys / "user_stranger.pub").read_text()
    known = f"# comment\nother.example {other}[127.0.0.1]:{shared_sshd.port} {other}"
    result = cli.refuses(HOST_KEY, "(?i)changed", *reach(
        transport, f"StrictHostKeyChecking={checking}", known_hosts=known))
    assert str(hosts_file(shared_sshd, base)) in result.stderr
    assert "line 3" in result.stderr or "known_hosts:3" in result.stderr
    assert "ssh-keygen" in result.stderr
    assert hosts_file(shared_sshd, base).read_text() == known


@BOTH
def test_a_revoked_host_key(cli, reach, transport, shared_sshd):
    revoked = "".join(f"@revoked {line}\n"
                      for line in shared_sshd.known_hosts_lines().splitlines())
    cli.refuses(HOST_KEY, "(?i)revoked", *reach(transport, known_hosts=revoked))


@BOTH
def test_hashed_names_are_known(cli, reach, transport, shared_sshd, base):
    hosts = base / "hashed"
    hosts.write_text(shared_sshd.known_hosts_lines())
    run("ssh-keygen", "-q", "-H", "-f", hosts)
    assert "127.0.0.1" not in hosts.read_text()
    cli.mounts(*reach(transport, known_hosts=hosts.read_text()))


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
@BOTH
def test_the_kind_of_host_key_that_is_known_is_asked_for(cli, reach, transport, kind,
                                                        shared_sshd):
    if (transport, kind) == ("ssh2", "rsa"):
        pytest.skip("libssh2 before 1.11 has no RSA with SHA-2")
    cli.mounts(*reach(transport, known_hosts=shared_sshd.known_hosts_lines(kinds=[kind])))


@BOTH
def test_host_key_alias(cli, reach, transport, shared_sshd):
    known = "".join("alias.example " + line.split(" ", 1)[1] + "\n"
                    for line in shared_sshd.known_hosts_lines().splitlines())
    cli.mounts(*reach(transport, known_hosts=known, lines=["HostKeyAlias alias.example"]))


# ---- user keys ----

@pytest.mark.parametrize("key", ["ed25519", "ecdsa", "rsa"])
@ALL_THREE
def test_a_key(cli, reach, transport, key):
    if (transport, key) == ("ssh2", "rsa"):
        pytest.skip("libssh2 before 1.11 has no RSA with SHA-2")
    cli.mounts(*reach(transport, key=key))


@ALL_THREE
def test_a_key_that_is_not_accepted(cli, reach, transport):
    result = cli.refuses(AUTH, "(?i)denied|accepts none", *reach(transport, key="stranger"))
    assert result.seconds < 10 * cli.factor


@ALL_THREE
def test_a_key_file_that_is_missing(cli, reach, transport):
    cli.refuses(AUTH, ".", *reach(transport, key="none"))


@pytest.fixture
def askpass(base):
    """askpass(answer): the environment of a program that answers and counts the questions."""
    def environment(answer):
        (base / "answer").write_text(answer + "\n")
        script = make(base / "askpass", f"#!/bin/sh\necho \"$1\" >> {base}/questions\n"
                                        f"cat {base}/answer\n".encode(), 0o755)
        return {"SSH_ASKPASS": str(script), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":none"}
    return environment


def questions(base):
    return (base / "questions").read_text().splitlines() if (base / "questions").exists() else []


@BOTH
def test_an_encrypted_key_is_asked_for_once(cli, reach, transport, askpass, base):
    cli.mounts(*reach(transport, "max_conns=4", key="encrypted"), env=askpass(PASSPHRASE))
    # Work on several connections, so that later ones are opened too.
    threads = [threading.Thread(target=make, args=(cli.point / f"f{n}", bytes(3_000_000)))
               for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(questions(base)) == 1


@BOTH
def test_a_wrong_passphrase_ends(cli, reach, transport, askpass):
    result = cli.refuses(AUTH, ".", *reach(transport, key="encrypted"), env=askpass("wrong"))
    assert result.seconds < 15 * cli.factor


@BOTH
def test_an_encrypted_key_with_nobody_to_ask(cli, reach, transport):
    cli.refuses(AUTH, ".", *reach(transport, key="encrypted"))


@BOTH
def test_the_agent(cli, reach, transport, keys, base):
    agent = base / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", agent], stdout=subprocess.DEVNULL)
    try:
        from servers.process import wait_until
        wait_until(agent.exists, 5)
        run("ssh-add", "-q", keys / "user_ed25519",
            env={**os.environ, "SSH_AUTH_SOCK": str(agent)})
        cli.mounts(*reach(transport, key=None, lines=[f"IdentityAgent {agent}",
                                                      "IdentitiesOnly no"]))
    finally:
        process.terminate()
        process.wait()


# ---- passwords ----

@pytest.fixture
def account(base):
    if accounts.missing():
        pytest.skip(accounts.missing())
    with accounts.Account(base / "account") as one:
        yield one


@pytest.fixture
def password_server(base, keys, account):
    with Sshd(base / "sshd-password", keys, user=account.name,
              options=["PasswordAuthentication yes", "PubkeyAuthentication no"]) as server:
        yield server


@BOTH
def test_password_stdin(password_server, cli, reach, transport):
    cli.mounts(*reach(transport, "password_stdin", server=password_server),
               stdin=accounts.PASSWORD + "\n")
    for pid in marked_processes(cli.environment.mark):
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                assert accounts.PASSWORD.encode() not in file.read()


@BOTH
def test_a_wrong_password_ends_quickly(password_server, cli, reach, transport):
    result = cli.refuses(AUTH, "(?i)password|denied|accept", *reach(
        transport, "password_stdin", server=password_server), stdin="wrong\n")
    assert result.seconds < 15 * cli.factor
    assert "wrong" not in result.stderr.replace("wrong password", "")


@BOTH
def test_no_password_at_all(password_server, cli, reach, transport):
    cli.refuses(AUTH, ".", *reach(transport, server=password_server))
    cli.refuses(USAGE, "first line", *reach(transport, "password_stdin", server=password_server),
                stdin="")


@BOTH
def test_a_password_by_askpass_is_asked_for_once(password_server, cli, reach, transport, askpass,
                                                 base, account, remote):
    os.chmod(remote, 0o777)
    cli.mounts(*reach(transport, "max_conns=4", server=password_server),
               env=askpass(accounts.PASSWORD))
    threads = [threading.Thread(target=make, args=(cli.point / f"f{n}", bytes(3_000_000)))
               for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(questions(base)) == 1
    assert len(os.listdir(remote)) == 8


@BOTH
def test_a_password_is_not_in_the_log(password_server, cli, reach, transport, base):
    result = cli.mounts(*reach(transport, "password_stdin,sshfs_debug",
                               f"log_file={base}/messages", server=password_server),
                        stdin=accounts.PASSWORD + "\n")
    cli.unmount()
    assert accounts.PASSWORD not in result.stderr + (base / "messages").read_text()


# ---- what the configuration needs ----

def test_auto_says_what_it_chose_and_why(cli, reach, base):
    cli.mounts(*reach("auto", "sshfs_debug", f"log_file={base}/messages"))
    cli.unmount()
    text = (base / "messages").read_text()
    assert "transport ssh" in text


def test_auto_goes_through_a_jump_host(cli, shared_sshd, remote, base):
    config = shared_sshd.write_client_config(f"config-{base.name}")
    inner = config.read_text().replace(f"Host {HOST}", "Host inner") + f"    ProxyJump {HOST}\n"
    config.write_text(config.read_text() + inner)
    cli.mounts(f"inner:{remote}", cli.point, "-F", config)
    make(cli.point / "file", b"x")
    assert os.listdir(remote) == ["file"]


def test_auto_runs_a_proxy_command(cli, reach, shared_sshd):
    if not shutil.which("nc"):
        pytest.skip("nc is not installed")
    cli.mounts(*reach("auto", lines=[f"ProxyCommand nc 127.0.0.1 {shared_sshd.port}"]))


def test_ssh2_refuses_what_it_cannot_honour(cli, reach):
    cli.refuses(1, "ProxyCommand", *reach("ssh2", lines=["ProxyCommand true"]))


@BOTH
def test_ciphers_are_honoured(cli, reach, transport, base, keys):
    with Sshd(base / "sshd-cipher", keys, options=["Ciphers aes256-ctr"]) as server:
        cli.mounts(*reach(transport, "Ciphers=aes256-ctr", server=server))
        cli.unmount()
        if transport == "ssh":
            cli.refuses(PROTOCOL, "(?i)cipher|negotiate", *reach(
                transport, "Ciphers=aes128-ctr", server=server))


@BOTH
def test_a_server_whose_shell_talks_is_diagnosed(cli, reach, transport, base, keys):
    with Sshd(base / "sshd-noise", keys,
              subsystem=f"echo Welcome to this server; exec {SFTP_SERVER}") as server:
        cli.refuses(PROTOCOL, "Welcome", *reach(transport, server=server))


@BOTH
def test_a_server_without_the_subsystem(cli, reach, transport, base, keys):
    with Sshd(base / "sshd-no-sftp", keys, subsystem="internal-sftp") as server:
        path = server.directory / "sshd_config"
        path.write_text(path.read_text().replace("Subsystem sftp", "Subsystem other"))
        server.restart()
        cli.refuses(PROTOCOL, "(?i)subsystem", *reach(transport, server=server))


@BOTH
def test_a_named_server_program(cli, reach, transport, base, keys):
    cli.mounts(*reach(transport, f"sftp_server={SFTP_SERVER}"))
    make(cli.point / "file", b"x")


# ---- servers that do not answer ----

def serve(greeting):
    """A TCP server that says this and then nothing; returns its socket."""
    listener = socket.create_server(("127.0.0.1", 0))
    kept = []

    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            kept.append(connection)
            if greeting:
                connection.sendall(greeting)
    threading.Thread(target=accept, daemon=True).start()
    return listener


@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n",
                                      b"SSH-2.0-silence\r\n"], ids=["silent", "http", "half"])
@ALL_THREE
def test_a_server_that_does_not_go_on(cli, reach, transport, greeting):
    with serve(greeting) as listener:
        result = cli.run(*reach(transport, "connect_timeout=2",
                                port=listener.getsockname()[1]))
        assert result.returncode in (UNREACHABLE, PROTOCOL), result.stderr
        assert result.stderr.startswith("moorfs: ")
        assert result.seconds < 12 * cli.factor


@ALL_THREE
def test_a_closed_port(cli, reach, transport):
    cli.refuses(UNREACHABLE, "refused", *reach(transport, port=free_port()))


@ALL_THREE
def test_a_remote_directory_that_is_missing(cli, reach, transport, remote):
    words = reach(transport)
    words[0] += "/none"
    cli.refuses(6, "none.*No such file", *words)


@ALL_THREE
def test_a_remote_file(cli, reach, transport, remote):
    make(remote / "file")
    words = reach(transport)
    words[0] += "/file"
    cli.refuses(6, "not a directory", *words)

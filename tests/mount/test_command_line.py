"""The command line: what it accepts, how it refuses, and that a refusal leaves nothing behind."""

import os
import re
import signal
import subprocess
import time

import pytest

from mount.expect import make
from mount.mounted import MARK, describe, is_mounted, marked_processes, suspicious_lines
from servers.openssh import HOST, SFTP_SERVER
from servers.process import free_port, wait_until

USAGE, MOUNT, UNREACHABLE, HOST_KEY, AUTH, REMOTE_PATH, PROTOCOL = range(1, 8)


def is_moorfs(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "moorfs"
    except OSError:
        return False


class Cli:
    """Runs the program as a user would, in the background; unmounts what it mounted."""

    def __init__(self, program, point, remote, environment, factor):
        self.program, self.point, self.remote = program, point, remote
        self.environment, self.factor = environment, factor

    def run(self, *words, stdin=subprocess.DEVNULL, limit=30, env=None):
        give = {"input": stdin} if isinstance(stdin, str) else {"stdin": stdin}
        start = time.monotonic()
        result = subprocess.run(
            [str(word) for word in (self.program, *words)], capture_output=True, text=True,
            errors="replace", env={**self.environment.variables, **(env or {})},
            timeout=limit * self.factor, start_new_session=True, **give)
        result.seconds = time.monotonic() - start
        assert suspicious_lines(result.stdout + result.stderr) == []
        return result

    def mounts(self, *words, **kwargs):
        result = self.run(*words, **kwargs)
        assert result.returncode == 0, result.stderr
        assert is_mounted(self.point)
        return result

    def refuses(self, code, pattern, *words, **kwargs):
        result = self.run(*words, **kwargs)
        assert re.search(pattern, result.stderr), f"message: {result.stderr}"
        assert result.returncode == code, f"exit {result.returncode}: {result.stderr}"
        assert not is_mounted(self.point)
        assert wait_until(lambda: not marked_processes(self.environment.mark), 5)
        return result

    def unmount(self):
        assert wait_until(lambda: subprocess.run(["umount", self.point],
                                                 capture_output=True).returncode == 0, 3)
        assert wait_until(lambda: not marked_processes(self.environment.mark), 10 * self.factor)

    def pid(self):
        """The daemon's; a child on its way to another program looks like it for a moment."""
        found = []

        def one():
            found[:] = [pid for pid in marked_processes(self.environment.mark) if is_moorfs(pid)]
            return len(found) == 1
        assert wait_until(one, 5), [describe(pid) for pid in found]
        return found[0]


@pytest.fixture
def cli(request, program, fuse, point, remote, environment):
    runner = Cli(program, point, remote, environment,
                 request.config.getoption("--time-factor"))
    yield runner
    if is_mounted(point):
        runner.unmount()


@pytest.fixture
def config(shared_sshd):
    return shared_sshd.client_config


# ---- what the program says of itself ----

@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version(cli, flag):
    result = cli.run(flag)
    assert result.returncode == 0
    assert re.match(r"moorfs \d+\.\d+", result.stdout)
    assert result.stderr == ""


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_help(cli, flag):
    result = cli.run(flag)
    assert result.returncode == 0
    assert "usage" in result.stdout.lower()
    for name in ("max_conns", "transport", "timeout", "idmap", "-o", "allow_other"):
        assert name in result.stdout
    text = result.stdout.replace(str(cli.program), "moorfs")
    assert max(map(len, text.splitlines())) <= 100


# ---- mounting ----

def test_it_exits_when_the_mount_answers(cli, config, remote):
    (remote / "file").write_text("x")
    cli.mounts(f"{HOST}:{remote}", cli.point, "-F", config)
    assert os.listdir(cli.point) == ["file"]
    cli.unmount()


def test_the_daemon_is_a_daemon(cli, config, remote):
    """Its own session, no terminal, no descriptors of the caller, and not in its directory."""
    cli.mounts(f"{HOST}:{remote}", cli.point, "-F", config)
    pid = cli.pid()
    assert os.getsid(pid) != os.getsid(0)
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    for number in (0, 1, 2):
        assert os.readlink(f"/proc/{pid}/fd/{number}").startswith(("/dev/null", "pipe", "socket"))
    with open(f"/proc/{pid}/cmdline", "rb") as command:
        assert b"moorfs" in command.read()


def test_the_caller_does_not_wait_for_the_daemon_s_descriptors(cli, config, remote):
    """x=$(moorfs ...) returns: the daemon has let go of the pipe."""
    result = subprocess.run(
        ["sh", "-c", f'x=$("{cli.program}" {HOST}:{remote} {cli.point} -F {config} 2>&1); echo ok'],
        capture_output=True, text=True, timeout=20, env=cli.environment.variables)
    assert result.stdout == "ok\n"


def test_the_source_and_type_are_shown(cli, config, remote):
    cli.mounts(f"{HOST}:{remote}", cli.point, "-F", config)
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        line = next(line for line in mounts if f" {cli.point} " in line)
    assert line.startswith(f"{HOST}:{remote} {cli.point} fuse.moorfs ")
    assert "nosuid" in line and "nodev" in line


def test_fsname_and_subtype(cli, config, remote):
    cli.mounts(f"{HOST}:{remote}", cli.point, "-F", config, "-o", "fsname=name,subtype=kind")
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        assert any(line.startswith(f"name {cli.point} fuse.kind ") for line in mounts)


def test_a_url(cli, shared_sshd, keys, remote):
    (remote / "with space").mkdir()
    (remote / "with space" / "file").touch()
    cli.mounts(f"sftp://{shared_sshd.user}@127.0.0.1:{shared_sshd.port}{remote}/with%20space",
               cli.point, "-o", f"IdentityFile={keys}/user_ed25519",
               "-o", f"UserKnownHostsFile={shared_sshd.directory}/ssh_config.known_hosts")
    assert os.listdir(cli.point) == ["file"]


def test_ssh_options_as_sshfs_users_give_them(cli, shared_sshd, keys, remote):
    cli.mounts("-p", str(shared_sshd.port), "-C", "-o", "reconnect,cache=yes,dcache_timeout=20",
               f"{shared_sshd.user}@127.0.0.1:{remote}", cli.point,
               "-o", f"IdentityFile={keys}/user_ed25519,IdentitiesOnly=yes",
               "-o", f"UserKnownHostsFile={shared_sshd.directory}/ssh_config.known_hosts")
    make(cli.point / "file")
    assert os.listdir(remote) == ["file"]


def test_a_local_server_needs_no_ssh(cli, remote):
    cli.mounts(f":{remote}", cli.point, "-o", f"sftp_server={SFTP_SERVER}")
    make(cli.point / "file")
    assert os.listdir(remote) == ["file"]


def test_a_relative_mountpoint(cli, remote, base):
    os.chdir(base)
    cli.mounts(f":{remote}", cli.point.name, "-o", f"sftp_server={SFTP_SERVER}")
    os.chdir("/")
    assert os.path.ismount(cli.point)


def test_a_log_file_takes_the_messages(cli, remote, base):
    cli.mounts(f":{remote}", cli.point, "-o",
               f"sftp_server={SFTP_SERVER},log_file={base}/messages,sshfs_debug")
    make(cli.point / "file")
    cli.unmount()
    text = (base / "messages").read_text()
    assert "mounted" in text
    assert suspicious_lines(text) == []


def test_single_threaded(cli, remote):
    cli.mounts(f":{remote}", cli.point, "-s", "-o", f"sftp_server={SFTP_SERVER}")
    for number in range(20):
        make(cli.point / f"f{number}", b"x")
    assert len(os.listdir(remote)) == 20


def test_every_sshfs_option_is_accepted(cli, remote):
    names = ["reconnect", "sshfs_sync", "no_readahead", "sync_readdir", "workaround=none",
             "workaround=rename:nobuflimit", "idmap=none", "idmap=user", "nomap=ignore",
             "disable_hardlink", "transform_symlinks", "no_contain_symlinks",
             "follow_symlinks", "no_check_root", "dir_cache=yes", "dcache_timeout=5",
             "dcache_stat_timeout=5", "dcache_dir_timeout=5", "dcache_link_timeout=5",
             "dcache_max_size=1000", "dcache_clean_interval=10", "dcache_min_clean_interval=5",
             "direct_io", "max_conns=2", "max_read=65536", "max_write=65536", "cache=yes",
             "cache_timeout=5", "writeback_cache=no", "unreliable_append", "ssh_protocol=2",
             "allow_other", "default_permissions", "kernel_cache", "auto_cache",
             "entry_timeout=1", "attr_timeout=1", "negative_timeout=1", "noforget",
             "clone_fd", "max_threads=4", "max_idle_threads=2", "auto_unmount", "sshfs_debug"]
    for name in names:
        cli.mounts(f":{remote}", cli.point, "-o", f"sftp_server={SFTP_SERVER},{name}")
        make(cli.point / "file", name.encode())
        assert (remote / "file").read_bytes() == name.encode()
        cli.unmount()


def test_an_option_may_come_before_between_and_behind(cli, remote):
    cli.mounts("-o", "max_conns=2", f":{remote}", "-o", f"sftp_server={SFTP_SERVER}", cli.point,
               "-o", "ro")
    with pytest.raises(OSError):
        make(cli.point / "x")


# ---- bad input: thirty and more ways ----

SERVER = ["-o", f"sftp_server={SFTP_SERVER}"]
GOOD = [":{remote}", "{mnt}"]
BAD_INPUT = {
    "nothing": ([], USAGE, "moorfs --help|remote directory"),
    "no mountpoint": ([":{remote}", *SERVER], USAGE, "mountpoint"),
    "three arguments": ([*GOOD, "third", *SERVER], USAGE, "unexpected argument 'third'"),
    "no colon": (["hostonly", "{mnt}"], USAGE, "no ':' after the host"),
    "a local path": (["{remote}", "{mnt}"], USAGE, "no ':'|host"),
    "empty host": (["user@:dir", "{mnt}"], USAGE, "host name is empty"),
    "empty user": (["@host:dir", "{mnt}"], USAGE, "user name before '@' is empty"),
    "host with a dash": (["-oProxyCommand=touch /tmp/x:dir", "{mnt}"], USAGE, "."),
    "host with a dash behind --": (["--", "-oProxyCommand=x:dir", "{mnt}"], USAGE,
                                   "cannot start with '-'"),
    "user with a dash": (["--", "-l@host:dir", "{mnt}"], USAGE, "cannot start with '-'"),
    "host with a shell's characters": (["a;b:dir", "{mnt}"], USAGE, "cannot be part of a host"),
    "host with a line end": (["a\nb:dir", "{mnt}"], USAGE, "cannot be part of a host"),
    "host too long": (["h" * 300 + ":dir", "{mnt}"], USAGE, "longer than"),
    "bracket not closed": (["[::1:dir", "{mnt}"], USAGE, "']'"),
    "password in the URL": (["sftp://u:secret@host/dir", "{mnt}"], USAGE, "password_stdin"),
    "port in the URL": (["sftp://host:99999/dir", "{mnt}"], USAGE, "1 to 65535"),
    "bad percent": (["sftp://host/a%zz", "{mnt}"], USAGE, "%25"),
    "unknown scheme": (["gopher://host/dir", "{mnt}"], USAGE, "not a scheme"),
    "unknown flag": ([*GOOD, "-Q"], USAGE, "unknown flag '-Q'"),
    "unknown long flag": ([*GOOD, "--frobnicate"], USAGE, "unknown flag '--frobnicate'"),
    "flag without value": ([*GOOD, "-p"], USAGE, "'-p' needs a value"),
    "port is no number": ([*GOOD, "-p", "ssh"], USAGE, "port 'ssh' is not a number"),
    "port out of range": (["h:/d", "{mnt}", "-p", "70000"], USAGE, "1 to 65535"),
    "two ports": (["h:/d", "{mnt}", "-p", "1", "-o", "Port=2"], USAGE, "two different ports"),
    "two users": (["me@h:/d", "{mnt}", "-o", "User=you"], USAGE, "two different users"),
    "unknown option": ([*GOOD, *SERVER, "-o", "max_cons=3"], USAGE, "did you mean 'max_conns'"),
    "unknown option, far off": ([*GOOD, *SERVER, "-o", "xyzzyplugh"], USAGE, "unknown option"),
    "option without value": ([*GOOD, *SERVER, "-o", "max_conns"], USAGE, "needs a value"),
    "option with a value it has not": ([*GOOD, *SERVER, "-o", "allow_other=maybe"], USAGE,
                                       "allow_other"),
    "number too large": ([*GOOD, *SERVER, "-o", "max_conns=1000"], USAGE, "out of range"),
    "number too small": ([*GOOD, *SERVER, "-o", "max_conns=0"], USAGE, "out of range"),
    "number with letters": ([*GOOD, *SERVER, "-o", "max_conns=4x"], USAGE, "max_conns.*number"),
    "negative time": ([*GOOD, *SERVER, "-o", "timeout=-1"], USAGE, "timeout"),
    "unknown word": ([*GOOD, *SERVER, "-o", "idmap=maybe"], USAGE, "none, user or file"),
    "unknown transport": ([*GOOD, "-o", "transport=carrier-pigeon"], USAGE, "ssh2"),
    "bad octal": ([*GOOD, *SERVER, "-o", "umask=089"], USAGE, "octal"),
    "bad size": ([*GOOD, *SERVER, "-o", "cache_size=1X"], USAGE, "bytes, or a number with K"),
    "idmap=file without files": ([*GOOD, *SERVER, "-o", "idmap=file"], USAGE, "uidfile"),
    "uidfile is missing": ([*GOOD, *SERVER, "-o", "idmap=file,uidfile=/none/uids"], USAGE,
                           "/none/uids"),
    "options that exclude each other": ([*GOOD, *SERVER, "-o", "allow_other,allow_root"], USAGE,
                                        "exclude"),
    "remount": ([*GOOD, *SERVER, "-o", "remount"], USAGE, "unmount and mount again"),
    "ssh_config keyword without value": (["h:/d", "{mnt}", "-o", "ProxyJump"], USAGE,
                                         "ProxyJump"),
    "unknown workaround": ([*GOOD, *SERVER, "-o", "workaround=magic"], USAGE, "workaround"),
    "mountpoint missing": ([":{remote}", "{mnt}/none", *SERVER], MOUNT, "does not exist"),
    "mountpoint is a file": ([":{remote}", "{file}", *SERVER], MOUNT, "not a directory"),
    "mountpoint not empty": ([":{remote}", "{full}", *SERVER], MOUNT, "not empty.*nonempty"),
    "remote directory missing": ([":{remote}/none", "{mnt}", *SERVER], REMOTE_PATH,
                                 "none.*No such file"),
    "remote is a file": ([":{file}", "{mnt}", *SERVER], REMOTE_PATH, "not a directory"),
    "server program missing": ([*GOOD, "-o", "sftp_server=/none/sftp-server"], USAGE,
                               "/none/sftp-server"),
    "server speaks something else": ([*GOOD, "-o", "sftp_server=/bin/cat"], PROTOCOL, "."),
    "server says nothing and ends": ([*GOOD, "-o", "sftp_server=/bin/true"], PROTOCOL, "."),
    "log file cannot be made": ([*GOOD, *SERVER, "-o", "log_file=/none/log"], USAGE,
                                "/none/log"),
    "config file missing": (["h:/d", "{mnt}", "-F", "/none/config"], USAGE, "/none/config"),
    "host not found": (["no-such-host.invalid:/d", "{mnt}"], UNREACHABLE, "no-such-host"),
    "port closed": (["127.0.0.1:/d", "{mnt}", "-p", "{closed}"], UNREACHABLE, "refused"),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input(cli, base, remote, case):
    words, code, pattern = BAD_INPUT[case]
    (base / "file").touch()
    (base / "full").mkdir()
    (base / "full" / "x").touch()
    places = {"remote": remote, "mnt": cli.point, "file": base / "file", "full": base / "full",
              "closed": free_port()}
    result = cli.refuses(code, pattern, *[word.format(**places) if "{" in word else word
                                          for word in words])
    assert result.stderr.startswith("moorfs: ")
    assert result.stderr.count("\n") <= 3, "one clear message"
    assert "secret" not in result.stderr
    assert result.seconds < 10 * cli.factor


def test_there_are_more_than_thirty_bad_inputs():
    assert len(BAD_INPUT) > 30


# ---- the mountpoint ----

def test_nonempty_mounts_over_files(cli, remote):
    make(cli.point / "hidden")
    cli.mounts(f":{remote}", cli.point, *SERVER, "-o", "nonempty")
    assert os.listdir(cli.point) == []
    cli.unmount()
    assert os.listdir(cli.point) == ["hidden"]


def test_a_mounted_directory_is_refused(cli, remote):
    cli.mounts(f":{remote}", cli.point, *SERVER)
    result = cli.run(f":{remote}", cli.point, *SERVER)
    assert result.returncode == MOUNT
    assert "mounted" in result.stderr or "not empty" in result.stderr


def test_a_dead_mount_is_replaced(cli, remote):
    make(remote / "file")
    cli.mounts(f":{remote}", cli.point, *SERVER)
    os.kill(cli.pid(), signal.SIGKILL)
    wait_until(lambda: not marked_processes(cli.environment.mark), 5)
    with pytest.raises(OSError, match="endpoint"):
        os.listdir(cli.point)
    cli.mounts(f":{remote}", cli.point, *SERVER)
    assert os.listdir(cli.point) == ["file"]
    cli.unmount()
    assert not os.path.ismount(cli.point)


def test_auto_unmount_leaves_no_dead_mount(cli, remote):
    cli.mounts(f":{remote}", cli.point, *SERVER, "-o", "auto_unmount")
    os.kill(cli.pid(), signal.SIGKILL)
    assert wait_until(lambda: not is_mounted(cli.point), 10)


def test_kill_leaves_no_mount(cli, remote):
    for number in (signal.SIGTERM, signal.SIGINT):
        cli.mounts(f":{remote}", cli.point, *SERVER)
        os.kill(cli.pid(), number)
        assert wait_until(lambda: not marked_processes(cli.environment.mark), 10)
        assert not is_mounted(cli.point)


# ---- delay_connect ----

def test_delay_connect_mounts_before_the_server_is_up(sshd, cli, remote):
    make(remote / "file", b"x")
    sshd.stop()
    cli.mounts(f"{HOST}:{remote}", cli.point, "-F", sshd.client_config,
               "-o", "delay_connect,timeout=3")
    with pytest.raises(OSError):
        os.listdir(cli.point)
    sshd.start()

    def answers():
        try:
            return os.listdir(cli.point) == ["file"]
        except OSError:
            return False
    assert wait_until(answers, 20, 0.2)


def test_delay_connect_connects_at_the_first_access(sshd, cli, remote):
    make(remote / "file", b"x")
    cli.mounts(f"{HOST}:{remote}", cli.point, "-F", sshd.client_config, "-o", "delay_connect")
    assert (cli.point / "file").read_bytes() == b"x"


def test_the_mark_is_what_finds_our_processes(cli, remote):
    """Guards the guard: a running daemon is found by its environment."""
    cli.mounts(f":{remote}", cli.point, *SERVER)
    with open(f"/proc/{cli.pid()}/environ", "rb") as environ:
        assert f"{MARK}={cli.environment.mark}".encode() in environ.read()

"""OpenSSH's sshd with keys of its own, and the client configuration that reaches it."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from servers.process import Program, free_port

SFTP_SERVER = next((path for path in ("/usr/lib/openssh/sftp-server",
                                      "/usr/libexec/openssh/sftp-server",
                                      "/usr/lib/ssh/sftp-server")
                    if os.path.exists(path)), None)
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
HOST = "testhost"
PASSPHRASE = "sesame street"
HOST_KEY_KINDS = ("ed25519", "ecdsa", "rsa")
USER_KEYS = {"ed25519": ["-t", "ed25519"], "ecdsa": ["-t", "ecdsa"],
             "rsa": ["-t", "rsa", "-b", "2048"], "encrypted": ["-t", "ed25519"],
             "stranger": ["-t", "ed25519"]}


def missing():
    """Why no sshd can be run here, or None."""
    if SSHD is None or SFTP_SERVER is None:
        return "sshd or sftp-server is not installed (Debian: openssh-server)"
    return None


def make_key(path, *kind, passphrase=""):
    subprocess.run(["ssh-keygen", "-q", *kind, "-N", passphrase, "-C", "moorfs test", "-f",
                    str(path)], check=True, stdin=subprocess.DEVNULL)


def make_keys(directory):
    """Host and user keys of one test run (the RSA ones take a moment)."""
    directory = Path(directory)
    for kind in HOST_KEY_KINDS:
        make_key(directory / f"host_{kind}", "-t", kind, *(["-b", "2048"] if kind == "rsa" else []))
    for name, kind in USER_KEYS.items():
        make_key(directory / f"user_{name}", *kind,
                 passphrase=PASSPHRASE if name == "encrypted" else "")
    return directory


def authorized_keys(keys):
    return "".join((Path(keys) / f"user_{name}.pub").read_text()
                   for name in USER_KEYS if name != "stranger")


class Sshd(Program):
    """
    subsystem: what `Subsystem sftp` runs; options: further sshd_config lines;
    user: who logs in (the present user).
    """

    def __init__(self, directory, keys, subsystem="internal-sftp", options=(), user=None):
        self.directory, self.keys = Path(directory), Path(keys)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.user = user or pwd.getpwuid(os.getuid()).pw_name
        self.subsystem, self.options = subsystem, list(options)
        port = free_port()
        super().__init__([SSHD, "-D", "-e", "-f", self.directory / "sshd_config"],
                         self.directory / "sshd.log", port=port)
        self.write_server_config()
        self.write_client_config()

    def write_server_config(self):
        authorized = self.directory / "authorized_keys"
        authorized.write_text(authorized_keys(self.keys))
        authorized.chmod(0o644)
        lines = [f"Port {self.port}", "ListenAddress 127.0.0.1", "PidFile none",
                 f"AuthorizedKeysFile {authorized}", "StrictModes no", "UsePAM no", "UseDNS no",
                 "PermitRootLogin yes", "KbdInteractiveAuthentication no",
                 # A shell of a higher level does not read the user's own .bashrc.
                 "SetEnv SHLVL=1", f"Subsystem sftp {self.subsystem}", "LogLevel VERBOSE"]
        # sshd takes the first value of a keyword: ours come last.
        lines = self.options + lines + ["PasswordAuthentication no", "MaxStartups 100:30:200",
                                        "MaxSessions 20"]
        lines += [f"HostKey {self.keys}/host_{kind}" for kind in HOST_KEY_KINDS]
        (self.directory / "sshd_config").write_text("\n".join(lines) + "\n")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)

    def known_hosts_lines(self, port=None, kinds=HOST_KEY_KINDS):
        return "".join(f"[127.0.0.1]:{port or self.port} "
                       + (self.keys / f"host_{kind}.pub").read_text()
                       for kind in kinds)

    def write_client_config(self, name="ssh_config", port=None, key="ed25519", known_hosts=None,
                            lines=()):
        """A client configuration file; `lines` come first and so win. Returns its path."""
        hosts = self.directory / f"{name}.known_hosts"
        hosts.write_text(self.known_hosts_lines(port) if known_hosts is None else known_hosts)
        path = self.directory / name
        text = [f"Host {HOST}", *[f"    {line}" for line in lines], "    HostName 127.0.0.1",
                f"    Port {port or self.port}", f"    User {self.user}",
                "    IdentitiesOnly yes", "    IdentityAgent none",
                f"    UserKnownHostsFile {hosts}", "    GlobalKnownHostsFile /dev/null"]
        if key:
            text.append(f"    IdentityFile {self.keys}/user_{key}")
        path.write_text("\n".join(text) + "\n")
        path.chmod(0o600)
        return path

    @property
    def client_config(self):
        return self.directory / "ssh_config"

    def drop_sessions(self):
        """The clients' connections die; new ones are served."""
        self.kill_children()


def without(*requests):
    """A Subsystem line for a server that refuses these requests or extensions."""
    return f"{SFTP_SERVER} -P {','.join(requests)}"

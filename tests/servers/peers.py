"""SFTP servers that are not OpenSSH: rclone's and ProFTPD's."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from servers.openssh import HOST, authorized_keys
from servers.process import Program, free_port

PROFTPD_MODULE = next((str(path) for path in
                       Path("/usr/lib").glob("**/proftpd/mod_sftp.so")), None)
SBIN_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


class Peer(Program):
    """What mounts a peer: a client configuration like Sshd's, and the root it serves."""

    user = "tester"
    patience = 0  # seconds until what a client has closed is in the served directory
    in_place = True  # a file can be changed, and replaced by rename while it is fresh

    def client_options(self, host_key):
        line = f"[127.0.0.1]:{self.port} {host_key}"
        hosts = self.directory / "known_hosts"
        hosts.write_text(line)
        config = self.directory / "ssh_config"
        config.write_text("\n".join([
            f"Host {HOST}", "    HostName 127.0.0.1", f"    Port {self.port}",
            f"    User {self.user}", "    IdentitiesOnly yes", "    IdentityAgent none",
            f"    IdentityFile {self.keys}/user_ed25519",
            f"    UserKnownHostsFile {hosts}", "    GlobalKnownHostsFile /dev/null", ""]))
        config.chmod(0o600)
        return config


class RcloneServer(Peer):
    patience = 10
    # It opens with O_TRUNC for every write, and renaming over a file that it still uploads
    # brings the old one back.
    in_place = False

    @staticmethod
    def missing():
        return None if shutil.which("rclone") else "rclone is not installed"

    def __init__(self, directory, keys, served):
        self.directory, self.keys = Path(directory), Path(keys)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.remote_dir = "/"
        authorized = self.directory / "authorized_keys"
        authorized.write_text(authorized_keys(keys))
        port = free_port()
        super().__init__(
            ["rclone", "serve", "sftp", str(served), "--addr", f"127.0.0.1:{port}",
             "--key", f"{keys}/host_ed25519", "--authorized-keys", str(authorized),
             "--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "--dir-cache-time", "0s", "--config", "/dev/null",
             "--cache-dir", str(self.directory / "cache"), "-v"],
            self.directory / "rclone.log", port=port)
        self.client_config = self.client_options((self.keys / "host_ed25519.pub").read_text())


class ProftpdServer(Peer):
    @staticmethod
    def missing():
        if not shutil.which("proftpd", path=SBIN_PATH) or not PROFTPD_MODULE:
            return "ProFTPD's mod_sftp is not installed (Debian: proftpd-mod-crypto)"
        if not shutil.which("ftpasswd", path=SBIN_PATH):
            return "ftpasswd is not installed (Debian: proftpd-core)"
        return None

    def __init__(self, directory, keys, served):
        self.directory, self.keys = Path(directory), Path(keys)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.remote_dir = str(served)
        port = free_port()
        owner = pwd.getpwuid(os.getuid())
        users = self.directory / "passwd"
        subprocess.run(
            [shutil.which("ftpasswd", path=SBIN_PATH), "--passwd", "--stdin", f"--file={users}",
             f"--name={self.user}", "--uid=65534", "--gid=65534", f"--home={served}",
             "--shell=/bin/false"], input="secret\n", text=True, check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(f"ssh-keygen -e -f {keys}/user_ed25519.pub > {self.directory}/{self.user}",
                       shell=True, check=True)
        (self.directory / self.user).chmod(0o644)
        # ProFTPD wants its host keys private to it and in PEM form.
        host_key = self.directory / "host_rsa"
        shutil.copy(f"{keys}/host_ecdsa", host_key)
        host_key.chmod(0o600)
        config = self.directory / "proftpd.conf"
        config.write_text("\n".join([
            f"ModulePath {Path(PROFTPD_MODULE).parent}", "LoadModule mod_sftp.c",
            "ServerName moorfs-test", "ServerType standalone", "DefaultAddress 127.0.0.1",
            "SocketBindTight on", f"Port {port}", "UseIPv6 off", f"User {owner.pw_name}",
            "Group nogroup", "UseReverseDNS off", "WtmpLog off", "AuthOrder mod_auth_file.c",
            f"AuthUserFile {users}", "RequireValidShell off", f"PidFile {self.directory}/pid",
            f"ScoreboardFile {self.directory}/scoreboard", f"DelayTable {self.directory}/delay",
            f"SystemLog {self.directory}/system.log", "AllowOverwrite on",
            "AllowStoreRestart on", "Umask 022", "MaxInstances 60",
            "SFTPEngine on", f"SFTPLog {self.directory}/sftp.log", f"SFTPHostKey {host_key}",
            f"SFTPAuthorizedUserKeys file:{self.directory}/{self.user}",
            "SFTPAuthMethods publickey password", ""]))
        super().__init__([shutil.which("proftpd", path=SBIN_PATH), "-n", "-q", "-c", config],
                         self.directory / "proftpd.log", port=port)
        self.client_config = self.client_options((self.keys / "host_ecdsa.pub").read_text())

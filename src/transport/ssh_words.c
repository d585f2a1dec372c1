#include "transport/ssh_words.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

/* What OpenSSH says, the weightiest first: the first entry that occurs in the text counts. */
static const struct rule {
	const char *needle;
	enum failure_kind kind;
	const char *hint;
} rules[] = {
    {"REVOKED HOST KEY DETECTED", FAILURE_HOST_KEY,
     "the server's host key is marked as revoked: do not connect before its owner has "
     "explained it"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED", FAILURE_HOST_KEY,
     "the host key has changed: somebody may be intercepting the connection, or the server was "
     "reinstalled; check the new fingerprint with its owner, then remove the old key with "
     "ssh-keygen -R"},
    {"Host key verification failed", FAILURE_HOST_KEY,
     "connect once with ssh to check and accept the key, or give -o "
     "StrictHostKeyChecking=accept-new"},
    {"host key is known for", FAILURE_HOST_KEY,
     "connect once with ssh to check and accept the key, or give -o "
     "StrictHostKeyChecking=accept-new"},
    {"Bad configuration option", FAILURE_USAGE, "check the -o options and ssh_config"},
    {"Bad owner or permissions", FAILURE_USAGE, "ssh refuses that file: chmod go-w it"},
    {"Bad SSH2 cipher spec", FAILURE_USAGE, "check Ciphers"},
    {"Bad SSH2 mac spec", FAILURE_USAGE, "check MACs"},
    {"Bad SSH2 KexAlgorithms", FAILURE_USAGE, "check KexAlgorithms"},
    {"Can't open user config file", FAILURE_USAGE, "check -F"},
    {"command-line line 0:", FAILURE_USAGE, "check the -o options"},
    {"Too many authentication failures", FAILURE_AUTH,
     "too many keys were offered: name the right one with -o IdentityFile=... -o "
     "IdentitiesOnly=yes"},
    {"Permission denied (", FAILURE_AUTH, "check the user name, the keys and the password"},
    {"Authentication failed", FAILURE_AUTH, "check the user name, the keys and the password"},
    {"Unable to negotiate", FAILURE_PROTOCOL,
     "the server offers only algorithms that ssh no longer uses by default: allow one with -o "
     "HostKeyAlgorithms=+..., -o KexAlgorithms=+... or -o Ciphers=+..."},
    {"subsystem request failed", FAILURE_PROTOCOL,
     "the server has no SFTP subsystem: enable it there (dropbear needs OpenSSH's "
     "sftp-server), or "
     "name the server program with -o sftp_server=/path/of/sftp-server"},
    {"Cannot execute command-line and remote command", FAILURE_PROTOCOL,
     "RemoteCommand is set for this host: give -o RemoteCommand=none"},
    {"This account is currently not available", FAILURE_PROTOCOL,
     "the account has no login shell"},
    {"Could not resolve hostname", FAILURE_UNREACHABLE, "check the host name and the network"},
    {"Connection refused", FAILURE_UNREACHABLE, "is sshd running, and on this port?"},
    {"timed out", FAILURE_UNREACHABLE, "is the host up, and does a firewall let ssh through?"},
    {"Timeout, server", FAILURE_UNREACHABLE, "the connection was lost"},
    {"No route to host", FAILURE_UNREACHABLE, "check the network"},
    {"Network is unreachable", FAILURE_UNREACHABLE, "check the network"},
    {"Exceeded MaxStartups", FAILURE_TOO_MANY,
     "the server limits new connections (MaxStartups)"},
    {"Not allowed at this time", FAILURE_TOO_MANY,
     "the server refuses this address for a while (PerSourcePenalties)"},
    {"Session open refused by peer", FAILURE_TOO_MANY,
     "the shared connection allows no more sessions (MaxSessions)"},
    {"open failed: administratively prohibited", FAILURE_TOO_MANY,
     "the server allows no more sessions (MaxSessions)"},
    {"kex_exchange_identification", FAILURE_TOO_MANY,
     "the server hung up before it introduced itself: it limits connections (MaxStartups) or "
     "refuses this address"},
    {"banner exchange", FAILURE_UNREACHABLE, "what answers there is no SSH server"},
    {"command not found", FAILURE_PROTOCOL, "check -o sftp_server="},
    {"No such file or directory", FAILURE_PROTOCOL, "check -o sftp_server="},
};

/* The line of `text` in which `at` lies, without blanks around it, as printf's %.*s wants it.
 */
static const char *line_at(const char *text, const char *at, int *length)
{
	const char *start = at;
	while (start > text && start[-1] != '\n')
		start--;
	start += strspn(start, " \t");
	size_t size = strcspn(start, "\n");
	*length = (int)MIN(size, 400);
	return start;
}

static const char *last_line(const char *text, int *length)
{
	const char *newline = strrchr(text, '\n');
	return line_at(text, newline ? newline + 1 : text, length);
}

static void explain_silence(const char *host, int exit_status, struct failure *failure)
{
	if (exit_status < 0)
		failure_set(failure, FAILURE_UNREACHABLE, "%s: no answer in time", host);
	else if (exit_status > 256)
		failure_set(failure, FAILURE_UNREACHABLE, "%s: ssh was killed by signal %d",
		            host, exit_status - 256);
	else if (exit_status == 255)
		failure_set(failure, FAILURE_UNREACHABLE,
		            "%s: ssh failed without a word (try ssh by hand)", host);
	else
		failure_set(
		    failure, FAILURE_PROTOCOL,
		    "%s: the SFTP server ended at once with exit status %d (try sftp by hand)",
		    host, exit_status);
}

void ssh_words_explain(const char *host, const char *words, int exit_status,
                       struct failure *failure)
{
	int length;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		const char *at = strstr(words, rules[i].needle);
		if (!at)
			continue;
		/* The line that names file and line of the known key says more than the banner.
		 */
		const char *offending = strstr(words, "Offending ");
		if (rules[i].kind == FAILURE_HOST_KEY && offending)
			at = offending;
		const char *line = line_at(words, at, &length);
		failure_set(failure, rules[i].kind, "%s: %.*s: %s", host, length, line,
		            rules[i].hint);
		return;
	}
	if (!*words) {
		explain_silence(host, exit_status, failure);
		return;
	}
	const char *line = last_line(words, &length);
	bool by_ssh = exit_status == 255 || exit_status < 0;
	failure_set(failure, by_ssh ? FAILURE_UNREACHABLE : FAILURE_PROTOCOL, "%s: %.*s", host,
	            length, line);
}

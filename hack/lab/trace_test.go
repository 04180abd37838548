package lab

import "testing"

// TestParseTrace_ProgramsAndMessages: what strace prints of programs and netlink is found, and nothing else.
func TestParseTrace_ProgramsAndMessages(t *testing.T) {
	for line, want := range map[string][2]int{
		`123   execve("/usr/sbin/iptables-restore", ["iptables-restore"], 0xc0001 /* 9 vars */ <unfinished ...>`: {1, 0},
		`123   <... execve resumed>)             = 0`:                                                            {0, 0},
		`4567  sendto(3<NETLINK:[NETFILTER:241]>, [{nlmsg_len=20}], 20, 0, NULL, 0) = 20`:                        {0, 1},
		`4567  sendmsg(7<NETLINK:[193341]>, {msg_name={sa_family=AF_NETLINK}}, 0 <unfinished ...>`:               {0, 1},
		`4567  write(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, "NETLINK:", 8) = 8`:                                      {0, 0},
		`4567  --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=4567, si_uid=0} ---`:                        {0, 0},
		`4567  write(2</tmp/log>, "4567  sendto(3<NETLINK:", 8) = 8`:                                             {0, 0},
	} {
		got := parseTrace("1     +++ exited with 0 +++\n" + line + "\n") // as in the middle of a file
		if len(got.Programs) != want[0] || len(got.Messages) != want[1] {
			t.Errorf("%s\n%s, want %v", line, got, want)
		}
	}
}

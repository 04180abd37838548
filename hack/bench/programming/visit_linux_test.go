package programming

import "testing"

func TestTraced_FindsProgramsAndNetlinkMessagesAlone(t *testing.T) {
	for line, want := range map[string][2]int{
		`123   execve("/usr/sbin/iptables-restore", ["iptables-restore"], 0xc0001 /* 9 vars */ <unfinished ...>`: {1, 0},
		`123   <... execve resumed>)             = 0`:                                                            {0, 0},
		`4567  sendto(3<NETLINK:[NETFILTER:241]>, [{nlmsg_len=20}], 20, 0, NULL, 0) = 20`:                        {0, 1},
		`4567  sendmsg(7<NETLINK:[193341]>, {msg_name={sa_family=AF_NETLINK}}, 0 <unfinished ...>`:               {0, 1},
		`4567  write(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, "NETLINK:", 8) = 8`:                                      {0, 0},
		`4567  write(2</tmp/log>, "4567  sendto(3<NETLINK:", 8) = 8`:                                             {0, 0},
		`4567  --- SIGURG {si_signo=SIGURG, si_code=SI_TKILL, si_pid=4567, si_uid=0} ---`:                        {0, 0},
	} {
		// As in the middle of a file.
		text := []byte("1     +++ exited with 0 +++\n" + line + "\n")
		if got := [2]int{len(execsTraced.FindAll(text, -1)), len(messagesTraced.FindAll(text, -1))}; got != want {
			t.Errorf("%s\n%v programs and messages, want %v", line, got, want)
		}
	}
}

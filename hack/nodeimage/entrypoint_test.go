package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEntrypoint_TakesTheMachinesFlavour: that in which a kubelet has left its chain, or else the one with more rules.
func TestEntrypoint_TakesTheMachinesFlavour(t *testing.T) {
	const hint, rules = ":KUBE-IPTABLES-HINT - [0:0]", "-A INPUT -j ACCEPT\n-A OUTPUT -j ACCEPT"
	for name, test := range map[string]struct{ legacy, nft, fails, want string }{
		"a kubelet's chain":                    {nft: hint, want: "nft"},
		"a kubelet's chain beside other rules": {nft: hint, legacy: rules, want: "nft"},
		"more rules of legacy":                 {nft: "-A INPUT -j ACCEPT", legacy: rules, want: "legacy"},
		"more rules of nft":                    {nft: rules, legacy: "-A INPUT -j ACCEPT", want: "nft"},
		"nothing":                              {want: "nft"},
		"a kernel without nftables":            {fails: "nft", want: "legacy"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			for tool, prints := range map[string]string{
				"iptables-legacy-save": test.legacy, "ip6tables-legacy-save": "", "iptables-nft-save": test.nft, "ip6tables-nft-save": "",
			} {
				script := "#!/bin/sh\ncat <<'E'\n" + prints + "\nE\n"
				if test.fails != "" && strings.Contains(tool, test.fails) {
					script = "#!/bin/sh\nexit 4\n"
				}
				if err := os.WriteFile(filepath.Join(bin, tool), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "../../images/node/entrypoint.sh", "sh", "-c", `echo "${PATH}"`)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if want := "/usr/lib/iptables/" + test.want + ":"; !strings.HasPrefix(string(out), want) {
				t.Errorf("PATH is %s, want %s in front", out, want)
			}
		})
	}
}

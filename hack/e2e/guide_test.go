package e2e

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of the guide and of README.md anew")

// guide is the document with the chapter "Beside other software".
const guide = "../../images/node/README.md"

// byHand is in place of the test of what somebody has tried with real packets.
const byHand = ""

// tried is one line of the guide's table of what was tested beside other software.
type tried struct {
	software string
	version  string // or where it is pinned, as pin and sources tell
	test     string // the function, or byHand
	what     string
}

// besides are the lines. What the tests do in turn is taken from their own lists.
func besides() []tried {
	lines := []tried{
		{
			"flannel", "hack/flannel: github.com/flannel-io/flannel", "TestFlannel_PodsLeaveFromTheHolder",
			"its daemons with " + names(flannelWays(), func(w flannelWay) string { return w.backend }, " and ") + ", with " + names(flannelWays(), flannelWay.rules, " and ") +
				", steering by " + names(flannelWays(), flannelWay.steering, " and ") + "; 10 MB and fragments both ways; its daemons killed, its chains flushed, its jump in front",
		},
		{
			"MetalLB in layer 2 mode", "hack/metallb: go.universe.tf/metallb", "TestMetalLB_PodsLeaveFromTheAnnouncer",
			"controller and speakers: " + names(metalFaults, func(f metalFault) string { return f.name }, ", ") + "; connections go on",
		},
		{"MetalLB's controller alone", "hack/metallb: go.universe.tf/metallb", "TestMetalLB_PoolHoldsItsAddresses", "the holder's link cut, connections go on"},
		{
			"keepalived", "2.2.7", "TestKeepalived_PodsLeaveFromTheMaster",
			"the one with the addresses " + names(keepalivedFaults, func(f keepalivedFault) string { return f.name }, ", ") + ", and back",
		},
	}
	for _, f := range fixtures {
		lines = append(lines, tried{f.name, "testdata/neighbours/" + f.files[0], "TestNeighbours_Fixtures", "the rules " + f.what})
	}
	lines = append(lines, tried{"kindnet's DNS cache", "testdata/neighbours/kindnet-dnscache.nft", "TestNeighbours_Marks", "its rule is named: it matches bits of our mark"})
	for _, r := range runtimesTested() {
		lines = append(lines, tried{r.name, r.version, "TestRealNode_DeploymentsLeaveFromTheEgressIP", "CNI " + r.cni + " on kubelets: it calls " + strings.Join(r.calls, ", ")})
	}
	return append(lines,
		tried{"Multus, the thin plugin", "hack/multus: gopkg.in/k8snetworkplumbingwg/multus-cni.v4", "TestCNI_Multus", "CNI 1.0 and 1.1: ADD, CHECK, a DEL that another plugin fails"},
		tried{"Calico", "felix 3.34-dev", byHand, "VXLAN, with iptables and nftables; failover of the pool"},
		tried{"kube-router", "2.11", byHand, "routing and network policies, without its service proxy"},
		tried{"kube-vip, by ARP", "not noted", byHand, "killed; its egress"},
	)
}

// names are those of a list, each once.
func names[T any](list []T, name func(T) string, separator string) string {
	var all []string
	for _, item := range list {
		if !slices.Contains(all, name(item)) {
			all = append(all, name(item))
		}
	}
	return strings.Join(all, separator)
}

// runtimeTested is a container runtime, with the commands by which it calls the plugin.
type runtimeTested struct {
	name, version, cni string
	calls              []string
}

// runtimesTested are those of realWays, with the versions of CNI.
func runtimesTested() (list []runtimeTested) {
	names := map[string]runtimeTested{
		"":           {name: "containerd", version: "1.6 of Debian 12"},
		"containerd": {name: "containerd", version: "hack/containerd: github.com/containerd/containerd/v2"},
		"crio":       {name: "CRI-O", version: "hack/crio: github.com/cri-o/cri-o"},
	}
	for _, way := range realWays {
		r := names[way.runtime]
		r.cni, _ = strings.CutSuffix(cmp.Or(way.cni, "1.0.0"), ".0")
		r.calls = slices.DeleteFunc(slices.Clone(way.calls), func(call string) bool { return call == "VERSION" }) // it asks what it can do
		if !slices.ContainsFunc(list, func(other runtimeTested) bool { return other.version == r.version && other.cni == r.cni }) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b runtimeTested) int {
		return strings.Compare(strings.ToLower(a.name)+a.version+a.cni, strings.ToLower(b.name)+b.version+b.cni)
	})
	return list
}

// use is one line of the guide's table of what software uses of a node.
type use struct{ software, marks, chains, ports string }

var uses = []use{
	{"this program", "`0x7e` (`egress-snat-mark-mask`)", "nftables: `openshift-egress…`, source NAT at -199 or -197; iptables: `OPENSHIFT-…`; routing tables 7701 to 7763",
		"UDP 4798 and 4799, UDP and TCP 7947; device `steer0`"},
	{"kube-proxy", "`0xc000`", "iptables: `KUBE-…`, source NAT at 100; nftables: `kube-proxy`, source NAT at 100", "TCP 10256 and 10249"},
	{"flannel", "none; it leaves kube-proxy's `0x4000` alone", "iptables: `FLANNEL-POSTRTG` and `FLANNEL-FWD`; nftables: `flannel-ipv4` and `flannel-ipv6`; source NAT at 100",
		"UDP 8472; devices `flannel.1` and `flannel-v6.1`"},
	{"kindnet", "`0x6e`, of ours, for its DNS cache", "nftables: `kindnet-ipmasq`, source NAT at 90; `kindnet-fastpath`, `kindnet-dnscache`", "TCP 19080"},
	{"Calico", "`0xffff0000`", "iptables: `cali-…`, source NAT at 100; nftables: `calico`, source NAT at 100 or 110", "UDP 4789; devices `vxlan.calico` and `vxlan-v6.calico`"},
	{"kube-router", "`0x30000`", "iptables: `KUBE-ROUTER-…`, `KUBE-NWPLCY-…`, `KUBE-POD-FW-…`, source NAT at 100", "TCP 179"},
	{"MetalLB", "none", "none", "UDP and TCP 7946; TCP 179 in BGP mode"},
	{"kube-vip's egress", "`0x40`, one of ours", "iptables or nftables, source NAT", "none"},
	{"Cilium", "`0xffff0fff`, of which `0x0f00` are its own and the others an identity", "iptables: `CILIUM_…`", "UDP 8472; device `cilium_vxlan`"},
	{"AWS VPC CNI plugin", "`0x80`", "iptables: `AWS-SNAT-CHAIN-…`, source NAT at 100", "none"},
	{"CNI plugin portmap", "`0x2000`", "iptables: `CNI-HOSTPORT-…` and `CNI-DN-…`, source NAT at 100", "none"},
	{"Tailscale", "`0xff0000`", "iptables: `ts-…`, source NAT at 100", "UDP 41641; device `tailscale0`"},
}

// TestGuide_DefaultMark: the bits that the guide says are clear of the marks of other software are those that are.
func TestGuide_DefaultMark(t *testing.T) {
	clearOf := []string{"kube-proxy", "CNI plugin portmap", "Calico", "kube-router", "AWS VPC CNI plugin", "Tailscale"}
	used := uint64(0)
	for _, u := range uses {
		if !slices.Contains(clearOf, u.software) {
			continue
		}
		for _, mark := range regexp.MustCompile("`0x([0-9a-f]+)`").FindAllStringSubmatch(u.marks, -1) {
			bits, err := strconv.ParseUint(mark[1], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			used |= bits
		}
	}
	var free []string
	for shift := range 32 - 5 {
		if mask := uint64(0x3f) << shift; mask&used == 0 {
			free = append(free, fmt.Sprintf("%#x", mask))
		}
	}
	if diff := gocmp.Diff([]string{"0x3f", "0x7e"}, free); diff != "" {
		t.Errorf("six bits that are clear of %v (-want, as the guide has it, +got):\n%s", clearOf, diff)
	}
}

// TestGuide_TablesStand: no row of a table in these documents was wrapped or joined with another one.
func TestGuide_TablesStand(t *testing.T) {
	dashes := regexp.MustCompile(`^\|(-+\|)+$`)
	for _, document := range []string{guide, "../../README.md", "../../patches/README.md", "README.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "```"):
				code = !code
			case code:
			case strings.Contains(line, "|---") && !dashes.MatchString(line), strings.HasPrefix(line, "|") && !strings.HasSuffix(line, "|"):
				t.Errorf("%s:%d: this is no row of a table: %s", document, i+1, line)
			}
		}
	}
}

// TestGuide_BesideOtherSoftware: the tables of the guide are those of this file, with the versions that are tested. With -update they are
// written anew.
func TestGuide_BesideOtherSoftware(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	result := string(text)
	tests := testsIn(t, "*_test.go")
	rows := []string{"| software | version | what was tested | by |", "|---|---|---|---|"}
	for _, b := range besides() {
		by := "hand"
		if b.test != byHand {
			by = "`" + b.test + "`"
			if tests[b.test] == nil {
				t.Errorf("there is no test %s", b.test)
			}
		}
		version, err := versionOf(b.version)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", b.software, version, b.what, by))
	}
	result = withTable(t, result, rows)
	rows = []string{"| software | bits of the mark | chains, tables | ports, devices |", "|---|---|---|---|"}
	for _, u := range uses {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", u.software, u.marks, u.chains, u.ports))
	}
	result = withTable(t, result, rows)
	rows = []string{"  | runtime | CNI | what it calls |", "  |---|---|---|"}
	for _, r := range runtimesTested() {
		version, err := versionOf(r.version)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("  | %s %s | %s | %s |", r.name, version, r.cni, strings.Join(r.calls, ", ")))
	}
	result = withTable(t, result, rows)
	if *update {
		err = os.WriteFile(guide, []byte(result), 0o644)
	} else if diff := gocmp.Diff(string(text), result); diff != "" {
		err = fmt.Errorf("%s is not up to date (-want +got); run 'go test ./hack/e2e -run TestGuide -update':\n%s", guide, diff)
	}
	if err != nil {
		t.Error(err)
	}
}

// versionOf is the version that a module pins, or the commits that a fixture's first lines name, or else the text itself.
func versionOf(text string) (string, error) {
	if module, path, pinned := strings.Cut(text, ": "); pinned {
		pins, err := os.ReadFile("../../" + module + "/go.mod")
		found := regexp.MustCompile(`\t` + regexp.QuoteMeta(path) + ` v(\S+)`).FindSubmatch(pins)
		if found == nil {
			return "", errors.Join(fmt.Errorf("%s does not pin %s", module, path), err)
		}
		return string(found[1]), nil
	}
	if !strings.HasPrefix(text, "testdata/") {
		return text, nil
	}
	rules, err := os.ReadFile(text)
	var commits []string
	for line := range strings.Lines(string(rules)) {
		for _, found := range regexp.MustCompile(`commit ([0-9a-f]{8})`).FindAllStringSubmatch(line, -1) {
			commits = append(commits, found[1])
		}
	}
	if len(commits) == 0 {
		return "", errors.Join(fmt.Errorf("%s does not say from which commits it was read", text), err)
	}
	return map[bool]string{false: "commit ", true: "commits "}[len(commits) > 1] + strings.Join(commits, ", "), nil
}

// withTable is a document with these rows in place of the table that has the same header.
func withTable(t *testing.T, document string, rows []string) string {
	t.Helper()
	before, after, found := strings.Cut(document, rows[0]+"\n")
	if !found {
		t.Fatalf("%s has no table %s", guide, rows[0])
	}
	for strings.HasPrefix(strings.TrimLeft(after, " "), "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	return before + strings.Join(rows, "\n") + "\n" + after
}

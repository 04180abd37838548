package packages

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
)

// packagesVariable is the environment variable that names the folder of the packages.
const packagesVariable = "PACKAGES"

// made returns the folder of the packages that 'make packages' has made, and skips the test if there are none or a tool is missing.
func made(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(packagesVariable)
	if dir == "" {
		t.Skipf("the environment variable %s does not name the folder of the packages; run 'make test-packages' as root", packagesVariable)
	}
	if os.Geteuid() != 0 {
		lab.Lacks(t, "needs root")
	}
	for tool, debian := range map[string]string{"dpkg-deb": "dpkg", "rpm": "rpm", "rpm2archive": "rpm2cpio", "unshare": "util-linux"} {
		if _, err := exec.LookPath(tool); err != nil {
			lab.Lacks(t, "a tool is missing: apt-get install %s", debian)
		}
	}
	return dir
}

// the returns the one package in a folder whose name ends so.
func the(t *testing.T, dir, ending string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	if err != nil || len(files) != 1 {
		t.Fatalf("in %s %d files end with %s, want 1: %v", dir, len(files), ending, err)
	}
	return files[0]
}

// output runs a command and returns what it prints.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &errs)
	}
	return string(out)
}

// command runs a program to its end and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	return output(t, exec.CommandContext(t.Context(), name, args...))
}

// sums are the checksums of the files in a folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		result[entry.Name()] = fmt.Sprintf("%x", sha256.Sum256(content))
	}
	return result
}

// copyTree copies the work tree, without what was built.
func copyTree(t *testing.T, to string) {
	t.Helper()
	command(t, "sh", "-c", `cd ../.. && git ls-files -z --cached --others --exclude-standard | tar --create --null --files-from=- | tar --extract --directory="$1"`, "sh", to)
}

// TestPackages_MadeTwiceAreTheSame: in another folder, with another umask and time zone, and later.
func TestPackages_MadeTwiceAreTheSame(t *testing.T) {
	dir := made(t)
	other := t.TempDir()
	copyTree(t, other)
	again := exec.CommandContext(t.Context(), "sh", "-c", `umask 077 && exec make "$@"`, "make", "-C", other, "packages",
		"VERSION="+os.Getenv("VERSION"), "COMMIT="+os.Getenv("COMMIT"), "SOURCE_DATE_EPOCH="+os.Getenv("SOURCE_DATE_EPOCH"))
	again.Env = append(os.Environ(), "TZ=Asia/Kathmandu", "LC_ALL=C.UTF-8", "HOSTNAME=elsewhere")
	output(t, again)
	want := sums(t, dir)
	if len(want) != 4 {
		t.Errorf("%d packages, want a deb and an rpm for two architectures: %v", len(want), want)
	}
	if diff := cmp.Diff(want, sums(t, filepath.Join(other, "_output/packages"))); diff != "" {
		t.Errorf("made twice (-first +second):\n%s", diff)
	}
}

// entry is a file, a folder or a link of a package.
type entry struct {
	tar.Header
	content []byte
}

// String has what installing it leaves; a link has no mode of its own.
func (e entry) String() string {
	if e.Typeflag == tar.TypeSymlink {
		return "-> " + e.Linkname
	}
	return fmt.Sprintf("%c %04o %d:%d", e.Typeflag, e.Mode&0o7777, e.Uid, e.Gid)
}

// contents are what a package has by path, folders that others own left out.
func contents(t *testing.T, file string) map[string]entry {
	t.Helper()
	unpack := exec.CommandContext(t.Context(), "dpkg-deb", "--fsys-tarfile", file)
	if strings.HasSuffix(file, ".rpm") {
		unpack = exec.CommandContext(t.Context(), "sh", "-c", `rpm2archive --nocompression - <"$1"`, "sh", file)
	}
	files := map[string]entry{}
	for r := tar.NewReader(strings.NewReader(output(t, unpack))); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		content, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		path := "/" + strings.Trim(strings.TrimPrefix(header.Name, "."), "/")
		if header.Typeflag != tar.TypeDir || strings.Contains(path, "origin") {
			files[path] = entry{*header, content}
		}
	}
}

const (
	regular    = "0 0644 0:0"
	executable = "0 0755 0:0"
	directory  = "5 0755 0:0"
)

// common is what both kinds of packages have, man pages apart.
var common = map[string]string{
	"/etc/origin":                                         directory,
	"/etc/origin/node":                                    directory,
	"/etc/origin/node/node-config.yaml":                   "0 0600 0:0",
	"/etc/sysconfig/origin-node":                          regular,
	"/opt/cni/bin/origin-node-cni":                        executable,
	"/usr/bin/kubectl-egress":                             "-> openshift",
	"/usr/bin/openshift":                                  executable,
	"/usr/lib/systemd/system/origin-node.service":         regular,
	"/usr/share/bash-completion/completions/openshift":    regular,
	"/usr/share/doc/origin-node/alerts.yaml":              regular,
	"/usr/share/doc/origin-node/dashboard.json":           regular,
	"/usr/share/doc/origin-node/rbac-cni.yaml":            regular,
	"/usr/share/doc/origin-node/admission-policy.yaml":    regular,
	"/usr/share/doc/origin-node/rbac-metallb.yaml":        regular,
	"/usr/share/doc/origin-node/rbac-tunnel.yaml":         regular,
	"/usr/share/doc/origin-node/rbac-viewer.yaml":         regular,
	"/usr/share/doc/origin-node/rbac.yaml":                regular,
	"/usr/share/fish/vendor_completions.d/openshift.fish": regular,
	"/usr/share/man/man1/kubectl-egress.1.gz":             "-> openshift-egress.1.gz",
}

// special is what only one kind has.
var special = map[string]map[string]string{
	".deb": {
		"/usr/lib/cni/origin-node-cni":                 "-> /opt/cni/bin/origin-node-cni",
		"/usr/share/doc/origin-node":                   directory,
		"/usr/share/doc/origin-node/changelog.gz":      regular,
		"/usr/share/doc/origin-node/copyright":         regular,
		"/usr/share/zsh/vendor-completions/_openshift": regular,
	},
	".rpm": {
		"/usr/libexec/cni/origin-node-cni":          "-> /opt/cni/bin/origin-node-cni",
		"/usr/share/licenses/origin-node/copyright": regular,
		"/usr/share/zsh/site-functions/_openshift":  regular,
	},
}

var manPage = regexp.MustCompile(`^/usr/share/man/man([15])/openshift[a-z-]*\.([15])\.gz$`)

// TestPackages_Files: with their modes and owners, programs of the right architecture, and times of the commit.
func TestPackages_Files(t *testing.T) {
	dir := made(t)
	for ending, machine := range map[string]elf.Machine{
		"_amd64.deb": elf.EM_X86_64, ".x86_64.rpm": elf.EM_X86_64, "_arm64.deb": elf.EM_AARCH64, ".aarch64.rpm": elf.EM_AARCH64,
	} {
		t.Run(strings.Trim(ending, "_."), func(t *testing.T) {
			files := contents(t, the(t, dir, ending))
			want := maps.Clone(common)
			maps.Copy(want, special[filepath.Ext(ending)])
			got := map[string]string{}
			pages := 0
			for path, e := range files {
				if match := manPage.FindStringSubmatch(path); match != nil && match[1] == match[2] && e.String() == regular {
					pages++
				} else {
					got[path] = e.String()
				}
				if epoch := fmt.Sprint(e.ModTime.Unix()); epoch != os.Getenv("SOURCE_DATE_EPOCH") {
					t.Errorf("%s is of %s, want %s", path, epoch, os.Getenv("SOURCE_DATE_EPOCH"))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if pages < 10 {
				t.Errorf("%d man pages, want one for each command", pages)
			}
			for _, program := range []string{"/usr/bin/openshift", "/opt/cni/bin/origin-node-cni"} {
				f, err := elf.NewFile(bytes.NewReader(files[program].content))
				if err != nil {
					t.Fatalf("%s: %v", program, err)
				}
				if f.Machine != machine {
					t.Errorf("%s is for %s, want %s", program, f.Machine, machine)
				}
				if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) > 0 {
					t.Errorf("%s needs %s, want a static program; %v", program, libraries, err)
				}
			}
		})
	}
}

// accepted are the errors and warnings of lintian, which checks packages of Debian itself, that ours are to have.
var accepted = []string{
	"copyright-file-contains-full-apache-2-license", // the rpm has the same file
	"dir-or-file-in-opt",                            // where container runtimes look for plugins
	"statically-linked-binary",                      // as Go builds without cgo
	"maintainer-script-calls-systemctl",             // the rpm has the same scripts
	"non-standard-file-perm",                        // the configuration may have secrets
}

// TestPackages_LintianAcceptsTheDeb: man pages without mistakes, the copyright in Debian's format, scripts, and more.
func TestPackages_LintianAcceptsTheDeb(t *testing.T) {
	file := the(t, made(t), "_amd64.deb")
	if _, err := exec.LookPath("lintian"); err != nil {
		lab.Lacks(t, "a tool is missing: apt-get install lintian")
	}
	command(t, "lintian", "--allow-root", "--fail-on=error,warning", "--suppress-tags="+strings.Join(accepted, ","), file)
}

// folder is a Debian that one test has for itself, without systemd running: what it writes goes to a folder of the test.
type folder struct {
	*testing.T
	debian, dir string
}

// newFolder makes one that has files at its top by these names.
func newFolder(t *testing.T, files map[string]string) *folder {
	t.Helper()
	f := &folder{T: t, debian: os.Getenv("DEBIAN"), dir: t.TempDir()}
	for _, name := range []string{"upper", "work", "root"} {
		if err := os.Mkdir(filepath.Join(f.dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range files {
		command(t, "cp", file, filepath.Join(f.dir, "upper", name))
	}
	return f
}

// outside runs a program of the machine that is told the folder's path in place of ROOT.
func (f *folder) outside(args ...string) string {
	f.Helper()
	return output(f.T, f.command(args...))
}

func (f *folder) command(args ...string) *exec.Cmd {
	const script = `mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$2/root" && mount -t proc proc "$2/root/proc" && shift 2 && exec "$@"`
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "ROOT", filepath.Join(f.dir, "root"))
	}
	return exec.CommandContext(f.Context(), "unshare", append([]string{"--mount", "sh", "-c", script, "sh", f.debian, f.dir}, args...)...)
}

// does runs a program in it.
func (f *folder) does(args ...string) string {
	f.Helper()
	return f.outside(inside(args)...)
}

// inside is a command outside that runs another one in the folder.
func inside(args []string) []string {
	return append([]string{"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "chroot", "ROOT"}, args...)
}

// refusals are what makes a removal fail: what is there then, what the removal says, and what is to be deleted.
var refusals = []struct{ there, says, deleted string }{
	{`mkdir -p /etc/cni/net.d && echo '{"plugins": [{"type": "origin-node-cni"}]}' >` + list, list + " names the CNI plugin", list},
	{`mkdir -p /run/crio /run/origin-node/attachments && cd /run/origin-node/attachments && touch /run/crio/crio.sock &&
		echo '{"containerID":"a","pod":{"namespace":"shop","name":"web-0","uid":"u0"},"labels":{"released":"no"}}' >a.json &&
		echo '{"containerID":"b","pod":{"namespace":"shop","name":"web-1","uid":"u1"},"released":"2026-11-22T10:00:00Z"}' >b.json &&
		echo '{"containerID":"c","pod":{"namespace":"shop","name":"web-2","uid":"u2"}}' >c.json && mkdir -p ../released && cp c.json ../released`,
		"CRI-O cannot end these pods without the CNI plugin origin-node-cni, with which they have started: shop/web-0. Drain", "/run/crio/crio.sock"},
}

// refuses fails the test unless a removal, in the folder, is refused while a network plugin's list names the CNI plugin, and while CRI-O has
// pods that have started with it.
func (f *folder) refuses(removal ...string) {
	f.Helper()
	f.refusesOutside(inside(removal)...)
}

func (f *folder) refusesOutside(removal ...string) {
	f.Helper()
	for _, refusal := range refusals {
		f.does("sh", "-c", refusal.there)
		out, err := f.command(removal...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "origin-node: not removed: "+refusal.says) {
			f.Errorf("%q: %v, %s; want the removal refused", removal, err, out)
		}
		f.does("rm", refusal.deleted)
	}
}

// has fails the test unless exactly those of these files exist that are wanted.
func (f *folder) has(when string, want map[string]bool) {
	f.Helper()
	got := map[string]bool{}
	for path := range want {
		got[path] = strings.TrimSpace(f.does("sh", "-c", `[ -e "$1" ] && echo yes || true`, "sh", path)) == "yes"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s, files that exist (-want +got):\n%s", when, diff)
	}
}

// says fails the test unless a file has a line.
func (f *folder) says(when, file, line string) {
	f.Helper()
	if lines := strings.Split(f.does("cat", file), "\n"); !slices.Contains(lines, line) {
		f.Errorf("%s, %s lacks %q:\n%s", when, file, line, strings.Join(lines, "\n"))
	}
}

// intact fails the test unless the deb is installed, and all of its files are there as it has them, but for these configuration files.
func intact(t *testing.T, does func(args ...string) string, changed ...string) {
	t.Helper()
	// A refused removal leaves it to be removed ("deinstall"), which says nothing about what is there.
	if got := strings.TrimSpace(does("dpkg-query", "--show", "--showformat=${db:Status-Eflag} ${db:Status-Status}", "origin-node")); got != "ok installed" {
		t.Errorf("the deb is %q, want \"ok installed\"", got)
	}
	var want, got []string
	for _, file := range changed {
		want = append(want, "??5?????? c "+file)
	}
	for line := range strings.Lines(does("dpkg", "--verify", "origin-node")) { // whose exit status is 0 all the same
		got = append(got, strings.TrimRight(line, "\n"))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files that are not as the deb has them (-want +got):\n%s", diff)
	}
}

const (
	config    = "/etc/origin/node/node-config.yaml"
	sysconfig = "/etc/sysconfig/origin-node"
	// changed is a line that the owner of a machine adds to the first one, renewed a line that both have in the second version.
	changed, renewed = "# changed by its owner", "# of the second version"
)

// second makes the packages of a second version, whose configuration files have another line, and returns their folder.
func second(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	copyTree(t, tree)
	command(t, "sh", "-c", `
		mkdir "$1/_output" && ln -s "$(realpath ../../_output/local)" "$1/_output/local" &&
		printf '\n%s\n' "$2" | tee -a "$1/images/node/node-config.yaml" >>"$1/images/node/origin-node.sysconfig" &&
		"$1/hack/build-packages.sh" v9 amd64`, "sh", tree, renewed)
	return filepath.Join(tree, "_output/packages")
}

// TestPackages_FromInstallationToRemoval: by way of an upgrade.
func TestPackages_FromInstallationToRemoval(t *testing.T) {
	first := made(t)
	second := second(t)
	versions := func(t *testing.T, ending string) map[string]string {
		t.Helper()
		return map[string]string{"first": the(t, first, ending), "second": the(t, second, ending)}
	}
	t.Run("deb", func(t *testing.T) { deb(t, versions(t, "_amd64.deb")) })
	t.Run("rpm", func(t *testing.T) { rpm(t, versions(t, ".x86_64.rpm")) })
	t.Run("systemd", func(t *testing.T) {
		files := versions(t, "_amd64.deb")
		files["preun"] = filepath.Join(t.TempDir(), "preun") // systemd and rpm do not run in the same Debian
		script := command(t, "rpm", "--query", "--package", "--queryformat", "%{PREUN}", the(t, first, ".x86_64.rpm"))
		if err := os.WriteFile(files["preun"], []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		underSystemd(t, files)
	})
}

// deb: in a fresh Debian, to the purge.
func deb(t *testing.T, versions map[string]string) {
	f := newFolder(t, versions)
	f.does("dpkg", "--install", "/first")
	intact(t, f.does)
	f.does("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/origin-node.service")
	f.does("bash", "-n", "/usr/share/bash-completion/completions/openshift")
	if version := f.does("openshift", "version"); !strings.Contains(version, os.Getenv("VERSION")) {
		t.Errorf("openshift version prints %q, want %s in it", version, os.Getenv("VERSION"))
	}
	const enabled = "/etc/systemd/system/multi-user.target.wants/origin-node.service"
	const kubeconfig, state = "/etc/origin/node/node.kubeconfig", "/var/lib/origin-node/namespaces"
	f.has("after the installation", map[string]bool{enabled: false, config: true, sysconfig: true})

	f.does("sh", "-c", "echo '"+changed+"' >>"+config+"; touch "+kubeconfig+"; mkdir -p /var/lib/origin /var/lib/origin-node; touch "+state)
	f.does("dpkg", "--force-confdef", "--force-confold", "--install", "/second")
	f.says("after the upgrade", config, changed)
	f.says("after the upgrade", config+".dpkg-dist", renewed)
	f.says("after the upgrade", sysconfig, renewed)

	f.refuses("dpkg", "--remove", "origin-node")
	intact(t, f.does, config)
	f.does("dpkg", "--remove", "origin-node")
	f.has("after the removal", map[string]bool{"/usr/bin/openshift": false, config: true, sysconfig: true, state: true})
	f.says("after the removal", config, changed)

	f.does("dpkg", "--purge", "origin-node")
	f.has("after the purge", map[string]bool{config: false, sysconfig: false, "/var/lib/origin": false, state: false, kubeconfig: true, "/opt/cni": false})
}

// TestPackages_RpmSaysWhatItIs: rpm tells configuration files, dependencies, scriptlets and licences.
func TestPackages_RpmSaysWhatItIs(t *testing.T) {
	first := the(t, made(t), ".x86_64.rpm")
	lines := func(options ...string) []string {
		t.Helper()
		return strings.Split(strings.TrimSpace(command(t, "rpm", append(append([]string{"--query", "--package"}, options...), first)...)), "\n")
	}
	if diff := cmp.Diff([]string{config, sysconfig}, lines("--configfiles")); diff != "" {
		t.Errorf("configuration files (-want +got):\n%s", diff)
	}
	const noReplace = "n"
	for _, file := range lines("--queryformat", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]") {
		path, flags, _ := strings.Cut(file, " ")
		if isConfig := path == config || path == sysconfig; isConfig != strings.Contains(flags, noReplace) {
			t.Errorf("%s has the flags %q; configuration files alone are %%config(noreplace)", path, flags)
		}
	}
	for option, want := range map[string]string{"--requires": "iptables", "--recommends": "nftables", "--suggests": "ipset"} {
		if got := lines(option); !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %s", option, got, want)
		}
	}
	scripts := strings.Join(lines("--scripts"), "\n")
	for _, file := range []string{"postinstall.sh", "preremove.sh", "postremove.sh"} {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(scripts, strings.TrimSpace(string(script))) {
			t.Errorf("the scriptlets lack %s:\n%s", file, scripts)
		}
	}
	licensed := licences(string(contents(t, first)["/usr/share/licenses/origin-node/copyright"].content))
	if diff := cmp.Diff(licensed, strings.Split(lines("--queryformat", "%{LICENSE}")[0], " AND ")); diff != "" {
		t.Errorf("license in nfpm.yaml (-copyright +got):\n%s", diff)
	}
}

// licences are the licences that a file in Debian's format names, sorted.
func licences(copyright string) []string {
	var names []string
	for line := range strings.Lines(copyright) {
		if name, ok := strings.CutPrefix(line, "License: "); ok {
			names = append(names, strings.Split(strings.TrimSpace(name), " and ")...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rpm: in a Debian as well, to the removal.
func rpm(t *testing.T, versions map[string]string) {
	f := newFolder(t, versions)
	rpm := func(args ...string) { // dependencies are packages of Debian, which rpm does not know
		t.Helper()
		f.outside(append([]string{"rpm", "--root=ROOT", "--force-debian", "--nodeps"}, args...)...)
	}
	rpm("--install", "ROOT/first")
	rpm("--verify", "origin-node")
	f.does("openshift", "version")
	f.does("sh", "-c", "echo '"+changed+"' >>"+config)
	rpm("--upgrade", "ROOT/second")
	f.says("after the upgrade", config, changed)
	f.says("after the upgrade", config+".rpmnew", renewed)
	f.says("after the upgrade", sysconfig, renewed)
	f.refusesOutside("rpm", "--root=ROOT", "--force-debian", "--nodeps", "--erase", "origin-node")
	f.has("after a refused removal", map[string]bool{"/usr/bin/openshift": true, "/opt/cni/bin/origin-node-cni": true})
	rpm("--erase", "origin-node")
	f.has("after the removal", map[string]bool{"/usr/bin/openshift": false, config: false, sysconfig: false, "/opt/cni/bin/origin-node-cni": false})
	f.says("after the removal", config+".rpmsave", changed)
}

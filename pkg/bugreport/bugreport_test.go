package bugreport

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// untar returns the files of an archive.
func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}

func text(content string, err error) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(content), err }
}

func TestWrite_NamesThePartsThatFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report-node-1.tar.gz")
	var blank Blanker
	blank.Learn("planted-secret")
	told := map[string]string{}
	err := Write(t.Context(), path, &blank, []Part{
		{"right.txt", text("all of planted-secret\n", nil)},
		{"half.txt", text("half\n", errors.New("the rest with planted-secret is missing"))},
		{"absent.txt", text("", errors.New("absent"))},
		{"nothing.txt", text("", nil)},
		Program("program.txt", "sh", "-c", "echo output; echo complaint >&2; exit 3"),
		Program("missing.txt", "/absent/program"),
	}, func(name string, err error) { told[name] = err.Error() })
	if err != nil {
		t.Fatal(err)
	}
	const failures = "half.txt: the rest with (removed) is missing\nabsent.txt: absent\n" +
		"program.txt: sh -c echo output; echo complaint >&2; exit 3: exit status 3 complaint\nmissing.txt: /absent/program: fork/exec /absent/program: no such file or directory \n"
	want := map[string]string{
		"report-node-1/right.txt": "all of (removed)\n", "report-node-1/half.txt": "half\n", "report-node-1/program.txt": "output\n", "report-node-1/errors.txt": failures,
	}
	if diff := cmp.Diff(want, untar(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(told) != 4 || told["half.txt"] != "the rest with (removed) is missing" {
		t.Errorf("tells of %v", told)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: mode %v, want 0600", err, info.Mode())
	}
}

func TestWrite_LeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	folder := t.TempDir()
	err := Write(ctx, filepath.Join(folder, "a.tar.gz"), &Blanker{}, []Part{{"a", func(context.Context) ([]byte, error) {
		cancel()
		return nil, nil
	}}}, func(string, error) {})
	if files, _ := os.ReadDir(folder); !errors.Is(err, context.Canceled) || len(files) != 0 {
		t.Errorf("%v leaves %v, want %v and nothing", err, files, context.Canceled)
	}
	if err := Write(t.Context(), filepath.Join(folder, "absent", "a.tar.gz"), &Blanker{}, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v, want %v", err, os.ErrNotExist)
	}
}

// TestOutput_EndsInTime: also when a child of the program keeps its output open.
func TestOutput_EndsInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	output, err := Output(ctx, "sh", "-c", "echo begun; sleep 300 & wait")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute || string(output) != "begun\n" {
		t.Errorf("after %s: %q, %v; want what was written, and %v", time.Since(began), output, err, context.DeadlineExceeded)
	}
}

func TestBlanker_Text(t *testing.T) {
	for given, want := range map[string]string{
		"-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\nrest":             "(removed)\nrest",
		"cut -----BEGIN PRIVATE KEY-----\nAAAA":                                                "cut (removed)",
		"token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2JvZHkifQ.c2lnbmF0dXJl end":                   "token (removed) end",
		`Authorization: Bearer s3cr3t-t0ken"`:                                                  `Authorization: Bearer (removed)"`,
		"authorization: basic dXNlcjpwYXNz":                                                    "authorization: basic (removed)",
		"proxy http://me:hunter2@proxy.example.com:3128/ used":                                 "proxy http://(removed)@proxy.example.com:3128/ used",
		"--api-token abcdef --v 4":                                                             "--api-token (removed) --v 4",
		"password: hunter2":                                                                    "password: (removed)",
		`{"client-key-data":"QUFB","node":"a"}`:                                                `{"client-key-data":(removed),"node":"a"}`,
		`err="x" DB_PASSWORD='a b' next=1`:                                                     `err="x" DB_PASSWORD=(removed) next=1`,
		`"{\"token\":\"abc\"}"`:                                                                `"{\"token\":(removed)}"`,
		"-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.11/32 -j SNAT --to-source 203.0.113.10":          "-A OPENSHIFT-EGRESS-SNAT -s 10.128.0.11/32 -j SNAT --to-source 203.0.113.10",
		`I1123 proxy.go:1] "Synced" secretsSeen uid="0f9d2c1e-7d53-4e0b-9c0f-0a1b2c3d4e5f"`:    `I1123 proxy.go:1] "Synced" secretsSeen uid="0f9d2c1e-7d53-4e0b-9c0f-0a1b2c3d4e5f"`,
		"the known one, k1-of-the-file, and the longer one, k1-of-the-file-and-more, are gone": "the known one, (removed), and the longer one, (removed), are gone",
	} {
		var b Blanker
		b.Learn("k1-of-the-file\n  k1-of-the-file-and-more  \nshort\n")
		if diff := cmp.Diff(want, string(b.Text([]byte(given)))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", given, diff)
		}
	}
}

// TestBlanker_KeyBlocks: one that is known keeps no other one of its type from being found.
func TestBlanker_KeyBlocks(t *testing.T) {
	var b Blanker
	b.Learn("-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIA\n-----END EC PRIVATE KEY-----\n")
	const text = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIB\n-----END EC PRIVATE KEY-----\nof MHcCAQEEIA\n"
	if diff := cmp.Diff("(removed)\nof (removed)\n", string(b.Text([]byte(text)))); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

// TestBlanker_URLs: nothing of a URL's user and password stays, whatever is in them.
func TestBlanker_URLs(t *testing.T) {
	for given, want := range map[string]string{
		"proxy http://me:p@ssw0rd@proxy.example.com:3128/ used":          "proxy http://(removed)@proxy.example.com:3128/ used",
		"http://me:p@ss@w0rd@192.0.2.1":                                  "http://(removed)@192.0.2.1",
		"http://me:p%40ssw0rd@proxy http://you:x@proxy":                  "http://(removed)@proxy http://(removed)@proxy",
		"http://me:p/ss#w0rd?x@proxy:3128":                               "http://(removed)@proxy:3128",
		"http://me:@proxy":                                               "http://(removed)@proxy",
		`{"proxy":"http://me:p@ssw\"0rd@proxy","next":"http://a/b"}`:     `{"proxy":"http://(removed)@proxy","next":"http://a/b"}`,
		"HTTPS_PROXY=https://me:p@ssw0rd@[2001:db8::1]:3128 NO_PROXY=.a": "HTTPS_PROXY=https://(removed)@[2001:db8::1]:3128 NO_PROXY=.a",
		"https_proxy=me:p@ssw0rd@proxy:3128":                             "https_proxy=(removed)@proxy:3128",
		"  httpProxy: 'me:p@ssw0rd@proxy:3128'":                          "  httpProxy: '(removed)@proxy:3128'",
		`Environment="ALL_PROXY=socks5://me:p@ssw0rd@proxy" "X=y"`:       `Environment="ALL_PROXY=socks5://(removed)@proxy" "X=y"`,
		"--proxy=http://me:p@ssw0rd@proxy":                               "--proxy=http://(removed)@proxy",
		"https://proxy.example.com:3128/path, by root@node-1":            "https://proxy.example.com:3128/path, by root@node-1",
	} {
		var b Blanker
		if got := string(b.Text([]byte(given))); got != want {
			t.Errorf("%q\n got %q\nwant %q", given, got, want)
		}
	}
}

// TestBlanker_PasswordsOfURLs are removed elsewhere as well, where they were found in a document or an environment.
func TestBlanker_PasswordsOfURLs(t *testing.T) {
	for name, learn := range map[string]func(*Blanker) string{
		"a document": func(b *Blanker) string {
			text, err := b.YAML([]byte("proxies:\n- server: http://me:p%40ssw0rd@proxy\n  other: http://you:w@rd/567@proxy\n"))
			if err != nil {
				t.Error(err)
			}
			return string(b.Text(text))
		},
		"an environment": func(b *Blanker) string {
			return string(b.Environment([]string{"HTTP_PROXY=http://me:p%40ssw0rd@proxy,http://you:w@rd/567@proxy", "A=http://you:w@rd/567@proxy"}))
		},
	} {
		var b Blanker
		if got := learn(&b); strings.Contains(got, "w0rd") || strings.Contains(got, "rd/567") {
			t.Errorf("%s: %q", name, got)
		}
		if got := string(b.Text([]byte("login w@rd/567 failed"))); got != "login (removed) failed" {
			t.Errorf("elsewhere, after %s: %q", name, got)
		}
	}
}

func TestBlanker_YAML(t *testing.T) {
	const given = `# the key was 0123456789abcdef0123456789abcdef
kind: NodeConfig
masterKubeConfig: /etc/origin/node/a/folder/with/a/very/long/name/node.kubeconfig
proxyArguments:
  cluster-cidr: [10.128.0.0/14]
  token: [hunter2x, hunter3x]
  other: ["AbCdEfGhIjKlMnOpQrStUvWxYz0123456789=="]
users:
- name: node-1
  user:
    client-certificate-data: Q0VSVA==
    exec:
      command: login
      env:
      - name: X
        value: from-the-plugin
`
	const want = `# the key was (removed)
kind: NodeConfig
masterKubeConfig: /etc/origin/node/a/folder/with/a/very/long/name/node.kubeconfig
proxyArguments:
  cluster-cidr: [10.128.0.0/14]
  token: [(removed), (removed)]
  other: [(removed)]
users:
  - name: (removed)
    user:
      client-certificate-data: (removed)
      exec:
        command: (removed)
        env:
          - name: (removed)
            value: (removed)
`
	var b Blanker
	got, err := b.YAML([]byte(given), "users")
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got := string(b.Text([]byte("hunter2x AbCdEfGhIjKlMnOpQrStUvWxYz0123456789== from-the-plugin node-1"))); got != "(removed) (removed) (removed) node-1" {
		t.Errorf("elsewhere: %q", got)
	}
	if got, err := b.YAML([]byte("a: [\nplanted")); err == nil || len(got) > 0 || strings.Contains(err.Error(), "planted") {
		t.Errorf("no YAML: %q, %v", got, err)
	}
}

func TestBlanker_Environment(t *testing.T) {
	var b Blanker
	got := string(b.Environment([]string{"PATH=/bin", "API_TOKEN=planted-token", "MINE=planted-value"}, "PATH"))
	if want := "API_TOKEN=(removed)\nMINE=(removed)\nPATH=/bin\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := string(b.Text([]byte("planted-token"))); got != removed {
		t.Errorf("elsewhere: %q", got)
	}
}

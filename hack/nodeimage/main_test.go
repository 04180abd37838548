package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/origin-node/hack/lab"
	"github.com/openshift/origin-node/hack/oci"
)

// TestImage_SameBytesEachTime: an archive does not tell when, where and by whom its files were made.
func TestImage_SameBytesEachTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var archives [2][]byte
	for i, age := range []time.Duration{time.Hour, 400 * 24 * time.Hour} {
		dir := t.TempDir()
		output := filepath.Join(dir, "image.tar")
		if err := newOptions(t, dir, time.Now().Add(-age)).write(output); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = content
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same content gives two different archives")
	}
}

// TestDebian_WhatIsTaken: programs, libraries, licences and links, as root has them; no documentation and nothing of dpkg.
func TestDebian_WhatIsTaken(t *testing.T) {
	o := newOptions(t, t.TempDir(), time.Now())
	o.time = time.Unix(1700000000, 0)
	image, err := o.image()
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := oci.Write(&archive, image); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, layer := range layers(t, &archive) {
		for _, h := range layer {
			if h.Uid != 0 || h.Gid != 0 || !h.ModTime.Equal(o.time) {
				t.Errorf("%s belongs to %d:%d and is of %s, want root's and of %s", h.Name, h.Uid, h.Gid, h.ModTime, o.time)
			}
			got[h.Name] = strings.TrimSpace(h.FileInfo().Mode().String() + " " + h.Linkname)
		}
	}
	want := map[string]string{
		"bin/": "drwxr-xr-x", "usr/": "drwxr-xr-x", "usr/sbin/": "drwxr-xr-x",
		"usr/sbin/tool": "-rwxr-xr-x", "usr/sbin/other-tool": "Lrwxrwxrwx tool", "usr/share/doc/tool/copyright": "-rw-r--r--",
		"bin/sh": "Lrwxrwxrwx busybox", "usr/lib/iptables/nft/ip6tables-save": "Lrwxrwxrwx /usr/sbin/xtables-nft-multi",
		"usr/lib/iptables/legacy/iptables": "Lrwxrwxrwx /usr/sbin/xtables-legacy-multi", "usr/share/origin-node/packages": "-rw-r--r--",
		"usr/bin/openshift": "-rwxr-xr-x", "usr/bin/origin-node-cni": "-rwxr-xr-x", "usr/bin/entrypoint.sh": "-rwxr-xr-x",
		"usr/share/man/man8/tool.8": "", "etc/tool.conf": "", "usr/lib/x/gconv/UTF-16.so": "", "usr/share/doc/tool/README": "",
	}
	for name, mode := range want {
		if diff := cmp.Diff(mode, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// newOptions makes a package and binaries whose files are of this time.
func newOptions(t *testing.T, dir string, at time.Time) options {
	t.Helper()
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		lab.Lacks(t, "%v; install dpkg", err)
	}
	for name, content := range map[string]string{
		"package/DEBIAN/control":               "Package: tool\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: a tool\n",
		"package/usr/sbin/tool":                "#!/bin/sh\n",
		"package/usr/share/doc/tool/copyright": "free",
		"package/usr/share/doc/tool/README":    "unread",
		"package/usr/share/man/man8/tool.8":    "unread",
		"package/usr/lib/x/gconv/UTF-16.so":    "unneeded",
		"package/etc/tool.conf":                "unneeded",
		"bin/openshift":                        "a program",
		"bin/origin-node-cni":                  "a plugin",
		"bin/entrypoint.sh":                    "a script",
	} {
		file := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "/tool") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), mode), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("tool", filepath.Join(dir, "package/usr/sbin/other-tool")); err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(dir, "tool_1_all.deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", filepath.Join(dir, "package"), deb).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	return options{name: "localhost/image:test", binaries: filepath.Join(dir, "bin"), entrypoint: filepath.Join(dir, "bin/entrypoint.sh"), packages: []string{deb}}
}

// layers returns the headers of the files in each compressed layer of an archive.
func layers(t *testing.T, archive io.Reader) (found [][]*tar.Header) {
	t.Helper()
	for blobs := tar.NewReader(archive); ; {
		if _, err := blobs.Next(); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			t.Fatal(err)
		}
		compressed, err := gzip.NewReader(blobs)
		if err != nil {
			continue // JSON
		}
		var files []*tar.Header
		for layer := tar.NewReader(compressed); ; {
			h, err := layer.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, h)
		}
		found = append(found, files)
	}
}

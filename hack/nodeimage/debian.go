package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
	"time"
)

var (
	// kept is what is taken of a package. iptables reads the names of protocols.
	kept = regexp.MustCompile(`^((usr/)?(bin|sbin|lib|lib64)/.|etc/protocols$|usr/share/doc/[^/]+/copyright$)`)
	// unneeded is what is not: conversions between encodings, most of what libc6 is.
	unneeded = regexp.MustCompile(`^usr/lib/[^/]+/gconv/`)
)

// applets are the programs of busybox that the image has: for the entry point, the manifests in images/node, and people.
var applets = []string{"cat", "cp", "grep", "ls", "mv", "ps", "sh", "sleep", "tar", "wget"}

// flavours are those of iptables. For each there is a folder with its tools under their plain names.
var flavours = []string{"legacy", "nft"}

// debian is what the programs need of Debian, with a list of the packages.
func (o options) debian() (fstest.MapFS, error) {
	root := fstest.MapFS{}
	var list bytes.Buffer
	for _, file := range slices.Sorted(slices.Values(o.packages)) {
		if err := unpack(root, file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		fmt.Fprintln(&list, strings.TrimSuffix(filepath.Base(file), ".deb"))
	}
	for _, applet := range applets {
		link(root, "bin/"+applet, "busybox")
	}
	for _, flavour := range flavours {
		for _, family := range []string{"iptables", "ip6tables"} {
			for _, tool := range []string{"", "-save", "-restore"} {
				link(root, "usr/lib/iptables/"+flavour+"/"+family+tool, "/usr/sbin/xtables-"+flavour+"-multi")
			}
		}
	}
	root["usr/share/origin-node/packages"] = &fstest.MapFile{Data: list.Bytes(), Mode: 0o644}
	return root, nil
}

func link(root fstest.MapFS, name, target string) {
	root[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// unpack adds to a root what the image has of a package.
func unpack(root fstest.MapFS, file string) error {
	content, err := exec.Command("dpkg-deb", "--fsys-tarfile", file).Output()
	if err != nil {
		return fmt.Errorf("dpkg-deb --fsys-tarfile: %w", err)
	}
	for r := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Clean(header.Name)
		if !kept.MatchString(name) || unneeded.MatchString(name) {
			continue
		}
		switch header.Typeflag {
		case tar.TypeDir: // made for what is in it
		case tar.TypeReg:
			data, err := io.ReadAll(r)
			if err != nil {
				return err
			}
			root[name] = &fstest.MapFile{Data: data, Mode: header.FileInfo().Mode()}
		case tar.TypeSymlink:
			link(root, name, header.Linkname)
		default:
			return fmt.Errorf("%s is neither a file, a folder nor a symbolic link", name)
		}
	}
}

// date gives everything in a root its folders, and the same time.
func date(root fstest.MapFS, at time.Time) {
	for name, file := range root {
		file.ModTime = at
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			root[folder] = &fstest.MapFile{Mode: fs.ModeDir | 0o755, ModTime: at}
		}
	}
}

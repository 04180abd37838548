package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	modulesTxt = `# example.org/apache v1.2.0
## explicit; go 1.26
example.org/apache/pkg
# example.org/mit v0.1.0 => example.org/fork v0.2.0
## explicit
example.org/mit
# example.org/unused v1.0.0
## explicit
`
	apacheText = "Apache License\n  Version 2.0, January 2004\n\nCopyright [yyyy] [name of copyright owner]\n"
	mitText    = "Copyright (c) 2020 Somebody\n\nPermission is hereby granted, free\nof charge, to any person\n"
)

// TestCopyright_OfAVendoredTree: each licence, with its module, version and notice, and the common text once.
func TestCopyright_OfAVendoredTree(t *testing.T) {
	got, err := copyright(tree(t, map[string]string{
		"LICENSE": apacheText, "vendor/modules.txt": modulesTxt,
		"vendor/example.org/apache/LICENSE":             apacheText,
		"vendor/example.org/apache/NOTICE":              "made by\n\nus\n",
		"vendor/example.org/apache/third_party/LICENCE": mitText,
		"vendor/example.org/mit/COPYING":                mitText,
		"vendor/example.org/mit/license.go":             "package mit\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	const inlined = " Copyright (c) 2020 Somebody\n .\n Permission is hereby granted, free\n of charge, to any person\n"
	want := copyrightHeader + `
Files: *
Copyright: the authors of origin-node
License: Apache-2.0

Files: vendor/example.org/apache/*
Copyright: the authors of example.org/apache
License: Apache-2.0
Comment:
 example.org/apache v1.2.0
 .
 made by
 .
 us

Files: vendor/example.org/apache/third_party/*
Copyright: Copyright (c) 2020 Somebody
License: MIT
` + inlined + `Comment:
 example.org/apache v1.2.0

Files: vendor/example.org/mit/*
Copyright: Copyright (c) 2020 Somebody
License: MIT
` + inlined + `Comment:
 example.org/mit v0.2.0

License: Apache-2.0
 Apache License
   Version 2.0, January 2004
 .
 Copyright [yyyy] [name of copyright owner]
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCopyright_RefusesWhatItDoesNotKnow(t *testing.T) {
	for name, test := range map[string]struct {
		file, text string
		want       string
	}{
		"module without a licence": {"vendor/example.org/mit/README", "", "vendor/example.org/mit has no file"},
		"unknown licence":          {"vendor/example.org/mit/LICENSE", "Do what you want.", "the licence in vendor/example.org/mit is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := copyright(tree(t, map[string]string{
				"LICENSE": apacheText, "vendor/modules.txt": modulesTxt, "vendor/example.org/apache/LICENSE": apacheText, test.file: test.text,
			}))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q in it", err, test.want)
			}
		})
	}
}

func TestSPDX_NamesEachLicence(t *testing.T) {
	const bsd = "Redistribution and use in source and binary forms, with or without modification"
	for text, want := range map[string]string{
		bsd: "BSD-2-Clause",
		bsd + "\nThe names may be used to\nendorse or promote products":                 "BSD-3-Clause",
		"Mozilla Public License, version 2.0":                                           "MPL-2.0",
		"Permission to use, copy, modify, and distribute this software for any purpose": "ISC",
		apacheText + mitText: "Apache-2.0 and MIT",
		"public domain":      "",
	} {
		if got := spdx(text); got != want {
			t.Errorf("spdx(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestCopyright_OfThisRepository: with every module of which vendor/ has a file of code.
func TestCopyright_OfThisRepository(t *testing.T) {
	got, err := copyright("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"k8s.io/kubernetes", "github.com/hashicorp/memberlist", "golang.org/x/sys"} {
		if !strings.Contains(string(got), "\nFiles: vendor/"+module+"/*\n") {
			t.Errorf("%s is missing", module)
		}
	}
}

// tree writes files below a folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

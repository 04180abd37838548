package nodeconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	legacyconfigv1 "github.com/openshift/api/legacyconfig/v1"

	"github.com/openshift/origin-node/pkg/fileerror"
)

const (
	kind       = "NodeConfig"
	apiVersion = "v1"

	// maxBytes is far above any real config (about 2 KiB). A wrong file, such as
	// an image or a log, must not exhaust the node's memory.
	maxBytes = 1 << 20
)

// Config is a NodeConfig that was loaded without errors.
type Config struct {
	// NodeConfig has its defaults applied and its file names made absolute.
	NodeConfig legacyconfigv1.NodeConfig
	// File is the file's name as it was given to Load or Parse.
	File string

	absolute string         // File's absolute name
	lines    map[string]int // line of every field path in the file; "" is the root
	set      []string       // paths of the leaves whose value is not empty
}

// Load reads and checks the NodeConfig in file, and sets its defaults. Relative
// names of files are relative to the folder of file as named: if file is a
// symbolic link, to the folder of the link. The error is an *Error, or has
// several, ordered by line.
func Load(file string) (*Config, error) {
	data, err := read(file)
	if err != nil {
		// The *fs.PathError repeats the file's name, which Error has already.
		if pathErr := new(fs.PathError); errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return nil, &Error{File: file, Err: fmt.Errorf("cannot read the file: %w", err)}
	}
	return Parse(file, data)
}

// Values returns those of a proxy argument, which the file may write with underscores in the place of hyphens, as for kube-proxy.
func (c *Config) Values(argument string) []string {
	for key, values := range c.NodeConfig.ProxyArguments {
		if hyphened(key) == argument {
			return values
		}
	}
	return nil
}

func hyphened(argument string) string { return strings.ReplaceAll(argument, "_", "-") }

// Last returns the last value of a proxy argument, which is the one that counts where several are given; otherwise if it has none.
func (c *Config) Last(argument, otherwise string) string {
	if values := c.Values(argument); len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}

// read returns at most one byte more than Parse accepts.
func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// Parse is Load on data. It reads no file: file appears in messages, and
// relative names are relative to its folder. JSON is YAML here, but for its
// escapes \/ and \ud83d\ude00 (surrogates), which the YAML parser refuses.
func Parse(file string, data []byte) (*Config, error) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, &Error{File: file, Err: fmt.Errorf("cannot find the file's folder: %w", err)}
	}
	root, problem := document(data)
	if problem != nil {
		problem.File = file
		return nil, problem
	}

	c := &Config{File: file, absolute: absolute, lines: map[string]int{"": root.Line}}
	problems := c.decode(root)
	header := c.checkHeader(problems)
	if c.isOtherKind() {
		// The errors in the fields only say that they belong to another kind.
		return nil, fileerror.Join(header)
	}
	problems = append(problems, header...)
	problems = append(problems, c.validate()...)
	if len(problems) > 0 {
		return nil, fileerror.Join(problems)
	}
	setDefaults(&c.NodeConfig)
	resolveFiles(&c.NodeConfig, filepath.Dir(absolute))
	return c, nil
}

// checkHeader returns the problems with kind and apiVersion. One that is
// missing because its value was refused is among the known problems.
func (c *Config) checkHeader(known []*Error) []*Error {
	var problems []*Error
	for _, field := range []struct{ path, value, want string }{
		{"apiVersion", c.NodeConfig.APIVersion, apiVersion},
		{"kind", c.NodeConfig.Kind, kind},
	} {
		refused := slices.ContainsFunc(known, func(e *Error) bool { return e.Path == field.path })
		switch {
		case field.value == "" && !refused:
			problems = append(problems, c.Errorf(field.path, "missing; expected %q", field.want))
		case field.value != "" && field.value != field.want:
			problems = append(problems, c.Errorf(field.path, "found %q; expected %q", shorten(field.value), field.want))
		}
	}
	return problems
}

func (c *Config) isOtherKind() bool {
	return c.NodeConfig.Kind != "" && c.NodeConfig.Kind != kind
}

// document returns the root mapping of the only YAML document in data. The
// error's File is left to the caller.
func document(data []byte) (*yaml.Node, *Error) {
	if len(data) > maxBytes {
		return nil, &Error{Line: lineAt(data, maxBytes), Err: fmt.Errorf("the file is larger than %d bytes; is it a node config?", maxBytes)}
	}
	if i := len(fileerror.ValidPrefix(data)); i < len(data) { // it may also be UTF-16, which is not supported
		return nil, &Error{Line: lineAt(data, i), Err: fmt.Errorf("the byte %#02x is not UTF-8 text; is it a node config?", data[i])}
	}
	docs, err := parseYAML(data)
	switch {
	case err != nil:
		return nil, &Error{Line: syntaxErrorLine(data, err), Err: fmt.Errorf("not valid YAML: %w", err)}
	case len(docs) > 1:
		return nil, &Error{Line: docs[1].Line, Err: fmt.Errorf("found a second YAML document; expected one %s", kind)}
	case len(docs) == 0 || docs[0].Content[0].Tag == "!!null":
		return nil, emptyError(data)
	}
	root := docs[0].Content[0]
	if root.Kind != yaml.MappingNode || root.Tag != "!!map" {
		return nil, &Error{Line: root.Line, Err: fmt.Errorf("found %s; expected the fields of a %s", describe(root), kind)}
	}
	return root, nil
}

func emptyError(data []byte) *Error {
	if len(bytes.TrimSpace(data)) == 0 {
		return &Error{Err: fmt.Errorf("the file is empty; expected a %s", kind)}
	}
	return &Error{Line: 1, Err: fmt.Errorf("the file has no content; expected a %s", kind)}
}

// parseYAML returns the documents in data, at most two: more than one is wrong
// anyway. It turns a panic of the parser into an error, because yaml.v3 panics
// on comments in some unusual places ("please report").
func parseYAML(data []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			docs, err = nil, fmt.Errorf("the parser failed: %v", r)
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for len(docs) < 2 {
		doc := new(yaml.Node)
		err := decoder.Decode(doc)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			text, _ := fileerror.OfYAML(err)
			return nil, errors.New(text)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// syntaxErrorLine returns the line at which the parser gives up with problem.
// The parser's own line numbers are off by one for some errors, name the start
// of the surrounding block for others, and are missing for the rest. But it
// stops at the first error, so the line is the last one of the shortest
// beginning of data that fails in the same way.
func syntaxErrorLine(data []byte, problem error) int {
	ends := []int{} // offset after each line
	for i, b := range data {
		if b == '\n' || i == len(data)-1 {
			ends = append(ends, i+1)
		}
	}
	n := sort.Search(len(ends)-1, func(i int) bool {
		_, err := parseYAML(data[:ends[i]])
		return err != nil && err.Error() == problem.Error()
	})
	return n + 1
}

func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

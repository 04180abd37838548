package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/openshift/origin-node/pkg/fileerror"
)

// A document is one YAML document or one JSON value of a file. Its text is
// kept: whether a line number is needed is known only once something is wrong,
// perhaps with another file.
type document struct {
	file  string
	start int    // line of the file on which text begins
	text  []byte // not to be changed

	// tree is the text as YAML nodes, which know their lines; nil if the
	// text is not YAML. It costs as much as decoding, so it is parsed late.
	tree func() *yamlv3.Node
}

func newDocument(file string, start int, text []byte) *document {
	d := &document{file: file, start: start, text: text}
	d.tree = sync.OnceValue(func() *yamlv3.Node {
		root, err := parseNodes(text)
		if err != nil {
			return nil
		}
		return root
	})
	return d
}

func (d *document) errorf(line int, format string, args ...any) *Error {
	return &Error{File: d.file, Line: line, Err: fmt.Errorf(format, args...)}
}

// error is an error about a field of an object, whose name is title, or about the object itself. The rest is for line.
func (d *document) error(object, title, path string, ok func(*yamlv3.Node) bool, err error) *Error {
	return &Error{File: d.file, Line: d.line(object, path, ok), Object: title, Path: path, Err: err}
}

// splitYAML cuts a YAML stream into its documents. A line that begins with
// "---" or is "..." is a marker wherever it stands: YAML forbids such lines
// inside of a scalar. Documents without content are left out.
func splitYAML(file string, data []byte) []*document {
	var docs []*document
	var begin, start, line int // offset and line where the document begins
	content := false
	cut := func(end int) {
		if content {
			docs = append(docs, newDocument(file, start+1, data[begin:end]))
		}
		begin, start, content = end, line, false
	}
	for offset := 0; offset < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[offset:], '\n'); i >= 0 {
			end = offset + i + 1
		}
		text := bytes.TrimRight(data[offset:end], " \t\r\n")
		rest, isStart := bytes.CutPrefix(text, []byte("---"))
		isStart = isStart && (len(rest) == 0 || rest[0] == ' ' || rest[0] == '\t')
		switch {
		case isStart:
			// Directives and comments before the marker belong to what
			// follows it, so an empty document is not cut off.
			if content {
				cut(offset)
			}
			content = hasContent(rest)
		case string(text) == "...":
			cut(offset)
			begin, start = end, line+1
		default:
			content = content || hasContent(text)
		}
		offset = end
	}
	cut(len(data))
	return docs
}

// hasContent says whether a line holds more than space, a comment or a
// directive.
func hasContent(text []byte) bool {
	isDirective := len(text) > 0 && text[0] == '%'
	text = bytes.TrimLeft(text, " \t")
	return len(text) > 0 && text[0] != '#' && !isDirective
}

// splitJSON cuts a stream of JSON values.
func splitJSON(file string, data []byte) ([]*document, *Error) {
	var docs []*document
	decoder := json.NewDecoder(bytes.NewReader(data))
	line, counted := 1, 0
	lineAt := func(offset int) int {
		line += bytes.Count(data[counted:offset], []byte("\n"))
		counted = offset
		return line
	}
	for {
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			offset := len(data)
			if isSyntax, at := kjson.SyntaxErrorOffset(err); isSyntax {
				offset = min(max(counted, int(at)-1), offset)
			}
			return docs, &Error{File: file, Line: lineAt(offset), Err: fmt.Errorf("not JSON: %w", err)}
		}
		end := int(decoder.InputOffset())
		begin := end - len(raw)
		docs = append(docs, newDocument(file, lineAt(begin), data[begin:end]))
	}
}

// json returns the document as JSON. The conversion is kubectl's, so that a
// file means here what it means there.
func (d *document) json() ([]byte, *Error) {
	if !utf8.Valid(d.text) {
		return nil, d.errorf(d.start+bytes.Count(fileerror.ValidPrefix(d.text), []byte("\n")), "not UTF-8 text")
	}
	if bytes.IndexByte(d.text, '*') >= 0 {
		if root := d.tree(); root != nil && expandedSize(root, map[*yamlv3.Node]int{}) > maxFileSize {
			return nil, d.errorf(d.start, "aliases make this document larger than %d MiB", maxFileSize>>20)
		}
	}
	converted, err := yaml.YAMLToJSONStrict(d.text)
	if err != nil {
		return nil, d.syntaxError(err)
	}
	if d.isFlow() {
		// The converter stops at the closing brace; what stands behind it
		// must not be lost in silence.
		if _, err := parseNodes(d.text); err != nil {
			return nil, d.syntaxError(err)
		}
	}
	return converted, nil
}

// isFlow says whether the document may be written in YAML's flow style, as JSON
// is. A block mapping ends with its document, a flow mapping need not.
func (d *document) isFlow() bool {
	for line := range bytes.Lines(d.text) {
		if line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("---"))); hasContent(line) {
			return bytes.IndexByte([]byte("{[&!"), line[0]) >= 0
		}
	}
	return false
}

// parseNodes parses exactly one document.
func parseNodes(text []byte) (*yamlv3.Node, error) {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var root, next yamlv3.Node
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	err := decoder.Decode(&next)
	if err == nil {
		return nil, fmt.Errorf("yaml: line %d: a second object needs a line with \"---\" before it", next.Line)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if root.Kind == yamlv3.DocumentNode && len(root.Content) == 1 {
		return root.Content[0], nil
	}
	return &root, nil
}

// syntaxError places an error of a YAML library in the file.
func (d *document) syntaxError(err error) *Error {
	// The nodes know lines better than the converter's message does.
	if _, nodesErr := parseNodes(d.text); nodesErr != nil {
		err = nodesErr
	} else if duplicate, first := duplicateKey(d.tree()); duplicate != nil {
		return d.errorf(d.at(duplicate), "field %q is written twice, first on line %d", duplicate.Value, d.at(first))
	}
	text, line := fileerror.OfYAML(err)
	if strings.HasPrefix(text, "did not find expected") {
		line++ // the library counts the lines of its parser's errors from 0
	}
	last := 1 + bytes.Count(d.text, []byte("\n"))
	return d.errorf(d.start+min(max(line, 1), last)-1, "not YAML: %s", text)
}

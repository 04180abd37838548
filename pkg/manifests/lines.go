package manifests

import (
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
)

// at returns the line of the file on which a node stands.
func (d *document) at(node *yamlv3.Node) int {
	if node == nil || node.Line == 0 {
		return d.start
	}
	return d.start + node.Line - 1
}

// line returns the line of a field. Its path is written as in field.Error
// ("spec.ports[0].name", "metadata.labels[example.com/a]"), below the path of
// its object ("items[3]", or nothing). If the field is not in the file it is the
// line of its nearest ancestor that is, at last the one where the object
// begins. ok narrows the choice where path leaves out an index or a key; nil
// accepts any node.
func (d *document) line(object, path string, ok func(*yamlv3.Node) bool) int {
	root := d.tree()
	if root == nil {
		return d.start
	}
	where, _ := find(root, parsePath(object+"."+path), ok)
	return d.at(where)
}

// find walks down from node. It returns the node whose line stands for the end
// of the path (a key for a field, the value for an item of a list), or for the
// nearest ancestor, and how many steps it is from there to the end.
func find(node *yamlv3.Node, path []string, ok func(*yamlv3.Node) bool) (*yamlv3.Node, int) {
	where := resolve(node)
	for node = where; len(path) > 0; {
		key, value := child(node, path)
		if value == nil {
			if node.Kind == yamlv3.SequenceNode {
				return findInItems(where, node, path, ok)
			}
			return where, len(path)
		}
		used := 1
		if node.Kind == yamlv3.MappingNode {
			used = 1 + strings.Count(key.Value, ".") - strings.Count(path[0], ".")
		}
		where, node, path = key, resolve(value), path[max(used, 1):]
	}
	if ok == nil || ok(node) {
		return where, 0
	}
	// Errors about what a map or a list holds may name the whole of it.
	for i, c := range node.Content {
		switch isKey := node.Kind == yamlv3.MappingNode && i%2 == 0; {
		case !ok(resolve(c)):
		case node.Kind == yamlv3.MappingNode && !isKey:
			return node.Content[i-1], 0
		default:
			return c, 0
		}
	}
	return where, 1
}

// findInItems follows a path that names a list but not which of its items, as
// the JSON decoder's type errors do: the first item that has the path wins.
func findInItems(where, list *yamlv3.Node, path []string, ok func(*yamlv3.Node) bool) (*yamlv3.Node, int) {
	for _, item := range list.Content {
		if found, missing := find(item, path, ok); missing == 0 {
			return found, 0
		}
	}
	return where, len(path)
}

// child returns the node to show for the first step of path and the value it
// leads to, or nil.
func child(node *yamlv3.Node, path []string) (*yamlv3.Node, *yamlv3.Node) {
	node = resolve(node)
	switch node.Kind {
	case yamlv3.SequenceNode:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(node.Content) {
			return nil, nil
		}
		return node.Content[i], node.Content[i]
	case yamlv3.MappingNode:
		// The decoder's paths do not tell the dots of a key from those
		// between fields.
		for n := 1; n <= len(path); n++ {
			if key, value := entry(node, strings.Join(path[:n], "."), 0); key != nil {
				return key, value
			}
		}
	}
	return nil, nil
}

// entry returns the last entry of a mapping with this key, because an error about
// duplicates is about the last one. Merged mappings are searched last.
func entry(node *yamlv3.Node, name string, depth int) (key, value *yamlv3.Node) {
	const maxMerges = 16 // a chain of merges has no bound of its own
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			key, value = node.Content[i], node.Content[i+1]
		}
	}
	if key != nil || depth == maxMerges {
		return key, value
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Tag != "!!merge" {
			continue
		}
		merged := []*yamlv3.Node{node.Content[i+1]}
		if list := resolve(merged[0]); list.Kind == yamlv3.SequenceNode {
			merged = list.Content
		}
		for _, m := range merged {
			if m = resolve(m); m.Kind == yamlv3.MappingNode {
				if key, value = entry(m, name, depth+1); key != nil {
					return key, value
				}
			}
		}
	}
	return nil, nil
}

// resolve follows an alias.
func resolve(node *yamlv3.Node) *yamlv3.Node {
	if node.Kind == yamlv3.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

var pathStep = regexp.MustCompile(`\[([^\]]*)\]|[^.\[]+`)

func parsePath(path string) []string {
	var steps []string
	for _, match := range pathStep.FindAllStringSubmatch(path, -1) {
		if strings.HasPrefix(match[0], "[") {
			steps = append(steps, match[1])
		} else {
			steps = append(steps, match[0])
		}
	}
	return steps
}

// duplicateKey returns the first key that its mapping has twice, with the
// earlier one.
func duplicateKey(node *yamlv3.Node) (duplicate, first *yamlv3.Node) {
	if node == nil {
		return nil, nil
	}
	if node.Kind == yamlv3.MappingNode {
		seen := make(map[string]*yamlv3.Node, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i]
			if earlier := seen[key.Value]; earlier != nil && key.Kind == yamlv3.ScalarNode {
				return key, earlier
			}
			seen[key.Value] = key
		}
	}
	for _, c := range node.Content {
		if duplicate, first = duplicateKey(c); duplicate != nil {
			return duplicate, first
		}
	}
	return nil, nil
}

// expandedSize returns about how large the JSON of a node is once every alias
// is written out, at most a little over maxFileSize. A node that contains
// itself counts nothing: the converter refuses it.
func expandedSize(node *yamlv3.Node, known map[*yamlv3.Node]int) int {
	node = resolve(node)
	if size, ok := known[node]; ok {
		return size
	}
	known[node] = 0
	size := len(node.Value) + 4
	for _, c := range node.Content {
		if size += expandedSize(c, known); size > maxFileSize {
			break
		}
	}
	known[node] = size
	return size
}

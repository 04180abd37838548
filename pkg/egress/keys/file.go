package keys

import (
	"fmt"

	"github.com/openshift/origin-node/pkg/egress/holders"
	"github.com/openshift/origin-node/pkg/egress/kept"
)

// largestFile is how many bytes of a file are read.
const largestFile = 64 << 10

// load returns the keys of a file; none if there is no such file, or if it is not as save writes it, which is an error.
func load(path string) (holders.Keys, error) {
	text, err := kept.Load(path, largestFile)
	if text == nil || err != nil {
		return nil, err
	}
	keys, err := holders.ParseKeys(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func save(path string, keys holders.Keys) error { return kept.Save(path, lines(keys)) }

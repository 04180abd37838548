package attach

import (
	"maps"
	"slices"
	"sync"

	"github.com/openshift/origin-node/pkg/egress/attachments"
)

// claimsFile is the file with the namespaces that have claims. The CNI plugin reads it when no process of the node answers.
type claimsFile struct {
	path string

	mu sync.Mutex
	// noted are the namespaces in the file, each with the number of the last addition that named it; nil before the file was written.
	noted     map[string]uint64
	additions uint64
}

// openClaims reads what an earlier process has written. A file that cannot be read is written anew.
func openClaims(path string) *claimsFile {
	c := &claimsFile{path: path}
	if namespaces, err := attachments.ReadClaims(path); err == nil {
		c.noted = map[string]uint64{}
		for namespace := range namespaces {
			c.noted[namespace] = 0
		}
	}
	return c
}

// add puts namespaces into the file.
func (c *claimsFile) add(namespaces []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.additions++
	isNew := c.noted == nil
	added := map[string]uint64{}
	for _, namespace := range namespaces {
		if _, noted := c.noted[namespace]; noted {
			c.noted[namespace] = c.additions
		} else {
			added[namespace], isNew = c.additions, true
		}
	}
	if !isNew {
		return nil
	}
	maps.Copy(added, c.noted)
	return c.write(added)
}

// keep has the file name these namespaces, and those that an addition after this one named.
func (c *claimsFile) keep(namespaces []string, addition uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]uint64{}
	maps.Copy(kept, c.noted)
	maps.DeleteFunc(kept, func(_ string, named uint64) bool { return named <= addition })
	for _, namespace := range namespaces {
		kept[namespace] = c.additions
	}
	return c.write(kept)
}

// write writes the file. The lock must be held.
func (c *claimsFile) write(namespaces map[string]uint64) error {
	if err := attachments.WriteClaims(c.path, slices.Collect(maps.Keys(namespaces))); err != nil {
		return err
	}
	c.noted = namespaces
	return nil
}

// size returns how many namespaces are in the file, and the number of the last addition.
func (c *claimsFile) size() (namespaces int, addition uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.noted), c.additions
}

// has tells whether a namespace is in the file.
func (c *claimsFile) has(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, noted := c.noted[namespace]
	return noted
}

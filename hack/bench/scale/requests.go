package scale

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// auditPolicy has the API server tell once of each request of nodes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [ResponseStarted, ResponseComplete, Panic]
rules:
- level: Metadata
  userGroups: [origin-node]
- level: None
`

// requests are counts by what is asked for: a verb and a resource, or a path.
type requests map[string]int

// all is how many there are.
func (r requests) all() (n int) {
	for _, count := range r {
		n += count
	}
	return n
}

// leaseWrites is how many of them write Leases.
func (r requests) leaseWrites() int { return r["patch leases"] + r["create leases"] }

// auditLog reads what the API server has logged since it was read last.
type auditLog struct {
	file   string
	offset int64
}

// auditEvent is what is read of audit.k8s.io/v1.Event.
type auditEvent struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	ObjectRef  *struct{ Resource string }
}

// read returns the requests since the last call, by user.
func (l *auditLog) read() (map[string]requests, error) {
	file, err := os.Open(l.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	all := map[string]requests{}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // what is left is being written
		}
		if err != nil {
			return nil, err
		}
		l.offset += int64(len(line))
		var e auditEvent
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return nil, fmt.Errorf("%s: %w", l.file, err)
		}
		if all[e.User.Username] == nil {
			all[e.User.Username] = requests{}
		}
		all[e.User.Username][e.what()]++
	}
}

func (e auditEvent) what() string {
	if e.ObjectRef != nil {
		return e.Verb + " " + e.ObjectRef.Resource
	}
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return e.Verb + " " + path
}
